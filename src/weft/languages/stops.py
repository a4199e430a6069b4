"""Syntax errors in terms of the language: the place where parsing stopped, and what was probably meant there.

A language describes itself by a `Dialect`; mistakes that all languages share are recognised here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from lark import Token, UnexpectedInput, UnexpectedToken

from weft.errors import Diagnostic
from weft.source import SourceText, Span

BRACKETS = {"(": ")", "[": "]", "{": "}"}
PHRASES = {  # what terminals are called that have one name in all grammars; those without a phrase are never suggested
    **{"NAME": "a name", "NUMBER": "a number", "STRING": "a text in quotes", "COMPARE": "a comparison"},
    **{"FUNCTION": "", "TRUE": "", "FALSE": ""},
    **{"LPAR": "'('", "OPEN": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "RBRACKET": "']'"},
    **{"LBRACE": "'{'", "RBRACE": "'}'", "COMMA": "','", "DOT": "'.'", "COLON": "':'"},
    **{"STAR": "'*'", "MINUS": "'-'", "SLASH": "'/'"},
}
COMPARISONS = ("<", "<=", ">", ">=", "=", "==", "!=", "<>")
Explained = tuple[str, Span, str | None]  # message, place, hint


@dataclass(frozen=True)
class Word:
    """A word or symbol of the text."""

    text: str
    span: Span
    kind: str  # name, number, string, symbol, unclosed

    @property
    def upper(self) -> str:
        """The word in capitals."""
        return self.text.upper()

    @property
    def is_name(self) -> bool:
        """Whether it looks like a name (keywords do too)."""
        return self.kind == "name"


@dataclass(frozen=True)
class Stop:
    """Where parsing stopped. `found` is the word there, None at the end of the text."""

    text: str
    words: tuple[Word, ...]
    index: int
    expected: frozenset[str]  # the grammar's terminals that could have come
    dialect: Dialect

    @property
    def found(self) -> Word | None:
        """The word that was not expected."""
        return self.word(0)

    @property
    def span(self) -> Span:
        """The unexpected word, or the end of the text."""
        end = len(self.text.rstrip())
        return self.found.span if self.found is not None else Span(end, end)

    def word(self, distance: int) -> Word | None:
        """Return the word at a distance from the unexpected one, or None."""
        index = self.index + distance
        return self.words[index] if 0 <= index < len(self.words) else None

    def said(self, distance: int) -> str:
        """Return the text of the word at a distance, normalised for comparison with keywords, or an empty text."""
        word = self.word(distance)
        return self.dialect.fold(word.text) if word is not None else ""

    @property
    def open_brackets(self) -> tuple[Word, ...]:
        """The brackets that are open here, outermost first."""
        stack: list[Word] = []
        for word in self.words[: self.index]:
            if word.text in BRACKETS:
                stack.append(word)
            elif word.text in BRACKETS.values() and stack:
                stack.pop()
        return tuple(stack)


Mistake = Callable[[Stop], Explained | None]


@dataclass(frozen=True)
class Dialect:
    """What the messages about a language's syntax need to know of it."""

    name: str
    keywords: frozenset[str]
    openers: frozenset[str]  # keywords that begin a clause or statement: brackets never go on past them
    words: re.Pattern[str]  # cuts a text into words; the groups are Word's kinds, and `skip`
    phrases: Mapping[str, str]  # what the grammar's terminals are called
    groups: tuple[tuple[frozenset[str], str], ...]  # terminals that are called by one phrase when all can come
    foreign: Mapping[str, str]  # words of other languages, and what to write instead
    mistakes: tuple[Mistake, ...]
    ignores_case: bool = False
    quotes: Mistake | None = None  # what it says of a quote that is never closed, when that is more than all say

    def fold(self, text: str) -> str:
        """A word as keywords are compared."""
        return text.upper() if self.ignores_case else text


def explain(source: SourceText, unexpected: UnexpectedInput, dialect: Dialect) -> Diagnostic:
    """The error that stopped the parser, explained."""
    stop = _stop_at(source.text, _offset(source.text, unexpected), _accepted(unexpected), dialect)
    for mistake in (dialect.quotes or _unclosed_quote, *dialect.mistakes, *SHARED):
        explained = mistake(stop)
        if explained is not None:
            message, span, hint = explained
            return Diagnostic("syntax", message, source, span, hint)
    message, span, hint = _anything(stop)
    return Diagnostic("syntax", message, source, span, hint)


def _stop_at(text: str, offset: int, expected: frozenset[str], dialect: Dialect) -> Stop:
    words = [
        Word(found[0], Span(*found.span()), found.lastgroup or "symbol")
        for found in dialect.words.finditer(text)
        if found.lastgroup != "skip"
    ]
    index = next((i for i, word in enumerate(words) if word.span.end > offset), len(words))
    return Stop(text, tuple(words), index, expected, dialect)


