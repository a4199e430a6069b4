"""From the algebra to what runs: THE function that plans. Engines, Spark and live programs take what it gives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from weft.algebra.composites import CompositeQuery
from weft.algebra.feeding import depths, feeders
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.errors import UsageError
from weft.plan.automaton.cea import build_automaton
from weft.plan.graph import build_graph
from weft.plan.keyed import keyed_sequence
from weft.plan.keys import plan_lanes
from weft.plan.operators import AutomatonOp, Definer, GraphOp, Layer, Operator, Plan, RulesOp, SituationOp
from weft.plan.properties import columns, families, seen_types
from weft.plan.search import search_of

FedBy = Sequence[Collection[int]]  # for each query the numbers of those that feed it


class Unit(NamedTuple):
    """Queries that cannot be taken apart, by number: those that tell what they find, and those that only help them."""

    told: tuple[int, ...]
    silent: tuple[int, ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        """All of them."""
        return (*self.told, *self.silent)



def plan(program: Program) -> Plan:
    """Choose operators for every query of a program, and put them into layers."""
    queries = program.queries
    fed_by = feeders(queries)
    read = sorted({name for query in queries for name in columns(query)})
    return Plan(
        program,
        _layers(queries, fed_by),
        plan_lanes(queries, fed_by),
        tuple(read),
        _relevant_types(queries, fed_by),
    )


def _relevant_types(queries: Sequence[AnyQuery], fed_by: FedBy) -> frozenset[str] | None:
    known: set[str] = set()
    for query, makers in zip(queries, fed_by, strict=True):
        own = seen_types([query], fed=bool(makers))
        if own is None:
            return None
        known |= own
    return frozenset(known)


# ---------------------------------------------------------------- layers


def _layers(queries: Sequence[AnyQuery], fed_by: FedBy) -> tuple[Layer, ...]:
    """The queries that see the same events together, each layer after those that feed it."""
    groups: dict[tuple[tuple[int, ...], bool], list[Unit]] = {}
    for unit in _in_order(_units(queries, fed_by), fed_by):
        makers = tuple(sorted(_outside(unit, fed_by)))
        network = any(_is_situation(queries[at]) for at in makers) and _is_situation(queries[unit.told[0]])
        groups.setdefault((makers, network), []).append(unit)
    deep = depths(queries)
    definers = [
        Definer(query.defines, number, deep[number], query.is_rule, _is_situation(query))
        for number, query in enumerate(queries)
    ]
    return tuple(
        Layer(
            tuple(_operators(queries, units, fed=bool(makers))),
            tuple(definers[number] for number in makers),
            seen_types([queries[at] for unit in units for at in unit.all], fed=bool(makers)),
            network,
        )
        for (makers, network), units in groups.items()
    )


def _is_situation(query: AnyQuery) -> bool:
    return isinstance(query, SituationQuery)


def _operators(queries: Sequence[AnyQuery], units: Sequence[Unit], *, fed: bool) -> list[Operator]:
    """The operators of some queries that see the same events."""
    numbers = sorted({number for unit in units for number in unit.all})
    found: list[Operator] = []
    for number in numbers:
        match queries[number]:
            case Query() as query:
                found.append(AutomatonOp(number, query, build_automaton(query)))
            case SituationQuery() as query:
                keyed = None if fed else keyed_sequence(query.situation)
                found.append(SituationOp(number, query, search_of(query.situation) if keyed is None else keyed))
    composites = {at: own for at in numbers if isinstance(own := queries[at], CompositeQuery)}
    rules = {at: rule for at in numbers if isinstance(rule := queries[at], Rule)}
    if composites:
        found.append(GraphOp(tuple(composites), build_graph(list(composites.values()))))
    if rules:
        silent = {number for unit in units for number in unit.silent} - {at for unit in units for at in unit.told}
        found.append(RulesOp(tuple(rules), tuple(rules.values()), frozenset(silent)))
    return found


def _units(queries: Sequence[AnyQuery], fed_by: FedBy) -> list[Unit]:
    """The queries one by one; rules that look at each other together.

    Where something of another language is between them, those before it run twice: by themselves for what is between,
    and again, silently, with those after it.
    """
    rules = [at for at, query in enumerate(queries) if isinstance(query, Rule)]
    place = {number: at for at, number in enumerate(rules)}
    among = [[place[maker] for maker in fed_by[number] if maker in place] for number in rules]
    behind = _behind(fed_by)
    units = [Unit((at,)) for at, query in enumerate(queries) if not isinstance(query, Rule)]
    for family in families(among):
        members = [rules[at] for at in family]
        foreign = {at: frozenset(maker for maker in behind[at] if maker not in place) for at in members}
        if any(behind[maker] & set(members) for own in foreign.values() for maker in own):
            for part in dict.fromkeys(foreign.values()):
                told = tuple(at for at in members if foreign[at] == part)
                silent = {maker for at in told for maker in behind[at] if maker in place}.difference(told)
                units.append(Unit(told, tuple(sorted(silent))))
        else:
            units.append(Unit(tuple(members)))
    return units


def _in_order(units: Sequence[Unit], fed_by: FedBy) -> list[Unit]:
    """The units, each after those that feed it."""
    ordered: list[Unit] = []
    done: set[int] = set()
    left = sorted(units)
    while left:
        ready = [_outside(unit, fed_by) <= done for unit in left]
        if not any(ready):
            raise UsageError("queries feed each other in a circle: one of them must do without the others")
        now = [unit for unit, is_ready in zip(left, ready, strict=True) if is_ready]
        left = [unit for unit, is_ready in zip(left, ready, strict=True) if not is_ready]
        ordered += now
        done.update(number for unit in now for number in unit.told)
    return ordered


def _outside(unit: Unit, fed_by: FedBy) -> set[int]:
    return {maker for number in unit.all for maker in fed_by[number]}.difference(unit.all)


def _behind(fed_by: FedBy) -> list[set[int]]:
    """For each query those that feed it, those that feed these, and so on."""
    found: list[set[int]] = []
    for number in range(len(fed_by)):
        reached: set[int] = set()
        waiting = list(fed_by[number])
        while waiting:
            maker = waiting.pop()
            if maker not in reached:
                reached.add(maker)
                waiting += fed_by[maker]
        found.append(reached)
    return found
