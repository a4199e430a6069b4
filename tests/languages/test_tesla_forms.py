"""Rules of one form are parsed once, and come out as if each had been parsed on its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weft.errors import ProgramError
from weft.languages.forms import Forms
from weft.languages.tesla import parser, syntax
from weft.source import SourceText

FIRE = """
Rule R{0} -- define; it
define Fire{0}(area: string, `measured Temp`: double)
from   Smoke{0}(area=$a) and {1} Temp(area=$a and value>{0}) as T within {0} min from Smoke{0}
   and not Rain(kind="a;\\"define{0}") between T and Smoke{0}
where  area=Smoke{0}.area and `measured Temp`=-T.value*{0}.5 + Avg(Temp(area=$a).value within {0}000 from Smoke{0})
consuming T;"""
TREX = "Assign {0} => A, 2 => B Define X(n: int) From B([int]n > $m) and {1} A(n=>$m) within {0} from B Where n := {0}"
ALIKE = ("{0} {1} {0}", "{1} {1}", "{0}{0}{0}")
APART = (
    "",
    ";",
    "define X() from A();;",
    "define X() from A() define Y() from Count() and last Last() within 5 from Count",
    "DEFINE X(rule: int) From Define() where rule = Define.assign; Rule define Define Rule() from `Define`(define = 1)",
    "Definex() fromA() and2-lastB()within5fromA",
    "define X() from A(n > 2-first) and 2 - first B() within 1 from A",
    "define X() from A() and each/* */B() within 1 from A",
    "define X() from A() /* ; define Y() */ where; rule R define Y() from A('define')",
    "define X() from A(a = 'x\\'; define Y() from B()",
    "define X() from A(n = " + "(" * 40 + "1" + ")" * 40 + ")",
    "define X() from A() and $ B()",
    "define X() from A() /* to the end",
)


def rule_texts() -> list[str]:
    one, two = (FIRE.format(number, pick) for number, pick in ((1, "each"), (22, "LAST")))
    mixed = [text.format(one, two) for text in ALIKE]
    return [*mixed, "\n".join(TREX.format(number, "3-first") for number in range(9)), *APART]


@pytest.mark.parametrize("text", rule_texts())
def test_parsing_by_forms_is_parsing(text: str) -> None:
    def outcome(parse: Callable[[SourceText], syntax.Program]) -> object:
        try:
            rules = parse(SourceText(text)).rules
        except ProgramError as error:
            return str(error)
        return [(node, node.span) for rule in rules for node in rule.walk()]  # spans do not count in comparisons

    expected = outcome(parser._parse_whole)
    for _ in ("new forms", "known forms"):
        assert outcome(parser.parse) == expected


def test_a_long_rule_is_parsed() -> None:
    (rule,) = parser.parse(SourceText("define X() from A(n = 1" + " + 1" * 2000 + ")")).rules
    assert rule.span.end == 8024


def test_rules_of_one_form_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = parser._forms()
    monkeypatch.setattr(forms, "_known", {})
    parsed: list[str] = []
    parse = forms._parser.parse
    monkeypatch.setattr(forms._parser, "parse", lambda text: (parsed.append(text), parse(text))[1])
    texts = [FIRE.format(number, pick) for number in range(20) for pick in ("each", "first")]
    rules = parser.parse(SourceText("".join(texts))).rules
    assert len(rules) == 40
    assert len(parsed) == 2
    assert [rule.type.text for rule in rules] == [f"Fire{number}" for number in range(20) for _ in range(2)]


def test_forms_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    forms: Forms = parser._forms()
    monkeypatch.setattr("weft.languages.forms._MOST_FORMS", 3)
    monkeypatch.setattr(forms, "_known", {})
    text = ";".join("define X() from A(" + ", ".join("n = 1" for _ in range(number)) + ")" for number in range(8))
    assert len(parser.parse(SourceText(text)).rules) == 8
    assert len(forms._known) <= 3
