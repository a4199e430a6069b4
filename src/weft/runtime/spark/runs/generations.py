"""Programs that took each other's place in a run: a *generation* are queries that began together, with their own lanes.

A query that stays remains in the lanes of its generation. Those that begin are a generation of their own, with what
they read besides, which runs there silently: it is told where it began. All of it is plain data in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weft.algebra.analysis.feeding import feeders
from weft.algebra.query import AnyQuery, Program
from weft.algebra.stored import CLASSES as ALGEBRA
from weft.errors import UsageError
from weft.plan import operators
from weft.plan.changes import Change, changed
from weft.plan.operators import Plan
from weft.plan.partitioning import by_key, by_match, by_query, by_rank, by_slice, one, replicated, splits
from weft.plan.partitioning.by_slice import usual
from weft.plan.partitioning.splits import Lane
from weft.plan.properties import columns, seen_types
from weft.plan.stored import layer_from_plain, layer_to_plain
from weft.runtime.spark.lanes.lanes import spread
from weft.stored import Plain, classes_in, from_plain, to_plain

_SPLITS = (by_key, by_match, by_query, by_rank, by_slice, one, replicated, splits, operators)
CLASSES = {**ALGEBRA, **classes_in(_SPLITS)}


@dataclass(frozen=True)
class Generation:
    """Queries by number, as they were written and as they run, and the lanes that they began with."""

    numbers: tuple[int, ...]
    written: tuple[AnyQuery, ...]
    plan: Plan
    lanes: tuple[Lane, ...]
    silent: frozenset[int] = frozenset()  # told by the generation that they stay in
    gone: frozenset[int] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)  # new names of queries by old ones
    used: frozenset[int] = frozenset()  # ids of lanes whose generation is gone: the store still has their pages

    @property
    def lane_ids(self) -> frozenset[int]:
        """The ids that no other lane may have."""
        return self.used | {lane.id for lane in self.lanes}

    @property
    def told(self) -> list[int]:
        """The numbers of the queries that are told here."""
        return [number for number in self.numbers if number not in self.silent and number not in self.gone]

    @property
    def lanes_left(self) -> tuple[Lane, ...]:
        """The lanes that have something to tell."""
        told = set(self.told)
        return tuple(lane for lane in self.lanes if not told.isdisjoint(lane.queries))

    @property
    def silent_names(self) -> frozenset[str]:
        """The names of those that are told elsewhere."""
        pairs = zip(self.numbers, self.written, strict=True)
        return frozenset(query.name for number, query in pairs if number in self.silent)

    def to_plain(self) -> Plain:
        """As plain data."""
        return {
            "numbers": list(self.numbers),
            "written": to_plain(self.written),
            "queries": to_plain(self.plan.queries),
            "layers": [layer_to_plain(layer) for layer in self.plan.layers],
            "lanes": to_plain(self.lanes),
            "silent": sorted(self.silent),
            "gone": sorted(self.gone),
            "names": dict(self.names),
            "used": sorted(self.used),
        }


def generation_from_plain(plain: Plain) -> Generation:
    """The generation that was made into plain data."""
    queries: tuple[Any, ...] = from_plain(plain["queries"], CLASSES)
    layers = tuple(layer_from_plain(layer) for layer in plain["layers"])
    return Generation(
        tuple(plain["numbers"]),
        from_plain(plain["written"], CLASSES),
        _planned(queries, layers),
        from_plain(plain["lanes"], CLASSES),
        frozenset(plain["silent"]),
        frozenset(plain["gone"]),
        plain["names"],
        frozenset(plain["used"]),
    )


def _planned(queries: Sequence[AnyQuery], layers: Any) -> Plan:
    """A plan of layers that are known."""
    read = tuple(sorted({name for query in queries for name in columns(query)}))
    fed = any(feeders(queries))
    types = seen_types(queries, fed=fed)
    return Plan(Program("", tuple(queries)), tuple(layers), (), read, types)


def first_generation(written: Sequence[AnyQuery], plan: Plan, lanes: Sequence[Lane]) -> Generation:
    """The queries of a run that begins."""
    return Generation(tuple(range(len(plan.queries))), tuple(written), plan, tuple(lanes))


@dataclass(frozen=True)
class Succession:
    """The generations of a run, and what the last program changed."""

    generations: tuple[Generation, ...]
    change: Change | None = None

    @property
    def present(self) -> list[tuple[int, int, AnyQuery]]:
        """The queries that are told: place of the generation, number, as it was written and is called now."""
        found = []
        for at, generation in enumerate(self.generations):
            told = set(generation.told)
            for number, query in zip(generation.numbers, generation.written, strict=True):
                if number in told:
                    found.append((at, number, _called(query, generation.names)))
        return found


def compared(generations: Sequence[Generation], written: Sequence[AnyQuery]) -> Change:
    """What a program keeps of those before it."""
    return changed([query for _, _, query in Succession(tuple(generations)).present], written)


def succeeded(
    generations: Sequence[Generation], written: Program, make: Any, wanted: int, partitions: int
) -> Succession:
    """The generations when a program takes the place of the one before; `make` plans some of its queries."""
    before = Succession(tuple(generations))
    change = compared(generations, written.queries)
    if change.is_none:
        return Succession(before.generations, change)
    kept = list(generations)
    present = before.present
    for place in change.gone:
        at, number, _ = present[place]
        kept[at] = replace(kept[at], gone=kept[at].gone | {number})
    for was, now in change.stays:
        at, number, query = present[was]
        name = written.queries[now].name
        if query.name != name:
            original = next(q for n, q in zip(kept[at].numbers, kept[at].written, strict=True) if n == number)
            kept[at] = replace(kept[at], names={**kept[at].names, original.name: name})
    if change.begins:
        kept.append(_begun(kept, written, change, make, wanted, partitions))
    left = [generation for generation in kept if generation.told]
    used = frozenset[int]().union(*(generation.lane_ids for generation in kept if not generation.told))
    left[-1] = replace(left[-1], used=left[-1].used | used)
    return Succession(tuple(left), change)


def _begun(
    kept: Sequence[Generation], written: Program, change: Change, make: Any, wanted: int, partitions: int
) -> Generation:
    """The queries that begin, with what they read, in lanes of their own."""
    needed, fed_by = set(change.begins), feeders(written.queries)
    waiting = list(needed)
    while waiting:
        for maker in fed_by[waiting.pop()]:
            if maker not in needed:
                needed.add(maker)
                waiting.append(maker)
    places = sorted(needed)
    own = [written.queries[place] for place in places]
    silent = [place not in change.begins for place in places]
    told = {query.name for query, quiet in zip(own, silent, strict=True) if not quiet}
    shared = next((query.name for query, quiet in zip(own, silent, strict=True) if quiet and query.name in told), None)
    if shared is not None:
        raise UsageError(
            f"a rule that defines {shared!r} is new beside one that stays, and both are read by what begins: "
            "use another checkpoint for this program"
        )
    first = 1 + max((number for generation in kept for number in generation.numbers), default=-1)
    plan: Plan = make(replace(written, queries=tuple(own)), first)
    taken = frozenset[int]().union(*(generation.lane_ids for generation in kept))
    lanes = spread(plan.lanes_for(wanted), partitions, taken)
    lanes = tuple(replace(lane, split=usual(lane.split)) for lane in lanes)
    numbers = range(first, first + len(own))
    quiet = frozenset(number for number, is_silent in zip(numbers, silent, strict=True) if is_silent)
    return Generation(tuple(numbers), tuple(own), plan, lanes, quiet)


def _called(query: AnyQuery, names: Mapping[str, str]) -> AnyQuery:
    return query if query.is_rule or query.name not in names else replace(query, name=names[query.name])
