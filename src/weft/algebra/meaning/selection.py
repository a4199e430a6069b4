"""What is kept of the matches that end at one event: the select list, the strategy and the limit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key

from weft.algebra.meaning.stream import Happening
from weft.algebra.meaning.valuations import Valuation
from weft.algebra.query import Query, Selected, Strategy


@dataclass(frozen=True)
class Candidate:
    """What a valuation shows: its interval and, for each marked index, the visible names.

    Two valuations that show the same are the same match; `valuation` is one of them.
    """

    first: int
    last: int
    names: tuple[tuple[int, tuple[str, ...]], ...]
    valuation: Valuation

    @property
    def marked(self) -> frozenset[int]:
        """The marked indexes."""
        return frozenset(index for index, _ in self.names)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The names along the marked indexes."""
        return tuple(names for _, names in self.names)


def project(
    found: Iterable[Valuation],
    selected: Sequence[Selected] | None,
    stream: Sequence[Happening],
    read: Collection[str] = (),
) -> list[Candidate]:
    """Drop the names that are not selected, hide those not to be shown, and give equal results once.

    Of several that show the same names, the first by the variables that are read gives its values.
    """
    candidates: dict[tuple[object, ...], Candidate] = {}
    for valuation in sorted(found, key=lambda v: (v.start, v.end, sorted(v.bound))):
        names = tuple((i, shown) for i in valuation.marked() if (shown := _shown(valuation, i, selected, stream[i])))
        key = (valuation.start, valuation.end, names)
        known = candidates.get(key)
        if known is None or _read(valuation, read) < _read(known.valuation, read):
            candidates[key] = Candidate(valuation.start, valuation.end, names, valuation)
    return list(candidates.values())


def _read(valuation: Valuation, read: Collection[str]) -> list[tuple[str, int]]:
    """The variables that are read, with their events; what is bound goes before what is not."""
    return [*sorted((name, i) for name, i in valuation.bound if name in read), ("\U0010ffff", 0)]


def _shown(valuation: Valuation, index: int, selected: Sequence[Selected] | None, event: Happening) -> tuple[str, ...]:
    """The AS-variables of an event; its type only if there are none, `stream>type` only if there is no other."""
    names = {name for name, i in valuation.bound if i == index}
    if selected is not None:
        names &= {item.name for item in selected}
    typed = {name for name in names if name == event.type}
    streamed = {name for name in names if name.endswith(f">{event.type}")}
    return tuple(sorted(names - typed - streamed or typed or streamed))


def choose(candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
    """The strategy, then the limit, over matches that end at the same event."""
    kept = _by_strategy(candidates, query.strategy)
    if query.limit is None:
        return kept
    return sorted(kept, key=lambda c: (-c.first, cmp_to_key(_smallest_difference)(c), c.labels))[: query.limit]


def _by_strategy(candidates: Sequence[Candidate], strategy: Strategy) -> list[Candidate]:
    match strategy:
        case Strategy.ALL:
            return list(candidates)
        case Strategy.NEXT | Strategy.ANY:
            return _best(candidates, _smallest_difference)
        case Strategy.LAST:
            return _best(candidates, _largest_difference)
        case Strategy.MAX:
            return [c for c in candidates if not any(c.marked < other.marked for other in candidates)]
        case Strategy.STRICT:
            return [c for c in candidates if not c.marked or max(c.marked) - min(c.marked) + 1 == len(c.marked)]


def _best(candidates: Sequence[Candidate], order: Callable[[Candidate, Candidate], int]) -> list[Candidate]:
    """The first in an order of position sets; of equal sets the one with the earliest start, then the least names."""
    return sorted(candidates, key=lambda c: (cmp_to_key(order)(c), c.first, c.labels))[:1]


def _smallest_difference(left: Candidate, right: Candidate) -> int:
    """Negative if `left` comes first: it has the smallest position that only one of the two has."""
    difference = left.marked ^ right.marked
    return 0 if not difference else -1 if min(difference) in left.marked else 1


def _largest_difference(left: Candidate, right: Candidate) -> int:
    """Negative if `left` comes first: it has the largest position that only one of the two has."""
    difference = left.marked ^ right.marked
    return 0 if not difference else -1 if max(difference) in left.marked else 1
