"""Layers: group queries that read the same events, each layer after those that feed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from weft.algebra.analysis.beginnings import beginning
from weft.algebra.analysis.feeding import depths, feeders
from weft.algebra.composites import CompositeQuery
from weft.algebra.query import AnyQuery, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.errors import UsageError
from weft.plan.automaton.cea import build_automaton
from weft.plan.chains import with_chains
from weft.plan.graph import build_graph
from weft.plan.keyed import keyed_sequence
from weft.plan.operators import AutomatonOp, Definer, JoinOp, Layer, PhysicalOp, RuleOp, SituationOp
from weft.plan.properties import seen_types
from weft.plan.search import search_of

BEGINNING, NOBODY = "beginning", -1  # what several situations begin with: its name and number, which nobody is told


class Unit(NamedTuple):
    """Queries that read the same events, by number: those that emit matches, and those that only feed them."""

    told: tuple[int, ...]
    silent: tuple[int, ...]
    makers: tuple[int, ...]  # whose events they see


class Layering:
    """New queries beside those that run already. A query's place is that in all of these, its number is for good."""

    def __init__(self, queries: Sequence[AnyQuery], running: Mapping[int, AnyQuery], first: int) -> None:
        self._queries = (*running.values(), *queries)
        self._numbers = (*running, *range(first, first + len(queries)))
        self._new = range(len(running), len(self._queries))
        self._fed_by = feeders(self._queries)

    def layers(self) -> tuple[Layer, ...]:
        """The layers of the new queries."""
        groups: dict[tuple[tuple[int, ...], bool], list[Unit]] = {}
        for unit in self._in_order([*self._others(), *self._rules()]):
            network = all(isinstance(self._queries[place], SituationQuery) for place in unit.told)
            groups.setdefault((unit.makers, network and bool(unit.makers)), []).append(unit)
        return tuple(self._layer(units, makers, network) for (makers, network), units in groups.items())

    def _layer(self, units: Sequence[Unit], makers: Sequence[int], network: bool) -> Layer:
        places = sorted({place for unit in units for place in (*unit.told, *unit.silent)})
        told = {place for unit in units for place in unit.told}
        return layer_of(
            {self._numbers[place]: self._queries[place] for place in places},
            frozenset(self._numbers[place] for place in places if place not in told),
            tuple(self._definer(place) for place in makers),
            network=network,
        )

    @cached_property
    def _depths(self) -> list[int]:
        return depths(self._queries)

    def _definer(self, place: int) -> Definer:
        query = self._queries[place]
        is_situation = isinstance(query, SituationQuery)
        return Definer(query.defines, self._numbers[place], self._depths[place], query.is_rule, is_situation)

    # ---------------------------------------------------------------- units

    def _others(self) -> Iterator[Unit]:
        """All queries but rules, one by one."""
        for place in self._new:
            if not self._queries[place].is_rule:
                yield Unit((place,), (), self._fed_by[place])

    def _rules(self) -> Iterator[Unit]:
        """Yield units of rules by the other queries they read, directly or not. Rules that read none form one unit.

        The rules that feed those of a unit run in it, too, since rules see each other's events immediately: silently,
        because another unit emits their matches. Events of rules that are already running arrive like those of other
        queries.
        """
        groups: dict[frozenset[int], list[int]] = {}
        others = {place for place, query in enumerate(self._queries) if not query.is_rule}
        rules = {place: None for place in self._new if place not in others}
        for place in rules:
            foreign = frozenset(others.intersection(self._behind([place])) if others else ())
            groups.setdefault(foreign, []).append(place)
        for foreign, told in groups.items():
            silent = (self._behind(told) & rules.keys()).difference(told) if foreign else set[int]()
            own = {*told, *silent}
            makers = {maker for place in own for maker in self._fed_by[place]} - own if foreign else set[int]()
            yield Unit(tuple(told), tuple(sorted(silent)), tuple(sorted(makers)))

    def _behind(self, places: Iterable[int]) -> set[int]:
        """The queries that feed some, those that feed these, and so on."""
        reached: set[int] = set()
        waiting = [maker for place in places for maker in self._fed_by[place]]
        while waiting:
            maker = waiting.pop()
            if maker not in reached:
                reached.add(maker)
                waiting += self._fed_by[maker]
        return reached

    def _in_order(self, units: list[Unit]) -> Iterator[Unit]:
        """Yield the units in topological order, in rounds: each round has all units fed by the previous ones only."""
        left = sorted(units)
        teller = {place: at for at, unit in enumerate(left) for place in unit.told}
        lacks = [{teller.get(maker, -1) for maker in unit.makers if maker >= self._new.start} for unit in left]
        readers: dict[int, list[int]] = {}
        for at, feeding in enumerate(lacks):
            for feeder in feeding:
                readers.setdefault(feeder, []).append(at)
        missing = list(map(len, lacks))
        now = [at for at, count in enumerate(missing) if not count]
        given = 0
        while now:
            given += len(now)
            yield from (left[at] for at in now)
            after: list[int] = []
            for reader in (reader for at in now for reader in readers.get(at, ())):
                missing[reader] -= 1
                after += [reader] if not missing[reader] else []
            now = sorted(after)
        if given < len(left):
            raise UsageError("queries feed each other in a cycle: remove one of these dependencies")


def layer_of(
    queries: Mapping[int, AnyQuery], silent: frozenset[int], feeders: tuple[Definer, ...], *, network: bool
) -> Layer:
    """The layer of queries, by number, that see the same events: what `feeders` define, and the input."""
    fed = bool(feeders)
    return Layer(tuple(_operators(queries, silent, fed=fed)), feeders, seen_types(queries.values(), fed=fed), network)


def _operators(queries: Mapping[int, AnyQuery], silent: frozenset[int], *, fed: bool) -> Iterator[PhysicalOp]:
    """The operators of queries that see the same events."""
    composites: dict[int, CompositeQuery] = {}
    rules: dict[int, Rule] = {}
    for number, query in queries.items():
        match query:
            case Query():
                yield AutomatonOp(number, query, build_automaton(query))
            case SituationQuery():
                yield situation_op(number, query, fed=fed)
            case CompositeQuery():
                composites[number] = query
            case Rule():
                rules[number] = query
    if composites:
        graph = build_graph(list(composites.values()))
        yield JoinOp(tuple(composites), graph if fed else with_chains(graph))
    if rules:
        yield RuleOp(tuple(rules), tuple(rules.values()), silent)


def situation_op(number: int, query: SituationQuery, *, fed: bool) -> SituationOp:
    """The operator of a situation. Sequences by key share no beginning: an event costs them next to nothing."""
    situation = query.situation
    keyed = None if fed else keyed_sequence(situation)
    if keyed is not None:
        return SituationOp(number, query, keyed)
    first = SituationQuery(BEGINNING, beginning(situation, situation.shared)) if situation.shared else None
    return SituationOp(
        number, query, search_of(situation), None if first is None else situation_op(NOBODY, first, fed=fed)
    )
