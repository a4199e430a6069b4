"""From the algebra to what runs: THE function that plans. Engines, Spark and live programs take what it gives."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from weft.algebra.composites import CompositeQuery
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.errors import UsageError
from weft.plan.automaton.cea import build_automaton
from weft.plan.graph import build_graph
from weft.plan.keyed import keyed_sequence
from weft.plan.keys import plan_lanes
from weft.plan.operators import AutomatonOp, GraphOp, Layer, Operator, Plan, RulesOp, SituationOp
from weft.plan.properties import columns, families, feeders, seen_types
from weft.plan.search import search_of

Unit = tuple[int, ...]  # queries that cannot be taken apart, by number


def plan(program: Program) -> Plan:
    """Choose operators for every query of a program, and put them into layers."""
    queries = program.queries
    fed_by = feeders(queries)
    read = sorted({name for query in queries for name in columns(query)})
    return Plan(
        program,
        _layers(queries, fed_by),
        _depths(fed_by),
        plan_lanes(queries, fed_by),
        tuple(read),
        _relevant_types(queries, fed_by),
    )


def _relevant_types(queries: Sequence[AnyQuery], fed_by: Sequence[Collection[int]]) -> frozenset[str] | None:
    known: set[str] = set()
    for query, makers in zip(queries, fed_by, strict=True):
        own = seen_types([query], fed=bool(makers))
        if own is None:
            return None
        known |= own
    return frozenset(known)


# ---------------------------------------------------------------- layers


def _layers(queries: Sequence[AnyQuery], fed_by: Sequence[Collection[int]]) -> tuple[Layer, ...]:
    """The queries that see the same events together, each layer after those that feed it."""
    groups: dict[tuple[tuple[int, ...], bool], list[int]] = {}
    for unit in _in_order(_units(queries, fed_by), fed_by):
        makers = tuple(sorted(_outside(unit, fed_by)))
        by_start = bool(makers) and all(isinstance(queries[at], SituationQuery) for at in (*unit, *makers))
        groups.setdefault((makers, by_start), []).extend(unit)
    return tuple(
        Layer(
            tuple(_operators(queries, sorted(numbers), fed=bool(makers))),
            makers,
            seen_types([queries[at] for at in numbers], fed=bool(makers)),
            by_start,
        )
        for (makers, by_start), numbers in groups.items()
    )


def _operators(queries: Sequence[AnyQuery], numbers: Sequence[int], *, fed: bool) -> list[Operator]:
    """The operators of some queries that see the same events."""
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
        found.append(RulesOp(tuple(rules), tuple(rules.values())))
    return found


def _units(queries: Sequence[AnyQuery], fed_by: Sequence[Collection[int]]) -> list[Unit]:
    """The queries one by one; rules that look at each other together, if nothing of another language is between."""
    rules = [at for at, query in enumerate(queries) if isinstance(query, Rule)]
    place = {number: at for at, number in enumerate(rules)}
    among = [[place[maker] for maker in fed_by[number] if maker in place] for number in rules]
    behind = _behind(fed_by)
    units: list[Unit] = [(at,) for at, query in enumerate(queries) if not isinstance(query, Rule)]
    for family in families(among):
        members = [rules[at] for at in family]
        foreign = {at: frozenset(maker for maker in behind[at] if maker not in place) for at in members}
        if any(behind[maker] & set(members) for own in foreign.values() for maker in own):
            parts = dict.fromkeys(foreign.values())
            units += [tuple(at for at in members if foreign[at] == part) for part in parts]
        else:
            units.append(tuple(members))
    return units


def _in_order(units: Sequence[Unit], fed_by: Sequence[Collection[int]]) -> list[Unit]:
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
        done.update(number for unit in now for number in unit)
    return ordered


def _outside(unit: Unit, fed_by: Sequence[Collection[int]]) -> set[int]:
    return {maker for number in unit for maker in fed_by[number]}.difference(unit)


def _behind(fed_by: Sequence[Collection[int]]) -> list[set[int]]:
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


def _depths(fed_by: Sequence[Collection[int]]) -> tuple[int, ...]:
    """Over input 0, else one more than the deepest that feeds it; what feeds itself is as deep as all it is fed by."""
    behind = _behind(fed_by)
    known: dict[int, int] = {}

    def depth(number: int) -> int:
        if number not in known:
            others = [maker for maker in fed_by[number] if number not in behind[maker]]
            known[number] = max((1 + depth(maker) for maker in others), default=0)
        return known[number]

    return tuple(depth(number) for number in range(len(fed_by)))
