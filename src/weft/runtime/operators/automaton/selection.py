"""Select the reported matches among those that end at one event: select lists, strategies, limits (semantics.md 2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.algebra.query import Query, Strategy
from weft.runtime.data.events import Int64s
from weft.runtime.operators.automaton.found import Found

Names = tuple[str, ...]
BEHIND = ("\U0010ffff", 0)  # bound variables sort before unbound ones


@dataclass(frozen=True)
class _Candidate:
    """A match while it is compared with others: `index` is its place among those found."""

    index: int
    first: int
    positions: tuple[int, ...]
    names: tuple[Names, ...]


class Selector:
    """Applies select list, strategy and limit to the matches that end at the same event."""

    def __init__(
        self, query: Query, names: Sequence[Names], holds: Sequence[Collection[str]], *, may_repeat: bool, chosen: bool
    ) -> None:
        """The names that labels show, and the variables of which values are shown.

        `may_repeat`: equal matches can be found twice; `chosen`: the kernel has applied strategy and limit.
        """
        self._query = query
        self._names = names
        self._holds = holds
        self._hidden = np.array([not shown for shown in names], bool)
        chooses = query.strategy in (Strategy.NEXT, Strategy.LAST, Strategy.ANY, Strategy.MAX)
        self.idle = chosen or not (may_repeat or chooses or query.limit is not None)

    def select(self, found: Found) -> Found:
        """Return the matches to report, in the order of their end positions."""
        if self.idle or not len(found.events):
            return found
        if self._hidden.any():
            found = _without(found, self._hidden[found.labels])
        kept: list[int] = []
        bounds = np.flatnonzero(np.diff(found.events, prepend=-1, append=-1))
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            kept += (candidate.index for candidate in self._choose(self._candidates(found, begin, end)))
        return take_matches(found, np.array(kept, np.int64))

    def _candidates(self, found: Found, begin: int, end: int) -> list[_Candidate]:
        """Return the distinct matches of one group."""
        offsets = found.offsets[begin : end + 1].tolist()
        seen: dict[tuple[int, tuple[int, ...], tuple[Names, ...]], _Candidate] = {}
        for index in range(begin, end):
            low, high = offsets[index - begin], offsets[index - begin + 1]
            positions = tuple(found.positions[low:high].tolist())
            names = tuple(self._names[label] for label in found.labels[low:high].tolist())
            first = int(found.firsts[index])
            key, other = (first, positions, names), _Candidate(index, first, positions, names)
            known = seen.setdefault(key, other)
            if known is not other and self._shown_events(found, index) < self._shown_events(found, known.index):
                seen[key] = other
        return list(seen.values())

    def _shown_events(self, found: Found, index: int) -> list[tuple[str, int]]:
        """Return the variables whose values are shown, with their events; the least of equal matches is reported."""
        low, high = found.offsets[index : index + 2].tolist()
        held = zip(found.labels[low:high].tolist(), found.positions[low:high].tolist(), strict=True)
        return [*sorted((name, position) for label, position in held for name in self._holds[label]), BEHIND]

    def _choose(self, candidates: list[_Candidate]) -> list[_Candidate]:
        match self._query.strategy:
            case Strategy.NEXT | Strategy.ANY:
                candidates = [min(candidates, key=_next_order)]
            case Strategy.LAST:
                candidates = [min(candidates, key=_last_order)]
            case Strategy.MAX:
                candidates = _maximal(candidates)
        if self._query.limit is not None:
            candidates = sorted(candidates, key=lambda c: (-c.first, *_next_order(c)))[: self._query.limit]
        return candidates


_AFTER_ALL = (float("inf"),)


def _next_order(candidate: _Candidate) -> tuple[object, ...]:
    """Sort key of `NEXT`: the smallest position in which two sets differ decides."""
    return candidate.positions + _AFTER_ALL, candidate.first, candidate.names


def _last_order(candidate: _Candidate) -> tuple[object, ...]:
    """Sort key of `LAST`: the largest position in which two sets differ decides."""
    return tuple(-position for position in reversed(candidate.positions)) + _AFTER_ALL, candidate.first, candidate.names


def _maximal(candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the matches whose positions are not strictly contained in another's."""
    largest: list[frozenset[int]] = []
    for positions in sorted({frozenset(c.positions) for c in candidates}, key=len, reverse=True):
        if not any(positions < other for other in largest):
            largest.append(positions)
    keep = set(largest)
    return [candidate for candidate in candidates if frozenset(candidate.positions) in keep]


def _without(found: Found, hidden: npt.NDArray[np.bool_]) -> Found:
    """Remove the positions that only conditions read."""
    before = np.concatenate(([0], np.cumsum(~hidden)))
    return Found(
        found.events,
        found.firsts,
        found.starts,
        before[found.offsets],
        found.positions[~hidden],
        found.labels[~hidden],
    )


def take_matches(found: Found, rows: Int64s) -> Found:
    """Select matches, in the order of `rows`."""
    sizes = np.diff(found.offsets)[rows]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    source = np.repeat(found.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return Found(
        found.events[rows],
        found.firsts[rows],
        found.starts[rows],
        offsets,
        found.positions[source],
        found.labels[source],
    )
