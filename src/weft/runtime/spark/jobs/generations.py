"""Programs that took each other's place in a run: a *generation* are queries that began together, with their own lanes.

A query that stays remains in the lanes of its generation. Those that begin are a generation of their own, with what
they read besides, which runs there silently: it is told where it began. One that goes over to other lanes is in both
generations for a while (`handover.py`). All of it is plain data in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weft.algebra.analysis.feeding import feeders
from weft.algebra.query import AnyQuery, Program
from weft.algebra.stored import CLASSES as ALGEBRA
from weft.errors import UsageError
from weft.plan import operators
from weft.plan.changes import Change, changed
from weft.plan.operators import Plan
from weft.plan.partitioning import by_key, by_match, by_query, by_rank, by_slice, one, replicated, splits, work
from weft.plan.partitioning.by_slice import usual
from weft.plan.partitioning.reach import Reach
from weft.plan.partitioning.splits import Lane
from weft.plan.properties import columns, seen_types
from weft.plan.stored import layer_from_plain, layer_to_plain
from weft.runtime.spark.jobs.handover import Handover, Move, from_rows, to_rows
from weft.runtime.spark.jobs.lane_ids import spread
from weft.stored import Plain, classes_in, from_plain, to_plain

_SPLITS = (by_key, by_match, by_query, by_rank, by_slice, one, replicated, splits, work, operators)
CLASSES = {**ALGEBRA, **classes_in(_SPLITS)}
Make = Callable[[Program, int], Plan]  # plans a program whose queries are numbered from some number on


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
    since: Mapping[int, Handover] = field(default_factory=dict)  # queries that came from another generation
    until: Mapping[int, Handover] = field(default_factory=dict)  # those that go over to another

    @property
    def lane_ids(self) -> frozenset[int]:
        """The ids that no other lane may have."""
        return self.used | {lane.id for lane in self.lanes}

    @property
    def told(self) -> list[int]:
        """The numbers of the queries that are emitted here."""
        return [number for number in self.numbers if number not in self.silent and number not in self.gone]

    @property
    def is_first(self) -> bool:
        """Whether these are the queries that the run began with, and all is as it was then."""
        return not (self.numbers[0] or self.gone or self.names or self.since or self.until)

    @property
    def lanes_left(self) -> tuple[Lane, ...]:
        """The lanes that have something to tell."""
        told = set(self.told)
        return tuple(lane for lane in self.lanes if not told.isdisjoint(lane.queries))

    @property
    def silent_names(self) -> frozenset[str]:
        """The names of the queries that are emitted elsewhere."""
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
            "since": to_rows(self.since),
            "until": to_rows(self.until),
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
        from_rows(plain["since"]),
        from_rows(plain["until"]),
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
        """The emitted queries: place of the generation, number, the query as written, and its current name.

        A query that is being handed over to another generation is present there.
        """
        found = []
        for at, generation in enumerate(self.generations):
            told = set(generation.told).difference(generation.until)
            for number, query in zip(generation.numbers, generation.written, strict=True):
                if number in told:
                    found.append((at, number, _called(query, generation.names)))
        return found


def planning_parts(written: Program, running: Sequence[AnyQuery], planned: Make) -> Make:
    """What plans some of the queries that were written, in the form in which they run."""
    applied = dict(zip(map(id, written.queries), running, strict=True))

    def make(part: Program, first: int) -> Plan:
        return planned(replace(part, queries=tuple(applied[id(query)] for query in part.queries)), first)

    return make


def compared(generations: Sequence[Generation], written: Sequence[AnyQuery]) -> Change:
    """What a program keeps of those before it."""
    return changed([query for _, _, query in Succession(tuple(generations)).present], written)


def succeeded(
    generations: Sequence[Generation],
    written: Program,
    make: Make,
    wanted: int,
    partitions: int,
    moves: Sequence[Move] = (),
    trigger: int = 0,
) -> Succession:
    """The generations when a program takes the place of the one before; `make` plans some of its queries.

    `moves`: queries that go over to other lanes, which see the events of triggers after this one.
    """
    before = Succession(tuple(generations))
    change = compared(generations, written.queries)
    moves = [move for move in moves if move.is_possible]
    if change.is_none and not moves:
        return Succession(before.generations, change)
    kept = list(generations)
    present = before.present
    for place in change.gone:
        for at, number in _line(kept, *present[place][:2]):
            kept[at] = replace(kept[at], gone=kept[at].gone | {number})
    for was, now in change.stays:
        for at, number in _line(kept, *present[was][:2]):
            kept[at] = _renamed(kept[at], number, written.queries[now].name)
    if change.begins or moves:
        kept.append(_begun(kept, written, change, moves, trigger, make, wanted, partitions))
        _hand_over(kept, {number: present[was][:2] for number, was in _origins(kept[-1], change, moves)})
    return Succession(_left(kept), change)


def _left(kept: Sequence[Generation]) -> tuple[Generation, ...]:
    """Return the generations that still emit something; the last one has the lanes of all."""
    left = [generation for generation in kept if generation.told]
    used = frozenset[int]().union(*(generation.lane_ids for generation in kept if not generation.told))
    left[-1] = replace(left[-1], used=left[-1].used | used)
    return tuple(left)


def handed_over(generations: Sequence[Generation], gone: Mapping[int, frozenset[int]]) -> tuple[Generation, ...]:
    """The same without queries that have gone over to other lanes wholly; `gone`: those that each lane has left."""
    after = []
    for own in generations:
        done = {
            number
            for number in own.until
            if all(number in gone.get(lane.id, ()) for lane in own.lanes if number in lane.queries)
        }
        after.append(replace(own, gone=own.gone | done))
    return _left(after)


def _line(kept: Sequence[Generation], at: int, number: int) -> list[tuple[int, int]]:
    """A query, where it is present and where it comes from: place of the generation and number."""
    line = [(at, number)]
    for place in range(at - 1, -1, -1):
        line += [(place, own) for own, over in kept[place].until.items() if over.heir in [heir for _, heir in line]]
    return line


def _renamed(generation: Generation, number: int, name: str) -> Generation:
    query = generation.written[generation.numbers.index(number)]
    if query.is_rule or _called(query, generation.names).name == name:
        return generation
    return replace(generation, names={**generation.names, query.name: name})


def _begun(
    kept: Sequence[Generation],
    written: Program,
    change: Change,
    moves: Sequence[Move],
    trigger: int,
    make: Make,
    wanted: int,
    partitions: int,
) -> Generation:
    """The queries that begin or come from other lanes, with what they read, in lanes of their own."""
    reach_of = {place: move.reach for move in moves for place in move.places if isinstance(move.reach, Reach)}
    told_here = {*change.begins, *reach_of}
    places = sorted(_with_feeders(told_here, written.queries))
    own = [written.queries[place] for place in places]
    _check_names(own, [place not in told_here for place in places])
    first = 1 + max((number for generation in kept for number in generation.numbers), default=-1)
    plan = make(replace(written, queries=tuple(own)), first)
    taken = frozenset[int]().union(*(generation.lane_ids for generation in kept))
    lanes = spread(plan.lanes_for(wanted), partitions, taken)
    lanes = tuple(replace(lane, split=usual(lane.split)) for lane in lanes)
    number_of = {place: first + at for at, place in enumerate(places)}
    quiet = frozenset(number_of[place] for place in places if place not in told_here)
    since = {
        number_of[place]: Handover(trigger, reach.back, reach.unit, number_of[place])
        for place, reach in reach_of.items()
    }
    return Generation(tuple(number_of.values()), tuple(own), plan, lanes, quiet, since=since)


def _with_feeders(places: Collection[int], queries: Sequence[AnyQuery]) -> set[int]:
    """Return queries and everything they read, directly or not."""
    needed, fed_by = set(places), feeders(queries)
    waiting = list(needed)
    while waiting:
        makers = set(fed_by[waiting.pop()]) - needed
        needed |= makers
        waiting += makers
    return needed


def _check_names(queries: Sequence[AnyQuery], silent: Sequence[bool]) -> None:
    told = {query.name for query, quiet in zip(queries, silent, strict=True) if not quiet}
    quiet_names = (query.name for query, quiet in zip(queries, silent, strict=True) if quiet)
    shared = next((name for name in quiet_names if name in told), None)
    if shared is not None:
        raise UsageError(
            f"a rule that defines {shared!r} is new beside one that stays, and both are read by what begins: "
            "use another checkpoint for this program"
        )


def _origins(begun: Generation, change: Change, moves: Sequence[Move]) -> list[tuple[int, int]]:
    """The numbers of queries that came from other lanes, and their places in the program before."""
    was_at = {after: before for before, after in change.stays}
    moved = sorted(place for move in moves for place in move.places)
    return [(number, was_at[place]) for number, place in zip(sorted(begun.since), moved, strict=True)]


def _hand_over(kept: list[Generation], origins: Mapping[int, tuple[int, int]]) -> None:
    """Let the generations that queries come from know of it."""
    for heir, (at, number) in origins.items():
        kept[at] = replace(kept[at], until={**kept[at].until, number: kept[-1].since[heir]})


def _called(query: AnyQuery, names: Mapping[str, str]) -> AnyQuery:
    return query if query.is_rule or query.name not in names else replace(query, name=names[query.name])