def _offset(text: str, unexpected: UnexpectedInput) -> int:
    if not isinstance(unexpected, UnexpectedToken):
        return unexpected.pos_in_stream or 0
    if unexpected.token.type == "$END" or not isinstance(unexpected.token, Token):
        return len(text)
    return unexpected.token.start_pos or 0


_UNSAID = {"DOTTED"}  # where it may stand, a name may


def _accepted(unexpected: UnexpectedInput) -> frozenset[str]:
    if isinstance(unexpected, UnexpectedToken):
        return frozenset(unexpected.accepts or unexpected.expected) - _UNSAID
    return frozenset(getattr(unexpected, "allowed", None) or ()) - _UNSAID


# ---------------------------------------------------------------- mistakes that all languages share


def _unclosed_quote(stop: Stop) -> Explained | None:
    opening = next((word for word in stop.words[stop.index :] if word.kind == "unclosed"), None)
    if opening is None:
        return None
    if opening.text == "/*":
        return "this comment is never closed", opening.span, "close it with */"
    return f"this {opening.text} is never closed", opening.span, f"close it with {opening.text}"


def unclosed_bracket(stop: Stop) -> Explained | None:
    """A bracket that is open at the end of its clause, or closed by one of another kind."""
    if not stop.open_brackets:
        return None
    opening = stop.open_brackets[-1]
    closing = BRACKETS[opening.text]
    if stop.found is None or stop.said(0) in stop.dialect.openers:
        return f"this {opening.text!r} is never closed", opening.span, f"close it with {closing!r}"
    if stop.found.text in BRACKETS.values() and stop.found.text != closing:
        line = stop.text.count("\n", 0, opening.span.start) + 1
        message = f"{stop.found.text!r} does not match the {opening.text!r} in line {line}"
        return message, stop.span, f"that one is closed with {closing!r}"
    return None


def closing_without_opening(stop: Stop) -> Explained | None:
    """A bracket that closes nothing."""
    if stop.open_brackets or stop.found is None or stop.found.text not in BRACKETS.values():
        return None
    return f"this {stop.found.text!r} closes nothing", stop.span, "remove it, or add the opening one"


def misspelt_keyword(stop: Stop) -> Explained | None:
    """A word that looks like a keyword that could have come."""
    if stop.found is None or stop.found.kind != "name":
        return None
    near = get_close_matches(stop.said(0), sorted(stop.expected & stop.dialect.keywords), n=1, cutoff=0.7)
    return (f"{stop.found.text!r} is not expected here", stop.span, f"did you mean {near[0]}?") if near else None


def foreign(stop: Stop) -> Explained | None:
    """A word of another language."""
    hint = stop.dialect.foreign.get(stop.said(0))
    if hint is None or stop.found is None:
        return None
    return f"{stop.found.text!r} is not {stop.dialect.name}", stop.span, hint


# ---------------------------------------------------------------- mistakes that some languages share


def bracketed_attribute(stop: Stop) -> Explained | None:
    """`a[x]` where attributes are written with a dot."""
    before, after = stop.word(-1), stop.word(1)
    if stop.said(0) != "[" or before is None or before.kind != "name" or "DOT" not in stop.expected:
        return None
    attribute = after.text if after else "attribute"
    return "attributes are written with a dot", stop.span, f"write {before.text}.{attribute}"


def chained_comparison(stop: Stop) -> Explained | None:
    """`1 < a.x < 3`."""
    if stop.said(0) not in COMPARISONS or "COMPARE" in stop.expected or "AND" not in stop.expected:
        return None
    return "comparisons cannot be chained", stop.span, "compare twice: low < a.x and a.x < high"


# ---------------------------------------------------------------- the last resort


def _anything(stop: Stop) -> Explained:
    expected = expected_words(stop)
    if stop.found is None:
        return f"the text ends too early: {expected} is missing", stop.span, None
    return f"{stop.found.text!r} is not expected here; expected {expected}", stop.span, None


SHARED: tuple[Mistake, ...] = (unclosed_bracket, closing_without_opening, misspelt_keyword, foreign)


def expected_words(stop: Stop) -> str:
    """`a, b or c`: what could have come."""
    left = set(stop.expected) - {"$END"}
    said = []
    for group, phrase in stop.dialect.groups:
        if group <= stop.expected and group & left:
            said.append(phrase)
            left -= group
    said += [stop.dialect.phrases.get(terminal, terminal) for terminal in sorted(left)]
    said = list(dict.fromkeys(word for word in said if word))[:7]
    if not said:
        return "the end of the text"
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"
