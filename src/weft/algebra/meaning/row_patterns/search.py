"""Which rows a row pattern matches: the preferred one of all sequences that start at a row, by backtracking.

A depth-first search tries preferred ways first, so the first sequence that it completes is the match.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

from weft.algebra.row_patterns import (
    Alternation,
    At,
    Concatenation,
    EmptyRows,
    Exclusion,
    MatchNumber,
    Permutation,
    Quantifier,
    RowAggregate,
    RowAnchor,
    RowLabel,
    RowPattern,
    RowRegex,
    RowVariable,
)
from weft.errors import BudgetError

MOST_STEPS = 10_000_000  # of one attempt


@dataclass(frozen=True)
class RowsFound:
    """A match: its first row in the partition, and for each row the variable and whether it is excluded."""

    start: int
    labels: tuple[str, ...]
    excluded: tuple[bool, ...]

    @property
    def end(self) -> int:
        """The row after the last."""
        return self.start + len(self.labels)


@dataclass(frozen=True)
class _Again:
    """A quantifier after some iterations; `began` is where the last one began, if it was not needed for the minimum."""

    quantifier: Quantifier
    count: int
    began: int | None


@dataclass(frozen=True)
class _Shown:
    """The end of an exclusion."""


@dataclass(eq=False)  # interned: equal ones are identical
class _Todo:
    """What is still to be matched, in order."""

    part: RowRegex | _Again | _Shown
    rest: _Todo | None


Accepts = Callable[[int, tuple[str, ...]], bool]  # the first row, and the variables of the rows, the last of them new


class RowSearch:
    """Looks for the matches of a pattern in one partition of `size` rows."""

    def __init__(self, query: RowPattern, size: int, accepts: Accepts, most_steps: int = MOST_STEPS) -> None:
        self._pattern = query.pattern
        self._size = size
        self._accepts = accepts
        self._most_steps = most_steps
        self._forgets = _reads_only_rows(query)
        self._interned: dict[tuple[object, ...], _Todo] = {}

    def match_at(self, start: int) -> RowsFound | None:
        """The preferred match that starts at a row."""
        self._interned.clear()
        first = self._todo(self._pattern, None)
        waiting: list[tuple[_Todo | None, tuple[str, ...], tuple[bool, ...], int]] = [(first, (), (), 0)]
        failed: set[tuple[int, int]] = set()
        steps = 0
        while waiting:
            steps += 1
            if steps > self._most_steps:
                raise BudgetError(f"the attempt at row {start + 1} took more than {self._most_steps:,} steps")
            todo, labels, excluded, depth = waiting.pop()
            if todo is None:
                return RowsFound(start, labels, excluded)
            if self._forgets:
                # Whatever led here, the same rows are left: if this failed before, it fails again.
                if (id(todo), len(labels)) in failed:
                    continue
                failed.add((id(todo), len(labels)))
            if isinstance(todo.part, RowVariable):
                taken = (*labels, todo.part.name)
                if start + len(labels) < self._size and self._accepts(start, taken):
                    waiting.append((todo.rest, taken, (*excluded, depth > 0), depth))
                continue
            depth += isinstance(todo.part, Exclusion) - isinstance(todo.part, _Shown)
            ways = self._ways(todo.part, todo.rest, start + len(labels))
            waiting += [(way, labels, excluded, depth) for way in reversed(ways)]
        return None

    def _ways(self, part: RowRegex | _Again | _Shown, rest: _Todo | None, row: int) -> list[_Todo | None]:
        """How a part may be matched from a row on, preferred ways first."""
        match part:
            case EmptyRows() | _Shown():
                return [rest]
            case RowAnchor(end):
                return [rest] if row == (self._size if end else 0) else []
            case Concatenation(parts):
                return [self._in_order(parts, rest)]
            case Alternation(parts):
                return [self._todo(one, rest) for one in parts]
            case Permutation(parts):
                return [self._in_order(order, rest) for order in permutations(parts)]
            case Exclusion(pattern):
                return [self._todo(pattern, self._todo(_Shown(), rest))]
            case Quantifier():
                return self._iterations(_Again(part, 0, None), rest, row)
            case _Again():
                return self._iterations(part, rest, row)
        raise AssertionError(f"not a row pattern: {part!r}")

    def _iterations(self, again: _Again, rest: _Todo | None, row: int) -> list[_Todo | None]:
        quantifier, count = again.quantifier, again.count
        if count < quantifier.least:
            return [self._todo(quantifier.pattern, self._todo(_Again(quantifier, count + 1, None), rest))]
        if count == quantifier.most or (quantifier.most is None and again.began == row):
            return [rest]
        # Without an upper bound only the minimum is counted, so that equal states are one.
        counted = quantifier.least if quantifier.most is None else count + 1
        once_more = self._todo(quantifier.pattern, self._todo(_Again(quantifier, counted, row), rest))
        return [once_more, rest] if quantifier.greedy else [rest, once_more]

    def _in_order(self, parts: tuple[RowRegex, ...], rest: _Todo | None) -> _Todo | None:
        for part in reversed(parts):
            rest = self._todo(part, rest)
        return rest

    def _todo(self, part: RowRegex | _Again | _Shown, rest: _Todo | None) -> _Todo:
        if isinstance(part, _Again):
            key: tuple[object, ...] = (id(part.quantifier), part.count, part.began, id(rest))
        else:
            key = (id(part) if not isinstance(part, _Shown) else -1, id(rest))
        return self._interned.setdefault(key, _Todo(part, rest))


def _reads_only_rows(query: RowPattern) -> bool:
    """Whether conditions depend on no other choice than the variable of the row itself."""
    for define in query.conditions:
        for node in define.condition.walk():
            if isinstance(node, RowAggregate | RowLabel | MatchNumber):
                return False
            if isinstance(node, At):
                is_own = node.variables is None or define.variable in node.variables
                if node.first or node.offset or not is_own:
                    return False
    return True
