"""What the messages about Step's syntax know of it, and its typical mistakes."""

from __future__ import annotations

import re

from weft.languages.counts import broken_count
from weft.languages.stops import PHRASES, Dialect, Explained, Stop, Word

KEYWORDS = frozenset({"topology", "external", "contains", "true", "false"})
OPENERS = frozenset({"external"})

_WORDS = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      |(?P<name>\^?[A-Za-z_][A-Za-z_0-9]*)
      |(?P<number>[0-9]+(?:\.[0-9]+)?)
      |(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      |(?P<unclosed>['"]|/\*)
      |(?P<symbol><=|>=|==|!=|<>|&&|\|\||->|=>|;\?|\+\?|.)""",
    re.VERBOSE | re.DOTALL,
)
_PHRASES = {
    **PHRASES,
    "PREV": "",
    "DUR": "",
    "LEN": "",
    "CONTAINS": "contains",
    "TOPOLOGY": "topology",
    "EXTERNAL": "external",
    "BANG": "'!'",
    "_AND": "'&&'",
    "_OR": "'||'",
    "VBAR": "'|'",
    "NEXT": "';'",
    "ITERATE": "'+'",
    "CLOSE_COUNT": "'}'",
    "LESSTHAN": "'<'",
    "MORETHAN": "'>'",
}
_GROUPS = (
    (frozenset({"NUMBER", "STRING", "NAME", "LPAR", "MINUS", "BANG"}), "a value"),
    (frozenset({"PLUS", "MINUS", "STAR", "SLASH"}), "an arithmetic operator"),
    (frozenset({"NEXT", "ITERATE", "LBRACE", "COMMA", "VBAR"}), "an operator (; ;? , | + +? {n})"),
    (frozenset({"NEXT", "COMMA", "VBAR"}), "an operator (; ;? , |)"),
)
_FOREIGN = {
    "==": "equality is written with one =",
    "<>": "write !=",
    "AND": "write &&",
    "OR": "write ||",
    "NOT": "write !",
    "and": "write &&",
    "or": "write ||",
    "not": "write !",
    "&": "write &&",
    "->": "a sequence is written A ; B",
    "=>": "a sequence is written A ; B",
    "\\": "what must not happen is written with !, as in A ; !B ; C",
    "@": "there is no time operator; limit the duration by [dur < 100]",
    "SELECT": "a query is written Name(fields): pattern",
    "as": "an alias is written A/A1",
    "AS": "an alias is written A/A1",
}


def _late_declaration(stop: Stop) -> Explained | None:
    """Where only a query's name can stand, `external` and `topology` were read as one."""
    word = stop.word(-1)
    if word is None or word.text not in ("external", "topology") or stop.expected != {"LPAR"}:
        return None
    hint = "a program is its topology, then all externals, then the queries"
    return f"{word.text!r} comes too late", word.span, hint


def _read_as_a_query(stop: Stop) -> Explained | None:
    """A word that was read as the name of the next query, and has no projection."""
    before, word = stop.word(-2), stop.word(-1)
    if stop.expected != {"LPAR"} or word is None or word.kind != "name":
        return None
    if word.text in stop.dialect.foreign:
        return f"{word.text!r} is not Step", word.span, stop.dialect.foreign[word.text]
    if before is None or before.kind == "string" or "\n" in stop.text[before.span.end : word.span.start]:
        return None
    return _operator_between(before, word)


def _missing_projection(stop: Stop) -> Explained | None:
    name = stop.word(-1)
    if stop.said(0) != ":" or name is None or name.kind != "name" or stop.expected != {"LPAR"}:
        return None
    hint = f"write {name.text}(*): … for all of it, or {name.text}(A.x, B.y): … for fields"
    return f"{name.text!r} has no projection", stop.span, hint


def _missing_colon(stop: Stop) -> Explained | None:
    if stop.expected != {"COLON"} or stop.said(-1) != ")" or stop.found is None:
        return None
    return "a ':' is missing before the pattern", stop.span, "a query is written Name(fields): pattern"


def _condition_without_brackets(stop: Stop) -> Explained | None:
    """`A.x` in a pattern, outside brackets."""
    if stop.said(0) != "." or not {"NEXT", "VBAR"} <= stop.expected:
        return None
    return "a field stands in the pattern", stop.span, "conditions go into brackets: A ;[A.x = B.x] B"


def _sink_without_quotes(stop: Stop) -> Explained | None:
    if stop.expected != {"STRING"} or stop.found is None or stop.said(-1) not in (">", "<", "topology"):
        return None
    return "this name needs quotes", stop.span, f'write {stop.said(-1)} "{stop.found.text}"'


def _two_iterations(stop: Stop) -> Explained | None:
    if stop.said(0) not in ("+", "+?", "{") or "NEXT" not in stop.expected:
        return None
    if stop.said(0) == "{" and stop.said(-1) in ("+", "+?"):
        return "a count after '+'", stop.span, "a count stands for the +: A{3}, or A{3}? for all sub-sequences"
    return "a second iteration", stop.span, "put the first into parentheses: (A +) +"


def _missing_operator(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if stop.found is None or before is None or not {"NEXT", "VBAR"} <= stop.expected:
        return None
    if (stop.found.kind != "name" and stop.found.text != "(") or stop.said(0) in stop.dialect.foreign:
        return None
    return _operator_between(before, stop.found)


def _operator_between(before: Word, word: Word) -> Explained:
    message = f"an operator is missing between {before.text!r} and {word.text!r}"
    return message, word.span, "events are joined by ; (followed by), ;? (by any), ',' (at the same time) and | (or)"


def _missing_bracket(stop: Stop) -> Explained | None:
    if stop.found is None or stop.found.kind != "name" or not {"RBRACKET", "_AND"} <= stop.expected:
        return None
    if stop.said(0) in stop.dialect.foreign or stop.said(0) in KEYWORDS:
        return None
    return f"a ']' is missing before {stop.found.text!r}", stop.span, "or join the conditions with && or ||"


STEP = Dialect(
    name="Step",
    keywords=KEYWORDS,
    openers=OPENERS,
    words=_WORDS,
    phrases=_PHRASES,
    groups=_GROUPS,
    foreign=_FOREIGN,
    mistakes=(
        _late_declaration,
        _missing_projection,
        _read_as_a_query,
        _missing_bracket,
        _missing_colon,
        _condition_without_brackets,
        _sink_without_quotes,
        _two_iterations,
        broken_count,
        _missing_operator,
    ),
)
