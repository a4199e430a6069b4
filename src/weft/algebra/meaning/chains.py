"""The valuations of a chain: every partial match is followed by itself, event by event; and what skipping leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from weft.algebra.analysis.chain_states import Act, ChainEdge, ChainState, start_state
from weft.algebra.chains import Chain, Fits, Skip, SkipTo
from weft.algebra.meaning.stream import Happening
from weft.algebra.meaning.values import ValueScope, holds
from weft.algebra.predicates import Always, And, Not, Predicate

Bound = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class _Partial:
    state: ChainState
    bound: Bound


def chain_intervals(
    chain: Chain, stream: Sequence[Happening], may_fit: Callable[[int, int], bool]
) -> Iterator[tuple[int, int, Bound]]:
    """Start, end and bindings of everything the chain matches."""
    start = start_state(chain)
    for first in range(len(stream)):
        partials = {_Partial(start, frozenset())}
        for index in range(first, len(stream)):
            if not may_fit(first, index):
                break
            reached = {after for partial in partials for after in _after(partial, index, stream[index], index == first)}
            yield from ((first, index, partial.bound) for partial in reached if partial.state.final)
            partials = {partial for partial in reached if not partial.state.final}


def _after(partial: _Partial, index: int, event: Happening, starts: bool) -> Iterator[_Partial]:
    """Yield the successors of a partial match for an event; no event is skipped before the first one is bound."""
    edges = list(_edges(partial.state, event))
    stopped = any(edge.target.stop for _, edge in edges)
    for source, edge in edges:
        if edge.act is Act.IGNORE and not starts and not (stopped and not edge.target.final):
            yield _Partial(edge.target, partial.bound)
        elif edge.act is Act.TAKE and not edge.target.stop:
            bound = partial.bound | {(source.name, index)}
            if edge.target.final or not stopped:
                yield _Partial(edge.target, bound)
            if ending := _end_after(edge.target, event):
                yield _Partial(ending, bound)


def _edges(state: ChainState, event: Happening) -> Iterator[tuple[ChainState, ChainEdge]]:
    """The edges that take or ignore the event, here and wherever it can proceed."""
    for edge in state.edges:
        if satisfies(edge.condition, event):
            if edge.act is Act.PROCEED:
                yield from _edges(edge.target, event)
            else:
                yield state, edge


def _end_after(state: ChainState, event: Happening) -> ChainState | None:
    """The end, if nothing but optional links is left after the event."""
    for edge in state.edges:
        if edge.act is Act.PROCEED and satisfies(edge.condition, event):
            found = edge.target if edge.target.final else _end_after(edge.target, event)
            if found is not None:
                return found
    return None


def satisfies(condition: Predicate, event: Happening) -> bool:
    """Return whether the current event satisfies a condition of a chain."""
    match condition:
        case Always():
            return True
        case And(operands):
            return all(satisfies(operand, event) for operand in operands)
        case Not(operand):
            return not satisfies(operand, event)
        case Fits(types, where):
            return (not types or event.type in types) and holds(where, ValueScope({None: event.attributes}))
    raise TypeError(f"not a condition of a chain: {condition!r}")


def floor_after(skip: Skip, positions: Sequence[int], bound: Iterable[int]) -> int:
    """The least place at which a match may start after one with these positions; `bound` are those of the variable."""
    match skip.to:
        case SkipTo.NEXT:
            return positions[0] + 1
        case SkipTo.PAST_LAST:
            return positions[-1] + 1
        case SkipTo.FIRST:
            return min(bound, default=-1)
        case SkipTo.LAST:
            return max(bound, default=-1)
