"""What the messages about TESLA's syntax know of it, and its typical mistakes."""

from __future__ import annotations

import re
from difflib import get_close_matches

from weft.languages.stops import PHRASES, Dialect, Explained, Stop

KEYWORDS = frozenset(
    {
        *("RULE", "ASSIGN", "DEFINE", "FROM", "WHERE", "CONSUMING", "EACH", "FIRST", "LAST", "NOT", "AND", "AS"),
        *("WITHIN", "BETWEEN", "TRUE", "FALSE"),
    }
)
OPENERS = frozenset({"RULE", "ASSIGN", "DEFINE", "FROM", "WHERE", "CONSUMING"})

_WORDS = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
      |(?P<name>[^\W\d]\w*|`(?:[^`\n]|``)+`)
      |(?P<number>[0-9]+(?:\.[0-9]+)?)
      |(?P<string>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
      |(?P<unclosed>['"`]|/\*)
      |(?P<symbol>\$[^\W\d]\w*|<=|>=|==|!=|<>|=>|:=|&&|\|\||->|.)""",
    re.VERBOSE | re.DOTALL,
)
_PHRASES = {
    **PHRASES,
    "PARAMETER": "a parameter",
    "SELECTION": "each, first or last",
    "ARROW": "'=>'",
    "BECOMES": "':='",
    "LBRACKET": "",
    "SEMICOLON": "';'",
    "PLUS": "'+'",
    **{word: word.lower() for word in KEYWORDS - {"TRUE", "FALSE"}},
}
_GROUPS = (
    (frozenset({"NUMBER", "STRING", "NAME", "LPAR", "MINUS"}), "a value"),
    (frozenset({"PLUS", "MINUS", "STAR", "SLASH"}), "an arithmetic operator"),
    (frozenset({"RULE", "ASSIGN", "DEFINE"}), "a rule"),
)
_FOREIGN = {
    "OR": "write two rules that define the same event",
    "||": "write two rules that define the same event",
    "|": "write two rules that define the same event",
    "&": "write `and` or a comma",
    "&&": "write `and` or a comma",
    "SELECT": "a rule is define … from … where …",
    "PATTERN": "a rule is define … from … where …",
    "FOLLOWED": "write the last event first: from B() and each A() within 5 min from B",
    "->": "write the last event first: from B() and each A() within 5 min from B",
    "ANY": "write each, first or last",
    "ALL": "write each, first or last",
    "NEXT": "write first or last",
    "UNTIL": "write not X(…) between A and B",
    "WITHOUT": "write not X(…) between A and B, or within 5 min from B",
    "GROUP": "bind what must be equal to a parameter: A(area = $a) … B(area = $a)",
    "PARTITION": "bind what must be equal to a parameter: A(area = $a) … B(area = $a)",
    "HAVING": "write the condition on the aggregate after `and` in from",
}


def _selected_terminator(stop: Stop) -> Explained | None:
    if stop.said(-1) == "FROM" and stop.said(0) in ("EACH", "FIRST", "LAST", "NOT"):
        found, span = stop.said(0), stop.span
    elif stop.said(-2) == "FROM" and stop.said(-1) in ("EACH", "FIRST", "LAST", "NOT"):
        before = stop.word(-1)
        assert before is not None
        found, span = stop.said(-1), before.span
    else:
        return None
    message = f"a rule starts at an event that is not selected: {found.lower()} cannot come first"
    return message, span, "put the latest event first: from B(…) and each A(…) within 5 min from B"


def _missing_from(stop: Stop) -> Explained | None:
    if stop.expected != {"FROM"} or stop.word(-1) is None or stop.said(-1) != ")":
        return None
    return "from is missing", stop.span, "a rule is define type(fields) from pattern where fields"


def _missing_brackets(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if "LPAR" not in stop.expected or before is None or before.kind != "name":
        return None
    if stop.found is not None and stop.said(0) not in (
        "AND",
        "WHERE",
        "WITHIN",
        "AS",
        "FROM",
        "BETWEEN",
        "DEFINE",
        ";",
    ):
        return None
    if stop.said(-1) in KEYWORDS:
        return None
    return f"brackets are missing after {before.text!r}", before.span, f"write {before.text}()"


def _negated_condition(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if stop.said(-1) != "NOT" or not stop.open_brackets or before is None:
        return None
    return "conditions in brackets are not negated", before.span, "write the opposite comparison: A(v != 3)"


def _wrong_number(stop: Stop) -> Explained | None:
    """`2-each A()`, `1.5-last A()`: up to there it was a difference."""
    before = stop.word(-1)
    if stop.said(-1) not in ("EACH", "FIRST", "LAST") or stop.said(-2) != "-" or before is None:
        return None
    hint = "write 2-first A(…) or 2-last A(…), with a whole number; each takes all there are"
    return "first and last can take a number of events", before.span, hint


def _comma_in_pattern(stop: Stop) -> Explained | None:
    if stop.said(0) != "," or stop.open_brackets or not {"AND", "WHERE"} <= stop.expected:
        return None
    return "events are not separated by commas", stop.span, "write `and` between them"


def _missing_and(stop: Stop) -> Explained | None:
    if stop.found is None or "AND" not in stop.expected or stop.said(0) in stop.dialect.foreign:
        return None
    starts = stop.found.kind in ("name", "string") or stop.found.text.startswith("$")
    is_misspelt = get_close_matches(stop.said(0), stop.expected & KEYWORDS, n=1, cutoff=0.7)
    if not starts or is_misspelt or stop.said(0) in KEYWORDS - {"EACH", "FIRST", "LAST", "NOT"}:
        return None
    inside = " or a comma" if stop.open_brackets or "WHERE" not in stop.expected else ""
    return f"`and`{inside} is missing before {stop.found.text!r}", stop.span, None


def _condition_in_where(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if "BECOMES" not in stop.expected or stop.said(0) != "." or before is None:
        return None
    hint = "write field = value; conditions stand in the brackets of events: A(v > 3)"
    return "`where` sets the fields of the defined event", before.span, hint


def _field_without_kind(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if stop.said(0) not in (",", ")") or "COLON" not in stop.expected or before is None:
        return None
    return f"the field {before.text!r} has no kind", before.span, f"write {before.text}: int, double, string or bool"


def _alias_after_window(stop: Stop) -> Explained | None:
    if stop.said(0) != "AS":
        return None
    return "an alias stands right after the brackets", stop.span, "write each A(…) as X within 5 min from B"


def _parameter_without_sign(stop: Stop) -> Explained | None:
    if stop.said(-1) != "=>" or stop.found is None or stop.found.kind != "name" or "PARAMETER" not in stop.expected:
        return None
    return "=> binds a parameter", stop.span, f"write ${stop.found.text}"


TESLA = Dialect(
    name="TESLA",
    keywords=KEYWORDS,
    openers=OPENERS,
    words=_WORDS,
    phrases=_PHRASES,
    groups=_GROUPS,
    foreign=_FOREIGN,
    mistakes=(
        _selected_terminator,
        _missing_from,
        _parameter_without_sign,
        _field_without_kind,
        _missing_brackets,
        _negated_condition,
        _wrong_number,
        _comma_in_pattern,
        _condition_in_where,
        _alias_after_window,
        _missing_and,
    ),
    ignores_case=True,
)
