"""Parse texts with many parts of few forms: parts that differ only in names and constants are parsed once.

A part's *form* is its sequence of tokens, in which names and constants (free tokens) are represented by their kind.
The parser sees a form once; its tree, with numbers instead of tokens, is reused for every part of that form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lark import Lark, Token, Tree
from lark.lexer import PatternStr, TerminalDef

from weft.languages.tokens import Child, ExpressionRules

_MOST_FORMS = 4096
Placed = tuple[str, int, int]  # the text of a token, and where it begins and ends
Reduction = tuple[Callable[[list[Child]], Child], tuple[int, ...]]


@dataclass(frozen=True)
class Form:
    """How the nodes of a part are made of its tokens: the reductions of the parser, in order.

    What a reduction takes are numbers: of tokens, then of one absent, then of the results of earlier reductions.
    """

    tokens: tuple[int, ...]  # those that are needed
    absent: int
    reductions: tuple[Reduction, ...]

    def build(self, part: Sequence[Placed]) -> Child:
        """What the parser would make of a part of this form."""
        known: list[Child] = [None] * (self.absent + 1)
        for number in self.tokens:
            text, start, end = part[number]
            known[number] = Token("", text, start, end_pos=end)
        for reduce, taken in self.reductions:
            known.append(reduce([known[number] for number in taken]))
        return known[-1]


class Misplaced(Exception):
    """The parser took a token from the middle of another: a part like it may be cut in another place."""


class Forms:
    """The forms of a language that were met so far."""

    def __init__(self, parser: Lark, nodes: ExpressionRules, free: Collection[str]) -> None:
        """`nodes` has a method for every rule of the grammar; `free` are the terminals represented by their kind.

        Keywords are case-insensitive.
        """
        self._parser = parser
        self._nodes = nodes
        ignored = parser.lexer_conf.ignore
        patterns = {t.name: t.pattern.to_regexp() for t in sorted(parser.terminals, key=_rank)}
        words = [t.pattern.value for t in parser.terminals if isinstance(t.pattern, PatternStr)]
        # A keyword is found as one of the free terminals, so it need not be looked for.
        self._keywords = {word.lower() for word in words if any(re.fullmatch(patterns[kind], word) for kind in free)}
        blank = "|".join(patterns.pop(kind) for kind in ignored)
        sought = ((kind, pattern) for kind, pattern in patterns.items() if kind.lower() not in self._keywords)
        tokens = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in sought)
        self._scan = re.compile(f"(?:{blank})*(?:{tokens}|(?P<unknown>.)|$)", re.DOTALL).finditer
        self._kinds = {place: kind for kind, place in re.compile(tokens).groupindex.items() if kind in free}
        self._known: dict[tuple[str, ...], Form] = {}

    def tokens(self, text: str) -> Iterator[tuple[str, Placed]]:
        """Yield the tokens of a text with their part of the form: the kind of a free token, the text of any other."""
        kinds, keywords = self._kinds, self._keywords
        for found in self._scan(text):
            place = found.lastindex
            if place is None:  # the end
                continue
            word, (start, end) = found[place], found.span(place)
            share = word.lower()
            if place in kinds and share not in keywords:
                share = kinds[place]
            yield share, (word, start, end)

    def parse(self, text: str, form: Sequence[str], part: Sequence[Placed]) -> Child:
        """What the parser makes of a part of a text; raises UnexpectedInput, or Misplaced, where it does not fit."""
        key = tuple(form)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_FORMS:
                self._known.clear()
            begin, end = part[0][1], part[-1][2]
            places = {(start - begin, stop - begin): number for number, (_, start, stop) in enumerate(part)}
            known = self._known[key] = self._form(self._parser.parse(text[begin:end]), places)
        return known.build(part)

    def _form(self, tree: Tree[Token], places: Mapping[tuple[int, int], int]) -> Form:
        """The form of a part that was parsed; `places` has the numbers of its tokens by where they are."""
        absent = len(places)
        needed: dict[int, None] = {}
        reductions: list[Reduction] = []

        def number(child: Any) -> int:
            if child is None:
                return absent
            if isinstance(child, Token):
                place = places.get((child.start_pos or 0, child.end_pos or 0))
                if place is None:
                    raise Misplaced
                needed[place] = None
                return place
            reductions.append((getattr(self._nodes, child.data), tuple(map(number, child.children))))
            return absent + len(reductions)

        number(tree)
        return Form(tuple(needed), absent, tuple(reductions))


def _rank(terminal: TerminalDef) -> tuple[int, int, int, str]:
    """The order in which terminals are tried: that of lark."""
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name
