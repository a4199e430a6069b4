"""A row pattern as an automaton: a state per position of a variable, with its transitions in order of preference.

A state is reached by consuming a row, so everything that consumes none (loops, alternatives, anchors) is resolved here:
transitions lead from a row to the next one or to the end of the match.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.algebra.row_patterns import (
    Alternation,
    Concatenation,
    EmptyRows,
    Exclusion,
    Permutation,
    Quantifier,
    RowAnchor,
    RowRegex,
    RowVariable,
)
from weft.errors import UsageError

ACCEPT = -1  # the match ends here
ACCEPT_AT_END = -2  # the match ends here if the partition does
MOST_STATES = 20_000


@dataclass(frozen=True)
class RowProgram:
    """The states of a pattern and where each leads, the preferred transition first.

    The last two entries of `transitions` are those of an attempt: at the partition's first row, and at a later one.
    """

    variables: tuple[str, ...]
    variable_of: tuple[int, ...]  # of each state
    excluded: tuple[bool, ...]  # whether the rows of a state are hidden
    transitions: tuple[tuple[int, ...], ...]

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.variable_of)


# Nodes of the graph between rows. A loop is entered, and after each iteration come back to, by its number.
@dataclass(frozen=True)
class _Take:
    variable: int
    excluded: bool
    after: int


@dataclass(frozen=True)
class _Branch:
    to: tuple[int, ...]


@dataclass(frozen=True)
class _Hold:
    end: bool
    after: int


@dataclass
class _Loop:
    after: int
    greedy: bool
    body: int = -1


@dataclass(frozen=True)
class _Back:
    loop: int


@dataclass
class _Graph:
    variables: tuple[str, ...]
    nodes: list[_Take | _Branch | _Hold | _Loop | _Back] = field(default_factory=list)

    def add(self, node: _Take | _Branch | _Hold | _Loop | _Back) -> int:
        if len(self.nodes) >= MOST_STATES:
            raise UsageError(
                f"this row pattern has more than {MOST_STATES:,} states once its quantifiers are expanded: "
                "use smaller bounds, or * and +"
            )
        self.nodes.append(node)
        return len(self.nodes) - 1

    def build(self, regex: RowRegex, after: int, excluded: bool = False) -> int:
        """Add the nodes of a pattern that is followed by a node; return the first of them."""
        match regex:
            case RowVariable(name):
                return self.add(_Take(self.variables.index(name), excluded, after))
            case EmptyRows():
                return after
            case RowAnchor(end):
                return self.add(_Hold(end, after))
            case Concatenation(parts):
                for part in reversed(parts):
                    after = self.build(part, after, excluded)
                return after
            case Alternation(parts):
                return self.add(_Branch(tuple(self.build(part, after, excluded) for part in parts)))
            case Permutation(parts):
                return self._orders(parts, after, excluded, {})
            case Exclusion(pattern):
                return self.build(pattern, after, True)
            case Quantifier():
                return self._repeated(regex, after, excluded)
        raise TypeError(regex)

    def _orders(self, parts: tuple[RowRegex, ...], after: int, excluded: bool, known: dict[int, int]) -> int:
        """All orders of the parts, by the set of parts that are still to come."""
        known[0] = after
        for waiting in range(1, 1 << len(parts)):
            chosen = [k for k in range(len(parts)) if waiting >> k & 1]
            known[waiting] = self.add(
                _Branch(tuple(self.build(parts[k], known[waiting & ~(1 << k)], excluded) for k in chosen))
            )
        return known[(1 << len(parts)) - 1]

    def _repeated(self, regex: Quantifier, after: int, excluded: bool) -> int:
        if regex.most is None:
            entry = self.add(_Loop(after, regex.greedy))
            loop = self.nodes[entry]
            assert isinstance(loop, _Loop)
            loop.body = self.build(regex.pattern, self.add(_Back(entry)), excluded)
        else:
            entry = after
            for _ in range(regex.most - regex.least):
                more = self.build(regex.pattern, entry, excluded)
                entry = self.add(_Branch((more, after) if regex.greedy else (after, more)))
        for _ in range(regex.least):
            entry = self.build(regex.pattern, entry, excluded)
        return entry


_NO_LOOPS: frozenset[int] = frozenset()
_END = -1  # the node after the whole pattern
_FIRST, _LAST = 1, 2  # anchors that were passed


def compile_regex(pattern: RowRegex, variables: tuple[str, ...]) -> RowProgram:
    """Compile a pattern over these variables."""
    graph = _Graph(variables)
    start = graph.build(pattern, _END)
    at_first, at_later = (_closure(graph, start, first=first) for first in (True, False))
    number: dict[int, int] = {}
    found: dict[int, tuple[int, ...]] = {}
    waiting = [*at_first, *at_later]
    while waiting:
        node = waiting.pop(0)
        if node < 0 or node in number:
            continue
        number[node] = len(number)
        taken = graph.nodes[node]
        assert isinstance(taken, _Take)
        found[node] = _closure(graph, taken.after, first=False)
        waiting += found[node]
    takes = [graph.nodes[node] for node in number]
    return RowProgram(
        variables,
        tuple(take.variable for take in takes if isinstance(take, _Take)),
        tuple(take.excluded for take in takes if isinstance(take, _Take)),
        tuple(
            tuple(number.get(target, target) for target in targets)
            for targets in (*(found[node] for node in number), at_first, at_later)
        ),
    )


def _closure(graph: _Graph, start: int, *, first: bool) -> tuple[int, ...]:
    """The nodes that take the next row, and ACCEPT, that a node leads to without a row, the preferred one first.

    A loop that was begun here and comes back here took no row in this iteration: it ends. Places that were seen with
    the same loops begun are not looked at again, since the first way to them is preferred.
    """
    found: dict[int, None] = {}
    seen: set[tuple[int, frozenset[int], int]] = set()
    waiting = [(start, _NO_LOOPS, 0)]
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        at, begun, passed = place
        if at == _END:
            found[ACCEPT_AT_END if passed & _LAST else ACCEPT] = None
            if not passed & _LAST:
                break  # it always succeeds: nothing after it can be preferred
            continue
        node = graph.nodes[at]
        if isinstance(node, _Take):
            if not passed & _LAST:
                found[at] = None
            continue
        waiting += reversed(_steps(graph, at, begun, passed, first=first))
    return tuple(found)


def _steps(
    graph: _Graph, at: int, begun: frozenset[int], passed: int, *, first: bool
) -> list[tuple[int, frozenset[int], int]]:
    """Where a node that takes no row leads, the preferred way first."""
    node = graph.nodes[at]
    match node:
        case _Branch(to):
            return [(target, begun, passed) for target in to]
        case _Hold(end, after):
            return [(after, begun, passed | _LAST)] if end else [(after, begun, passed)] if first else []
        case _Back(loop) if loop in begun:
            entered = graph.nodes[loop]
            assert isinstance(entered, _Loop)
            return [(entered.after, begun - {loop}, passed)]
        case _Back(loop):
            return [(loop, begun, passed)]
        case _Loop(after, greedy, body):
            again, leave = (body, begun | {at}, passed), (after, begun - {at}, passed)
            return [again, leave] if greedy else [leave, again]
    raise TypeError(node)
