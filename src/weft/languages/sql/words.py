"""SQL texts as words: names, numbers, strings and symbols, without comments, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft.source import Span

WORDS = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
      |(?P<name>[^\W\d]\w*|"(?:[^"]|"")+"|`(?:[^`]|``)+`)
      |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[A-Za-z]{0,2})
      |(?P<string>'(?:[^']|'')*')
      |(?P<unclosed>['"`]|/\*)
      |(?P<symbol><=>|<=|>=|<>|!=|==|\|\||::|=>|->|\{-|-\}|.)""",
    re.VERBOSE | re.DOTALL,
)


def word_set(text: str) -> frozenset[str]:
    """The words of a text that are separated by spaces."""
    return frozenset(text.split())


OPENING = {"(": ")", "[": "]", "{": "}", "{-": "-}"}
CLOSING = frozenset(OPENING.values())


@dataclass(frozen=True, slots=True)
class SqlWord:
    """A name (also quoted), number, string or symbol of an SQL text."""

    text: str
    span: Span
    kind: str  # name, number, string, symbol, unclosed

    @property
    def quoted(self) -> bool:
        """Whether it is a quoted name."""
        return self.text[0] in '"`'

    @property
    def upper(self) -> str:
        """The word as keywords are compared; a quoted name is none."""
        return "" if self.kind != "name" or self.quoted else self.text.upper()

    def says(self, *texts: str) -> bool:
        """Whether it is one of these keywords or symbols."""
        return (self.upper if self.kind == "name" else self.text) in texts


def words_of(text: str, span: Span | None = None) -> tuple[SqlWord, ...]:
    """The words of a text, or of a part of it; places are those in the whole text."""
    start, end = (0, len(text)) if span is None else (span.start, span.end)
    return tuple(
        SqlWord(found[0], Span(*found.span()), found.lastgroup or "symbol")
        for found in WORDS.finditer(text, start, end)
        if found.lastgroup != "skip"
    )


def unquoted(text: str) -> str:
    """A name without the quotes around it."""
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote) if quote in '"`' else text


def partner(words: tuple[SqlWord, ...], index: int) -> int | None:
    """The index of the bracket that closes the one at an index; None if it is never closed."""
    depth = 0
    for position in range(index, len(words)):
        word = words[position]
        if word.kind != "symbol":
            continue
        depth += (word.text in OPENING) - (word.text in CLOSING)
        if depth == 0:
            return position
    return None
