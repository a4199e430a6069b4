"""Assignment of candidates to workers (DCORE 4.2): round robin, the better of two, the best of all; configurations.

All of it is deterministic, so that lanes compute the same assignment without communication.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise, product
from math import sqrt
from random import Random
from typing import Literal

from weft.algebra.patterns import Bind, Correlate, Event, Filter, Pattern, Repeat
from weft.algebra.patterns import Sequence as Follows
from weft.algebra.query import Query

Dealing = Literal["round robin", "two choices", "exact search", "maximal"]
DEALINGS: dict[str, Dealing] = {"rr": "round robin", "potc": "two choices", "es": "exact search", "mcee": "maximal"}
Groups = tuple[tuple[int, ...], ...]  # positions of a match, by runs of one variable


@dataclass
class Dealer:
    """Assign candidates to workers in order. A load is the sum of the sizes assigned to a worker.

    The next assignment depends only on `loads` and `dealt`.
    """

    workers: int
    dealing: Dealing = "round robin"
    seed: int = 0
    dealt: int = 0
    loads: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.loads = [0.0] * self.workers

    def deal(self, size: float = 1.0) -> int:
        """Return the worker of the next candidate."""
        worker = self._choice()
        self.dealt += 1
        self.loads[worker] += size
        return worker

    def _choice(self) -> int:
        if self.dealing == "round robin":
            return self.dealt % self.workers
        some: Iterable[int] = range(self.workers)
        if self.dealing == "two choices":
            dice = Random(self.seed * 1_000_003 + self.dealt)
            some = [dice.randrange(self.workers) for _ in range(2)]
        return min(some, key=lambda worker: (self.loads[worker], worker))


def variation(loads: Sequence[float]) -> float:
    """The coefficient of variation: how far loads are from their mean, as a part of it."""
    mean = sum(loads) / len(loads)
    return sqrt(sum((load - mean) ** 2 for load in loads) / len(loads)) / mean if mean else 0.0


# -- maximal complex events ---------------------------------------------------------------------


def is_flat(query: Query) -> bool:
    """Whether every choice of at least one event of each group of a maximal match is a match, and every match is one.

    So it is for sequences of events and of repeated events, neighbours of different types, none of which must stand
    next to each other. A window, of time or of events, keeps what is between the first and the last event of a match
    it allows.
    """
    parts = list(_parts(query.pattern))
    if any(node.contiguous for node in query.pattern.walk() if isinstance(node, Follows | Repeat)):
        return False
    types = [part.type if isinstance(part, Event) else "" for part in map(_inner, parts)]
    return all(types) and all(one != other for one, other in pairwise(types))


def _parts(pattern: Pattern) -> Iterator[Pattern]:
    match pattern:
        case Follows(left, right):
            yield from _parts(left)
            yield from _parts(right)
        case (
            Filter(pattern=inner) | Correlate(pattern=inner)
        ):  # conditions over several events are tested on candidates
            yield from _parts(inner)
        case _:
            yield pattern


def _inner(pattern: Pattern) -> Pattern:
    """What is repeated or named."""
    while isinstance(pattern, Bind | Repeat | Filter):
        pattern = pattern.pattern
    return pattern


def groups_of(positions: Sequence[int], variables: Sequence[object]) -> Groups:
    """The longest runs of events of the same variable."""
    marked = zip(positions, variables, strict=True)
    return tuple(tuple(position for position, _ in run) for _, run in groupby(marked, lambda pair: pair[1]))


def configurations(groups: Groups) -> Iterator[tuple[int, ...]]:
    """How many events of each group are kept, in every way."""
    return product(*(range(1, len(group) + 1) for group in groups))
