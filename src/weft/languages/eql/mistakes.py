"""What the messages about EQL's syntax know of it, and its typical mistakes."""

from __future__ import annotations

import re

from weft.languages.counts import broken_count
from weft.languages.stops import PHRASES, Dialect, Explained, Stop, bracketed_attribute, chained_comparison

KEYWORDS = frozenset(
    {
        *("SOURCE", "SINK", "RATE", "TO", "SELECT", "FROM", "WHERE", "INTO"),
        *("AND", "OR", "NOT", "CONTAINS", "OCCURS", "WITHIN", "TRUE", "FALSE"),
    }
)
OPENERS = frozenset({"SELECT", "FROM", "WHERE", "INTO"})

_WORDS = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
      |(?P<name>[^\W\d]\w*|`(?:[^`\n]|``)+`)
      |(?P<number>[0-9]+(?:\.[0-9]+)?)
      |(?P<string>'(?:[^'\n]|'')*'|"(?:[^"\n]|"")*")
      |(?P<unclosed>['"`]|/\*)
      |(?P<symbol><=|>=|==|!=|<>|&&|\|\||->|=>|;\?|\+\?|.)""",
    re.VERBOSE | re.DOTALL,
)
_GROUPS = (
    (frozenset({"NUMBER", "STRING", "NAME", "OPEN", "MINUS"}), "a value"),
    (frozenset({"PLUS", "MINUS", "STAR", "SLASH"}), "an arithmetic operator"),
    (frozenset({"SEMICOLON", "BACKSLASH", "VBAR", "PLUS", "LBRACE", "AT"}), "an operator (; \\ | + {n} @)"),
    (frozenset({"SEMICOLON", "BACKSLASH", "VBAR"}), "an operator (; \\ |)"),
    (frozenset({"SOURCE", "SINK", "SELECT"}), "a definition or a query"),
)
_FOREIGN = {
    "&&": "write AND",
    "||": "write OR",
    "!": "write NOT",
    "->": "a sequence is written A ; B",
    "=>": "a sequence is written A ; B",
    ";?": "EQL's ; always takes the next event; FILTER(…) says which are passed over",
    "+?": "EQL's + finds all runs already",
    "PARTITION": "say what must be equal: FILTER(a.id = b.id)",
    "GROUP": "say what must be equal: FILTER(a.id = b.id)",
    "HAVING": "put all conditions into WHERE",
    "LIKE": "write field CONTAINS 'text'",
    "DEFINE": "write SOURCE type (attribute kind, …) FROM 'uri'",
    "CREATE": "write SOURCE type (attribute kind, …) FROM 'uri'",
}


def _nothing_selected(stop: Stop) -> Explained | None:
    keyword = stop.word(-1)
    if stop.said(-2) != "SELECT" or stop.said(-1) != "FROM" or keyword is None:
        return None
    return "nothing is selected", keyword.span, "write SELECT * to select everything, or fields: SELECT a.price"


def _keyword_as_name(stop: Stop) -> Explained | None:
    """A clause began where an event was due, so its keyword was read as the event's type."""
    for distance in (-1, -2):
        before, keyword = stop.word(distance - 1), stop.word(distance)
        if before is None or keyword is None or stop.said(distance) not in OPENERS:
            continue
        if before.text in (";", "|", "\\", "(") or stop.said(distance - 1) == "FROM":
            message = f"an event is missing between {before.text!r} and {keyword.text!r}"
            return message, keyword.span, f"to use {keyword.text!r} as a name, put it in back-quotes: `{keyword.text}`"
    return None


def _alias_with_as(stop: Stop) -> Explained | None:
    word = stop.word(-1)
    if word is None or stop.said(-1) != "AS" or stop.found is None or stop.found.kind != "name":
        return None
    return "an alias stands without 'AS'", word.span, f"the alias follows the type without a word: A {stop.found.text}"


def _missing_from(stop: Stop) -> Explained | None:
    if stop.said(0) != "WHERE" or "FROM" not in stop.expected:
        return None
    return "FROM is missing", stop.span, "a query is SELECT … FROM pattern WHERE conditions"


def _late_definition(stop: Stop) -> Explained | None:
    if stop.said(0) not in ("SOURCE", "SINK") or stop.said(0) in stop.expected:
        return None
    return f"{stop.said(0)} comes too late", stop.span, "define sources and sinks before the first query"


def _semicolon_at_the_end(stop: Stop) -> Explained | None:
    found = stop.word(-1) if stop.found is None or stop.said(0) == "SELECT" else stop.found
    if found is None or found.text != ";" or "SEMICOLON" in stop.expected:
        return None
    hint = "leave it out: ';' joins events, and queries follow one another without a separator"
    return "this ';' joins nothing", found.span, hint


def _missing_operator(stop: Stop) -> Explained | None:
    if stop.found is None or not {"SEMICOLON", "VBAR"} <= stop.expected:
        return None
    before = stop.word(-1)
    if before is None or (stop.found.kind != "name" and stop.found.text != "(") or stop.said(0) in stop.dialect.foreign:
        return None
    message = f"an operator is missing between {before.text!r} and {stop.found.text!r}"
    return message, stop.span, "events are joined by ; (followed by), | (or) and \\ (without)"


def _comma_in_pattern(stop: Stop) -> Explained | None:
    if stop.said(0) != "," or not {"SEMICOLON", "VBAR"} <= stop.expected:
        return None
    return "events are not separated by commas", stop.span, "write A a ; B b for an A followed by a B"


def _missing_comma(stop: Stop) -> Explained | None:
    if stop.found is None or stop.found.kind != "name" or not {"COMMA", "AND", "OR"} <= stop.expected:
        return None
    if stop.said(0) in KEYWORDS or stop.said(0) in stop.dialect.foreign:
        return None
    return f"a comma is missing before {stop.found.text!r}", stop.span, "conditions are separated by commas or AND"


EQL = Dialect(
    name="EQL",
    keywords=KEYWORDS,
    openers=OPENERS,
    words=_WORDS,
    phrases=PHRASES,
    groups=_GROUPS,
    foreign=_FOREIGN,
    mistakes=(
        broken_count,
        _nothing_selected,
        _keyword_as_name,
        _alias_with_as,
        _missing_from,
        _late_definition,
        _semicolon_at_the_end,
        bracketed_attribute,
        _comma_in_pattern,
        _missing_operator,
        _missing_comma,
        chained_comparison,
    ),
    ignores_case=True,
)
