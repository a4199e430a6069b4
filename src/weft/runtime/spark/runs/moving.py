"""Which queries of a run get other lanes, when it is started again with another number of them or another strategy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from weft.algebra.analysis.feeding import feeders
from weft.algebra.prefixes import is_step
from weft.algebra.query import AnyQuery
from weft.algebra.rules import Rule
from weft.plan.changes import Change
from weft.plan.operators import Plan
from weft.plan.partitioning.by_slice import usual
from weft.plan.partitioning.reach import joint_reach
from weft.plan.partitioning.splits import Lane, Refused
from weft.plan.properties import families
from weft.runtime.spark.jobs.generations import Generation, Succession, compared
from weft.runtime.spark.jobs.handover import Move

Placement = frozenset[tuple[object, ...]]


def moves_of(
    generations: Sequence[Generation], written: Sequence[AnyQuery], plan: Plan, wanted: int
) -> tuple[Move, ...]:
    """The queries of a program that stay, and that a plan has in other lanes than they are in; what feeds goes along.

    `plan` is that of the program as it runs, its queries numbered from 0 on.
    """
    present = Succession(tuple(generations)).present
    stays = {after: present[before] for before, after in compared(generations, written).stays}
    fed_by = feeders(plan.queries)
    planned = [replace(lane, split=usual(lane.split)) for lane in plan.lanes_for(wanted)]
    found = []
    for family in families(_with_namesakes(fed_by, plan.queries)):
        staying = [place for place in family if place in stays]
        before = _placement(
            {stays[place][1]: place for place in staying},
            [lane for at in sorted({stays[place][0] for place in staying}) for lane in generations[at].lanes],
        )
        if staying and before != _placement({place: place for place in staying}, planned):
            names = ", ".join(dict.fromkeys(written[place].name for place in staying))
            reach = joint_reach([plan.queries[place] for place in family], _within(family, fed_by))
            refused = _hindrance(family, written, {place: own for place, (_, _, own) in stays.items()})
            found.append(Move(tuple(staying), names, refused or reach))
    return tuple(found)


def change_lines(change: Change, moves: Sequence[Move] = ()) -> list[str]:
    """What becomes of the queries that a user wrote, a line each."""
    names = {query.name for query in (*change.old, *change.new)}
    lines = [*str(change).splitlines(), *map(str, moves)]
    return [line for line in lines if not is_step(line.partition(": ")[0], names)]


def _with_namesakes(fed_by: Sequence[Iterable[int]], queries: Sequence[AnyQuery]) -> list[set[int]]:
    """Rules that define one type are known by it only: they go together, as if one fed the other."""
    first: dict[str, int] = {}
    return [
        {*makers, first.setdefault(query.name, at)} - {at}
        for at, (query, makers) in enumerate(zip(queries, fed_by, strict=True))
    ]


def _within(family: Sequence[int], fed_by: Sequence[Iterable[int]]) -> list[list[int]]:
    return [[family.index(maker) for maker in fed_by[place]] for place in family]


def _placement(place_of: dict[int, int], lanes: Iterable[Lane]) -> Placement:
    """Who has queries, by number: the lanes, with what tells them apart."""
    found = set()
    for lane in lanes:
        own = tuple(sorted(place_of[number] for number in lane.queries if number in place_of))
        if own:
            split = type(lane.split).__name__ if lane.split.strategy == "query" else replace(lane.split, reason="")
            found.add((own, split, lane.share, lane.shares))
    return frozenset(found)


def _hindrance(family: Sequence[int], written: Sequence[AnyQuery], stays: dict[int, AnyQuery]) -> Refused | None:
    """What matches of rules are known by must not change on the way."""
    names = {written[place].name for place in stays}
    if any(place not in stays and written[place].name in names for place in family):
        return Refused("another rule of its name begins anew")
    for place in family:
        now, before = written[place], stays.get(place)
        if isinstance(now, Rule) and isinstance(before, Rule) and now.number != before.number:
            return Refused("its number among the rules of its name has changed")
    return None
