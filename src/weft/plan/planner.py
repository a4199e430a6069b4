"""From the algebra to operators: one automaton per query, grouped by how the work can be split."""

from __future__ import annotations

from weft.algebra.patterns import Event as EventPattern
from weft.algebra.patterns import Other, Repeat, Sequence
from weft.algebra.predicates import Attribute
from weft.algebra.query import Consume, Program, Query, Strategy
from weft.errors import UsageError
from weft.plan.operators import AutomatonOp, Lanes, Plan


def plan(program: Program) -> Plan:
    """Choose operators for every query of a program."""
    queries = _regular(program)
    columns = sorted({name for query in queries for name in _columns_of(query)})
    return Plan(
        program,
        tuple(AutomatonOp(query) for query in queries),
        _plan_lanes(queries),
        tuple(columns),
        _relevant_types(queries),
    )


def _regular(program: Program) -> tuple[Query, ...]:
    """The program's queries, if all are regular patterns: other operators have no kernels yet."""
    queries = tuple(query for query in program.queries if isinstance(query, Query))
    if len(queries) < len(program.queries):
        raise UsageError(
            f"{program.language} programs run on the engine 'meaning' only so far: ask for engine='meaning'"
        )
    return queries


def _plan_lanes(queries: tuple[Query, ...]) -> tuple[Lanes, ...]:
    groups: dict[tuple[tuple[tuple[str, ...], ...], str], list[int]] = {}
    for number, query in enumerate(queries):
        groups.setdefault(_lane_key(query), []).append(number)
    return tuple(Lanes(key, tuple(numbers), reason) for (key, reason), numbers in groups.items())


def _lane_key(query: Query) -> tuple[tuple[tuple[str, ...], ...], str]:
    """The key a query can be split by, and why."""
    if not query.partition:
        return (), "one lane: no PARTITION BY"
    if query.consume is Consume.ANY:
        return (), "one lane: CONSUME BY ANY looks at all partitions"
    if query.window is not None and query.window.unit == "attribute":
        return (), f"one lane: the order of [{query.window.attribute}] is that of all partitions"
    parts = ", ".join(f"[{', '.join(part)}]" for part in query.partition)
    return query.partition, f"by key {parts}"


def _columns_of(query: Query) -> set[str]:
    """The attributes a query reads."""
    names = {node.name for node in query.walk() if isinstance(node, Attribute)}
    names.update(name for part in query.partition for name in part)
    names.update(name for selected in query.selected or () for name in selected.attributes)
    if query.window is not None and query.window.attribute is not None:
        names.add(query.window.attribute)
    return names


def _relevant_types(queries: tuple[Query, ...]) -> frozenset[str] | None:
    """The types whose events matter, None when any event may: it can break contiguity, fill a NOT, or move a window."""
    types: set[str] = set()
    for query in queries:
        if query.strategy is Strategy.STRICT or (query.window is not None and query.window.unit == "attribute"):
            return None
        for node in query.pattern.walk():
            if isinstance(node, Other) or (isinstance(node, Sequence | Repeat) and node.contiguous):
                return None
            if isinstance(node, EventPattern):
                types.add(node.type)
    return frozenset(types)
