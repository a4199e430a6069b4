"""TESLA programs as a whole: how they are recognised, what is checked against a schema, units, printing, engines."""

from __future__ import annotations

import pytest

from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.algebra.rules import Rule, Within
from weft.errors import ProgramError
from weft.languages import compile_text, language_of, parse_syntax
from weft.languages.tesla.printer import to_source
from weft.plan.planner import plan
from weft.plan.text.plans import plan_dot, plan_text

FIRE = """
-- fire, as a rule
Rule R1
define Fire(area: string, measuredTemp: double)
from Smoke(area = $a) and each Temp(area = $a and value > 45) within 5 min from Smoke
where area = Smoke.area and measuredTemp = Temp.value
"""
TREX = "Assign 1 => A, 2 => B, 3 => X Define X() From B() and each A() within 2000 from B;"
SCHEMA = {"Smoke": {"area": "string"}, "Temp": {"area": "string", "value": "double"}}


def compiled(text: str, **options: object) -> Program:
    return compile_text(text, language="tesla", **options)[0]  # type: ignore[arg-type]


def codes(text: str, **options: object) -> list[str]:
    with pytest.raises(ProgramError) as raised:
        compiled(text, **options)
    return [diagnostic.code for diagnostic in raised.value.diagnostics]


def windows(program: Program) -> list[int]:
    return [node.ticks for rule in program.queries for node in rule.walk() if isinstance(node, Within)]


@pytest.mark.parametrize("text", [FIRE, TREX, "define X() from A()", "/* x */ Rule R define X() from A()"])
def test_tesla_is_recognised_by_its_first_word(text: str) -> None:
    assert language_of(text).name == "tesla"


def test_tesla_is_recognised_by_its_ending() -> None:
    assert language_of("", name="rules/fire.TESLA").name == "tesla"


def test_a_rule_is_called_after_the_type_it_defines() -> None:
    program = compiled(FIRE)
    (rule,) = program.queries
    assert isinstance(rule, Rule)
    assert (program.language, rule.name, rule.label) == ("tesla", "Fire", "R1")


def test_a_schema_serves_checks() -> None:
    assert compiled(FIRE, schema=SCHEMA).queries == compiled(FIRE).queries
    assert codes("define X() from Smoek()", schema=SCHEMA) == ["unknown-type"]
    assert codes("define X() from Smoke(aera = 'a')", schema=SCHEMA) == ["unknown-attribute"]
    assert codes("define X() from Smoke(area = 3)", schema=SCHEMA) == ["type-mismatch"]
    assert codes("define X(a: int) from Smoke() where a = Sum(Temps().v within 1 from Smoke)", schema=SCHEMA) == [
        "unknown-type"
    ]


def test_types_that_rules_define_are_known_beside_a_schema() -> None:
    text = FIRE + "define Alarm(t: double) from Fire(area = 'a1' and ts > 3) where t = Fire.measuredTemp"
    assert len(compiled(text, schema=SCHEMA).queries) == 2


def test_numbers_alone_are_ticks_but_milliseconds_in_rules_of_t_rex() -> None:
    assert windows(compiled("define X() from B() and each A() within 2000 from B", time_unit="s")) == [2000]
    assert windows(compiled("define X() from B() and each A() within 2000 ms from B", time_unit="s")) == [2]
    assert windows(compiled(TREX, time_unit="s")) == [2]
    assert windows(compiled(TREX, time_unit="us")) == [2_000_000]


def test_part_of_a_tick_is_a_warning() -> None:
    _, warnings = compile_text("define X() from B() and each A() within 1500 ms from B", time_unit="s")
    assert [warning.code for warning in warnings] == ["fraction-of-a-tick"]


def test_keywords_are_read_in_any_case() -> None:
    assert compiled(FIRE.replace("from", "FROM").replace("each", "Each")).queries == compiled(FIRE).queries


def test_a_plan_says_how_rules_run() -> None:
    alarm = "define Alarm() from Fire(area = $b) and last Fire(area = $b) as Before within 1 min from Fire"
    chosen = plan(compiled(FIRE + FIRE.replace("45", "55").replace("R1", "R2") + alarm))
    text = plan_text(chosen)
    assert "3 rules of 2 shapes, from one table" in text
    assert "shape 0: 2 × Fire" in text
    assert "Fire feeds Alarm" in text
    assert [lanes.reason for lanes in chosen.lanes] == ["by key [area], which is equal in all events of a rule"]


def test_a_drawing_shows_what_is_made_of_what() -> None:
    drawn = plan_dot(plan(compiled(FIRE)))
    assert '"type Smoke" -> "type Fire" [style=bold]' in drawn
    assert '"type Temp" -> "type Fire"\n' in drawn


def test_rules_that_fire_for_ever_are_refused_without_the_language_too() -> None:
    rule = compiled("define X() from A()").queries[0]
    endless = Program("tesla", (rule, *compiled("define A() from X()").queries))
    with pytest.raises(ValueError, match="X <- A <- X"):
        matches(endless, [{"type": "A", "ts": 1}])


def test_a_program_nested_too_deeply_is_refused() -> None:
    deep = "1 - (" * 3000 + "1" + ")" * 3000
    assert codes(f"define X(a: int) from A() where a = {deep}") == ["too-large"]


def test_the_time_and_the_type_of_a_defined_event_are_readable() -> None:
    program = compiled("define X() from A() define Y(t: int, k: string) from X(ts > 3) where t = X.ts, k = X.type")
    events = [{"kind": "A", "at": 3}, {"kind": "A", "at": 7}]
    assert [m.event for m in matches(program, events, time="at", type="kind")] == [{}, {}, {"t": 7, "k": "X"}]


@pytest.mark.parametrize(
    "text",
    [
        FIRE,
        TREX,
        "define X() from A();define Y() from X()",
        'Assign 1 => A, 2 => X Define X(s: string) From A(s => $s, [string]t != $s) Where s := "a\\"\\\\\\n";',
        "define `from`(`a b`: int) from `select`(`c``d` = 1) as `each` consuming `each`",
        "define X(a: int) from B() and 1 < $t = Avg(A(k = 1).v within 3 min from B) <= -3 + B.v "
        "where a = -(1 - (2 - $t)) * 2",
        "define X(n: int) from B() and 2-first A() as P within 3 from B and not C(f = true) between P and B "
        "where n = COUNT(A.v(k > 1, k < 3)) between P and B / 2 + Max(A().v within 1 from P) consuming P",
        "define X() from A() from B and A() and each C() and not D() and Count(A()) > 3 where a > 3",
        "define Min(max: int) from `Sum`(sum > 1) and `Count`() and each `Max`() as avg within 1 min from avg",
    ],
)
def test_round_trip(text: str) -> None:
    tree = parse_syntax(text, language="tesla")
    assert parse_syntax(to_source(tree), language="tesla") == tree  # type: ignore[arg-type]


def test_printed_text_has_no_needless_quotes() -> None:
    tree = parse_syntax(FIRE, language="tesla")
    assert "within 5 min from Smoke" in to_source(tree)  # type: ignore[arg-type]
