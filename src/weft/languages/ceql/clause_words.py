"""The keywords of CEQL, and how to locate a syntax error by them: its clause, and unclosed quotes."""

from __future__ import annotations

import re

from weft.languages.stops import BRACKETS, Stop, Word
from weft.source import Span

# The words that begin a clause or a statement.
CLAUSES = frozenset(
    {
        "SELECT",
        "FROM",
        "WHERE",
        "PARTITION",
        "WITHIN",
        "CONSUME",
        "LIMIT",
        "SESSION",
        "ORDER",
        "QUERY",
        "CREATE",
        "DECLARE",
    }
)
KEYWORDS = CLAUSES | {
    *("FILTER", "AS", "OR", "AND", "NOT", "IN", "RANGE", "LIKE", "MATCHES", "TRUE", "FALSE"),
    *("BETWEEN", "IS", "NULL", "EVERY", "ASC", "DESC"),
    *("NONE", "BY", "STREAM", "EVENT", "QUARANTINE"),
}

KNOWN_SYMBOLS = frozenset(
    {*BRACKETS, *BRACKETS.values(), *",;:.+-*/%?", ":+", "<", "<=", ">", ">=", "=", "==", "!=", "<>"}
)

WORDS = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
      |(?P<name>[^\W\d]\w*|`(?:[^`\n]|``)+`)
      |(?P<number>[0-9]+(?:\.[0-9]+)?)
      |(?P<string>'(?:[^'\n]|'')*'|"(?:[^"\n]|"")*")
      |(?P<unclosed>['"`]|/\*)
      |(?P<symbol>:\s*\+|<=|>=|==|!=|<>|&&|\|\||->|=>|.)""",
    re.VERBOSE | re.DOTALL,
)


def clause_of(stop: Stop) -> str:
    """The keyword of the clause we are in; FILTER counts as one, up to the bracket it stands in."""
    depth = 0
    for word in reversed(stop.words[: stop.index]):
        if word.text in BRACKETS.values():
            depth += 1
        elif word.text in BRACKETS:
            depth = max(0, depth - 1)
        elif word.is_name and (word.upper in CLAUSES or (word.upper == "FILTER" and depth == 0)):
            return word.upper
    return ""


def unclosed_at(stop: Stop) -> Word | None:
    """The quote or comment that is opened here, or shortly before, and never closed."""
    for word in stop.words[stop.index :]:
        if "\n" in stop.text[stop.span.start : word.span.start]:
            break
        if word.kind == "unclosed":
            before = stop.word(-1)
            # A closing quote that is missing earlier on the line turns texts inside out.
            inside_out = before is not None and before.kind == "string" and word is not stop.found
            if inside_out and before is not None:
                return Word(before.text[0], Span(before.span.start, before.span.start + 1), "unclosed")
            return word
    return None
