"""How large the parts of a program may be: what is larger is refused with its place, before it costs time or memory.

All limits of program texts are here, and `docs/operations.md` lists them. None is near what people write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from weft.errors import Diagnostic, ProgramError
from weft.languages.syntax import And, Expression, Or, SyntaxNode, chain
from weft.source import SourceText, Span
from weft.tree import Node

Tree = TypeVar("Tree", bound=SyntaxNode)

MOST_CHARACTERS = 2_000  # of the pattern of a LIKE or MATCHES
MOST_DIGITS = 1_000  # of a number; Python itself reads no more than 4,300
MOST_NESTED = 200  # operators, one the operand of the other: there are two in `A ; B ; C`
MOST_PARTS = 1_000  # conditions joined by one AND or OR, or listed; events of a rule, fields of a query
MOST_EVENTS = 200  # of a CEQL pattern whose counts are written out
MOST_FILTERS = 200  # conditions of a CEQL filter beside each other, outside brackets
MOST_ALTERNATIVES = 200  # patterns that a CEQL filter stands for: OR adds up, AND multiplies
MOST_LENGTH = 1 << 62  # of a run: no stream has more events
MOST_LENGTH_OF_ANY = 10_000  # of a run of Step's any iteration, which keeps a bit for each length that is told apart
# Participants of an EPN pattern: in `all` there is a search of its own for each new event.
MOST_PARTICIPANTS = {"all": 64, "sequence": 500}
MOST_PARTITIONS = 100_000  # of a sliding EPN context that one event is in


class TooLarge(Exception):
    """Something in a text is over a limit: what, where, and what to do."""

    def __init__(self, message: str, span: Span, hint: str) -> None:
        super().__init__(message)
        self.span, self.hint = span, hint

    def in_text(self, source: SourceText) -> ProgramError:
        """The error that says so of a text."""
        return ProgramError([Diagnostic("too-large", str(self), source, self.span, self.hint)])


def within_limits(parse: Callable[[SourceText], Tree], source: SourceText) -> Tree:
    """The syntax of a text, unless something in it is over a limit."""
    try:
        tree = parse(source)
        require_depth(tree)
    except TooLarge as found:
        raise found.in_text(source) from None
    return tree


def require_digits(text: str, span: Span) -> None:
    """Refuse a number with too many digits."""
    if len(text) > MOST_DIGITS:
        hint = "numbers of 64 bits have up to 19 digits; a longer one is compared exactly, or write it as 1e30"
        raise TooLarge(f"this number has {len(text):,} digits; {MOST_DIGITS:,} is the limit", span, hint)


def require_depth(tree: SyntaxNode) -> None:
    """Refuse a program of which a part is nested too deeply, or has too many parts."""
    heights: dict[int, int] = {}
    for node in _inner_first(tree):
        below = _operands(node)
        if len(below) > MOST_PARTS and not node.many:
            message = f"this has {len(below):,} parts; {MOST_PARTS:,} is the limit"
            hint = "split it into several queries; to compare with many constants, write IN {…} where there is one"
            raise TooLarge(message, below[MOST_PARTS].span, hint)
        height = 1 + max((heights.pop(id(child), 0) for child in below), default=0)
        if height > MOST_NESTED:
            message = f"more than {MOST_NESTED} operators are nested, or joined one after the other"
            hint = f"{MOST_NESTED} is the limit: split this into several queries that read each other's matches"
            raise TooLarge(message, _last(node), hint)
        heights[id(node)] = height


def _inner_first(tree: SyntaxNode) -> Iterator[SyntaxNode]:
    """The nodes below this one and itself, operands first; without statements whose text is too short to matter."""
    waiting: list[tuple[SyntaxNode, bool]] = [(tree, False)]
    while waiting:
        node, seen = waiting.pop()
        if seen:
            yield node
        else:
            waiting.append((node, True))
            below = reversed(_operands(node))
            waiting += [(child, False) for child in below if not node.many or _length(child) > MOST_NESTED]


def _length(node: SyntaxNode) -> int:
    return node.span.end - node.span.start


def _operands(node: SyntaxNode) -> list[SyntaxNode]:
    found: list[Node] = list(chain(node)) if isinstance(node, And | Or) else node.children()
    return [child for child in found if isinstance(child, SyntaxNode)]


def _last(node: SyntaxNode) -> Span:
    """Where the last operand stands."""
    below = _operands(node)
    return below[-1].span if below else node.span


def require_alternatives(condition: Expression) -> None:
    """Refuse a CEQL filter that expands to too many patterns: OR adds up its operands' patterns, AND multiplies."""
    _filters_of(condition)


def _filters_of(condition: Expression) -> tuple[int, int]:
    """Return how many patterns a filter expands to, and how many conditions the longest has."""
    if not isinstance(condition, And | Or):
        return 1, 1
    total, longest = (1, 0) if isinstance(condition, And) else (0, 0)
    for part in chain(condition):
        number, length = _filters_of(part)
        if isinstance(condition, And):
            total, longest = total * number, longest + length
        else:
            total, longest = total + number, max(longest, length)
        if total > MOST_ALTERNATIVES:
            message = f"the ORs of this filter expand to more than {MOST_ALTERNATIVES} patterns, which is the limit"
            hint = "put conditions on one variable into its brackets, a[x > 1 OR y > 1]"
            raise TooLarge(message, part.span, hint)
        if longest > MOST_FILTERS:
            message = f"this filter has more than {MOST_FILTERS} conditions outside brackets, which is the limit"
            hint = "put conditions on one variable into its brackets, a[x > 1 AND y > 1]"
            raise TooLarge(message, part.span, hint)
    return total, longest
