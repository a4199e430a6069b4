"""Chains as atoms: every way in which a state takes or ignores an event becomes one atom of the automaton."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from weft.algebra.analysis.chain_states import Act, ChainState, start_state
from weft.algebra.chains import Chain, Fits
from weft.algebra.predicates import Always, And, Not, Or, Predicate
from weft.plan.atoms import IsType

Parts = tuple[Predicate, ...]  # all must hold


@dataclass(frozen=True)
class ChainMove:
    """An event that satisfies the guard is taken under a name, or ignored (None); then the chain is in `target`.

    Without a target the match ends with it.
    """

    guard: Parts
    name: str | None
    target: ChainState | None


@dataclass(frozen=True)
class Follow:
    """The atoms that may come after another: at the very next event, and at any later one."""

    near: frozenset[int]
    far: frozenset[int]


class ChainAtoms:
    """Gives the atoms of a chain numbers, state by state; `add` makes an atom of a guard and a name."""

    def __init__(self, chain: Chain, add: Callable[[Parts, str | None], int]) -> None:
        self._add = add
        self._known: dict[ChainState, dict[int, ChainMove]] = {}
        start = start_state(chain)
        begin = [move for move in _moves(start) if move.name is not None]
        self._first = {add(move.guard, move.name): move for move in begin}
        waiting = list(self._first.values())
        while waiting:
            target = waiting.pop().target
            if target is not None and target not in self._known:
                self._known[target] = {add(move.guard, move.name): move for move in _moves(target)}
                waiting += self._known[target].values()

    @property
    def first(self) -> set[int]:
        """The atoms with which a match may start."""
        return set(self._first)

    @property
    def last(self) -> set[int]:
        """The atoms with which a match may end."""
        return {atom for atom, move in self._all() if move.target is None}

    def follows(self) -> Iterator[tuple[int, Follow]]:
        """What may come after each atom."""
        followers = {state: self._follow(state) for state in self._known}
        for atom, move in self._all():
            if move.target is not None:
                yield atom, followers[move.target]

    def _all(self) -> Iterator[tuple[int, ChainMove]]:
        yield from self._first.items()
        for moves in self._known.values():
            yield from moves.items()

    def _follow(self, state: ChainState) -> Follow:
        """A state that passes over anything only waits, which costs nothing."""
        moves = self._known[state]
        waits = {atom for atom, move in moves.items() if move == ChainMove((), None, state)}
        others = frozenset(moves) - waits
        return Follow(frozenset(), others) if waits else Follow(others, frozenset())


def _moves(state: ChainState) -> list[ChainMove]:
    """What can become of an event here. Where it stops the partial match, only the end of a match is reached."""
    ways = list(_ways(state, ()))
    stops = tuple(Not(And(guard)) for guard, _, act, target in ways if target.stop)
    found: dict[ChainMove, None] = {}
    for guard, source, act, target in ways:
        name = source.name if act is Act.TAKE else None
        if target.stop:
            continue
        found[ChainMove(guard, name, None) if target.final else ChainMove((*guard, *stops), name, target)] = None
        if act is Act.TAKE:
            found.update((ChainMove((*guard, *rest), name, None), None) for rest in _ways_out(target, ()))
    return list(found)


def _ways(state: ChainState, guard: Parts) -> Iterator[tuple[Parts, ChainState, Act, ChainState]]:
    for edge in state.edges:
        whole = (*guard, *_parts(edge.condition))
        if edge.act is Act.PROCEED:
            yield from _ways(edge.target, whole)
        else:
            yield whole, state, edge.act, edge.target


def _ways_out(state: ChainState, guard: Parts) -> Iterator[Parts]:
    """What an event must satisfy for the chain to be at its end after it."""
    for edge in state.edges:
        if edge.act is Act.PROCEED:
            whole = (*guard, *_parts(edge.condition))
            if edge.target.final:
                yield whole
            else:
                yield from _ways_out(edge.target, whole)


def _parts(condition: Predicate) -> Parts:
    match condition:
        case Always():
            return ()
        case And(operands):
            return tuple(part for operand in operands for part in _parts(operand))
        case Not(operand):
            parts = _parts(operand)
            return (Not(parts[0] if len(parts) == 1 else And(parts)),)
        case Fits():
            return (fitting(condition),)
    raise TypeError(f"not a condition of a chain: {condition!r}")


def fitting(fits: Fits) -> Predicate:
    """The condition in terms of the event's type and attributes."""
    types = tuple(IsType(name) for name in fits.types)
    parts: Parts = () if not types else types if len(types) == 1 else (Or(types),)
    parts = parts if fits.where == Always() else (*parts, fits.where)
    return parts[0] if len(parts) == 1 else And(parts)
