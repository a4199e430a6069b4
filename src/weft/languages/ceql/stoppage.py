"""The place where parsing stopped: the words around it, the clause it is in, and the brackets open there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft.source import Span

BRACKETS = {"(": ")", "[": "]", "{": "}"}

# The words that begin a clause or a statement.
CLAUSES = frozenset(
    {"SELECT", "FROM", "WHERE", "PARTITION", "WITHIN", "CONSUME", "LIMIT", "QUERY", "CREATE", "DECLARE"}
)
KEYWORDS = CLAUSES | {
    *("FILTER", "AS", "OR", "AND", "NOT", "IN", "RANGE", "LIKE", "MATCHES", "TRUE", "FALSE"),
    *("NONE", "BY", "STREAM", "EVENT", "QUARANTINE"),
}

KNOWN_SYMBOLS = frozenset(
    {*BRACKETS, *BRACKETS.values(), *",;:.+-*/%", ":+", "<", "<=", ">", ">=", "=", "==", "!=", "<>"}
)

_WORD = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
      |(?P<name>[^\W\d]\w*|`(?:[^`\n]|``)+`)
      |(?P<number>[0-9]+(?:\.[0-9]+)?)
      |(?P<string>'(?:[^'\n]|'')*'|"(?:[^"\n]|"")*")
      |(?P<unclosed>['"`]|/\*)
      |(?P<symbol>:\s*\+|<=|>=|==|!=|<>|&&|\|\||->|=>|.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Word:
    """A word or symbol of the text."""

    text: str
    span: Span
    kind: str

    @property
    def upper(self) -> str:
        """The word in capitals, as keywords are compared."""
        return self.text.upper()

    @property
    def is_name(self) -> bool:
        """Whether it looks like a name (keywords do too)."""
        return self.kind == "name"


@dataclass(frozen=True)
class Stoppage:
    """Where parsing stopped. `found` is the word there, None at the end of the text."""

    text: str
    words: tuple[Word, ...]
    index: int
    expected: frozenset[str]  # the grammar's terminals that could have come

    @property
    def found(self) -> Word | None:
        """The word that was not expected."""
        return self.words[self.index] if self.index < len(self.words) else None

    @property
    def span(self) -> Span:
        """The unexpected word, or the end of the text."""
        if self.found is not None:
            return self.found.span
        end = len(self.text.rstrip())
        return Span(end, end)

    def word(self, distance: int) -> Word | None:
        """The word so many places from the unexpected one."""
        index = self.index + distance
        return self.words[index] if 0 <= index < len(self.words) else None

    def line_of(self, word: Word) -> int:
        """The one-based line of a word."""
        return self.text.count("\n", 0, word.span.start) + 1

    @property
    def clause(self) -> str:
        """The keyword of the clause we are in; FILTER counts as one, up to the bracket it stands in."""
        depth = 0
        for word in reversed(self.words[: self.index]):
            if word.text in BRACKETS.values():
                depth += 1
            elif word.text in BRACKETS:
                depth = max(0, depth - 1)
            elif word.is_name and (word.upper in CLAUSES or (word.upper == "FILTER" and depth == 0)):
                return word.upper
        return ""

    @property
    def open_brackets(self) -> tuple[Word, ...]:
        """The brackets of this statement that are open here, outermost first."""
        stack: list[Word] = []
        for word in self.words[: self.index]:
            if word.text in BRACKETS:
                stack.append(word)
            elif word.text in BRACKETS.values() and stack:
                stack.pop()
        return tuple(stack)

    @property
    def unclosed(self) -> Word | None:
        """The quote or comment that is opened here, or shortly before, and never closed."""
        for word in self.words[self.index :]:
            if "\n" in self.text[self.span.start : word.span.start]:
                break
            if word.kind == "unclosed":
                before = self.word(-1)
                # A closing quote that is missing earlier on the line turns texts inside out.
                inside_out = before is not None and before.kind == "string" and word is not self.found
                if inside_out and before is not None:
                    return Word(before.text[0], Span(before.span.start, before.span.start + 1), "unclosed")
                return word
        return None


def stoppage_at(text: str, offset: int, expected: frozenset[str]) -> Stoppage:
    """The text cut into words, and which of them stands at the offset."""
    words = []
    for match in _WORD.finditer(text):
        kind = match.lastgroup or "symbol"
        if kind != "skip":
            words.append(Word(match[0], Span(*match.span()), kind))
    index = next((i for i, word in enumerate(words) if word.span.end > offset), len(words))
    return Stoppage(text, tuple(words), index, expected)
