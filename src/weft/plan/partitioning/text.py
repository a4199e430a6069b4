"""Descriptions of how work is split: strategies, loads of lanes, and alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from weft.algebra.analysis.feeding import feeders
from weft.algebra.query import Program
from weft.optimizer.cost import Costs, resolve_statistics
from weft.plan.partitioning.by_query import ByQuery, by_query
from weft.plan.partitioning.choice import families_of, share_out, split_of
from weft.plan.partitioning.estimates import load_of
from weft.plan.partitioning.lane_groups import LaneGroup
from weft.plan.partitioning.one import one
from weft.plan.partitioning.splits import STRATEGIES, Refused
from weft.plan.partitioning.work import total_of, work_of
from weft.plan.properties import Family
from weft.statistics import Statistics

WIDTH = 120
HEAD, INDENT = "  lanes     ", " " * 12


def sharing_lines(program: Program, strategy: str, lanes: int, statistics: Statistics | None = None) -> Iterator[str]:
    """For queries that are split together: how, their names, the load of lanes, and the alternative strategies.

    A load is a fraction of the total work of these queries. Equal families are listed once.
    """
    costs = Costs(resolve_statistics(program, statistics))
    fed_by = feeders(program.queries)
    families = {family.numbers[0]: family for family in families_of(program.queries, fed_by)}
    for group in share_out(program.queries, fed_by, strategy, lambda: costs, lanes):
        own = _of_group(group, families)
        yield HEAD + group.reason
        names = dict.fromkeys(program.queries[number].name for number in group.queries)
        yield from _wrapped(", ".join(names))
        yield from _wrapped(_loads(group, own, costs, lanes))
        yield from _wrapped(_others(group, own[0], costs, lanes))


def strategies(program: Program, strategy: str, lanes: int, statistics: Statistics | None = None) -> dict[int, str]:
    """By number of a query: its strategy, and the load of its lanes."""
    costs = Costs(resolve_statistics(program, statistics))
    fed_by = feeders(program.queries)
    families = {family.numbers[0]: family for family in families_of(program.queries, fed_by)}
    told: dict[int, str] = {}
    for group in share_out(program.queries, fed_by, strategy, lambda: costs, lanes):
        own = _of_group(group, families)
        told |= dict.fromkeys(group.queries, f"strategy {group.split.strategy}, {_loads(group, own, costs, lanes)}")
    return told


def _of_group(group: LaneGroup, families: Mapping[int, Family]) -> list[Family]:
    """The families, by their first queries, that are shared out together."""
    queries = set(group.queries)
    own = (families[number] for number in sorted(queries) if number in families)
    return [family for family in own if queries.issuperset(family.numbers)]


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT + "  ")


def _loads(group: LaneGroup, families: Sequence[Family], costs: Costs, lanes: int) -> str:
    works = [work_of(family, costs) for family in families]
    if isinstance(group.split, ByQuery):
        split = group.split
        held = [total_of(part.work for part in own) for own in split.placed(lanes) if own]
        whole = total_of(family.work for family in split.families)
        return f"load of {len(held)} lanes: " + ", ".join(f"{load / whole:.2f}" for load in sorted(held, reverse=True))
    count = group.split.lanes(lanes)
    load = sum(load_of(group.split, family, work, count) for family, work in zip(families, works, strict=True))
    whole = sum(load_of(one(family), family, work, 1) for family, work in zip(families, works, strict=True))
    return f"load of {'the lane' if count == 1 else f'each of {count} lanes'}: {load / whole:.2f}"


def _others(group: LaneGroup, family: Family, costs: Costs, lanes: int) -> str:
    """The strategies that were not taken, with the load of their lanes or the reason against them."""
    told: list[tuple[list[str], str]] = []  # strategies, and a load or what stands against them
    for strategy in STRATEGIES:
        if strategy in (group.split.strategy, "one"):
            continue
        words = _load_text(strategy, family, costs, lanes)
        if told and told[-1][1] == words and words.startswith("("):
            told[-1][0].append(strategy)
        else:
            told.append(([strategy], words))
    no = {True: "no ", False: ""}
    return "; ".join(f"{no[words.startswith('(')]}{', '.join(names)} {words}" for names, words in told)


def _load_text(strategy: str, family: Family, costs: Costs, lanes: int) -> str:
    """The load of the busiest lane as a part of all work, or in brackets the reason why there are no such lanes."""
    if strategy == "query":
        placed = by_query([family], costs)
        if len(placed.parts(lanes)) < 2:
            return "(nothing to place apart)" if len(family.queries) < 2 else "(its queries all need each other)"
        loads = [total_of(part.work for part in own) for own in placed.placed(lanes)]
        return f"{max(loads) / total_of(part.work for part in placed.families):.2f}"
    split, work = split_of(strategy, family, lambda: costs), work_of(family, costs)
    if isinstance(split, Refused):
        return f"({split.reason})"
    return f"{load_of(split, family, work, lanes) / load_of(one(family), family, work, 1):.2f}"
