"""Data flow between the queries of a program: a query reads from every query that defines one of its types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weft.algebra.analysis.rule_graph import shortest_cycle
from weft.algebra.definition import Definition

Edges = Mapping[str, Sequence[str]]


def feeders(queries: Sequence[Definition]) -> list[tuple[int, ...]]:
    """For each query the numbers of those that define what it reads, in program order."""
    makers: dict[str, list[int]] = {}
    for number, query in enumerate(queries):
        makers.setdefault(query.defines, []).append(number)
    return [tuple(sorted({at for type_ in query.reads for at in makers.get(type_, ())})) for query in queries]


def mentioned_below(queries: Sequence[Definition]) -> list[tuple[str, ...]]:
    """For each query, the attributes that it and the queries below it mention."""
    fed_by = feeders(queries)
    names = [set(query.identity_attributes) for query in queries]
    waiting = [number for number, makers in enumerate(fed_by) if makers]
    while waiting:
        before = {number: len(names[number]) for number in waiting}
        for number in waiting:
            names[number].update(*(names[at] for at in fed_by[number]))
        waiting = waiting if any(len(names[number]) > count for number, count in before.items()) else []
    return [tuple(sorted(own)) for own in names]


def depths(queries: Sequence[Definition]) -> list[int]:
    """For each query: 0 over input, else one more than the deepest that it reads.

    Queries of types that are made of each other (only rules may do so) are equally deep.
    """
    by_type: dict[str, list[Definition]] = {}
    for query in queries:
        by_type.setdefault(query.defines, []).append(query)
    deep: dict[str, int] = {}
    found: dict[int, int] = {}
    edges = _dependencies(queries)
    for group in _groups(edges):
        members = [query for type_ in group for query in by_type[type_]]
        for query in members:
            below = (deep[type_] + 1 for type_ in query.reads if type_ in deep)
            found[id(query)] = max(below, default=0)
        deepest = max(found[id(query)] for query in members)
        deep |= dict.fromkeys(group, deepest)
        if any(type_ in edges[type_] or len(group) > 1 for type_ in group):
            found |= {id(query): deepest for query in members}
    return [found[id(query)] for query in queries]


def cycles_beyond_rules(queries: Sequence[Definition]) -> list[tuple[str, ...]]:
    """Cycles through a query that is no rule, each from a type over those it is made of, without the first repeated."""
    made = {query.defines for query in queries if not query.is_rule}
    if not any(type_ in made for query in queries for type_ in query.reads):
        return []
    edges = _dependencies(queries)
    circular = {type_ for group in _groups(edges) for type_ in group if len(group) > 1 or type_ in edges[type_]}
    found: list[tuple[str, ...]] = []
    for query in queries:
        if query.defines in circular and not query.is_rule and not any(query.defines in cycle for cycle in found):
            cycle = shortest_cycle(query.defines, edges)
            found += [cycle] if cycle is not None else []
    return found


def _dependencies(queries: Iterable[Definition]) -> dict[str, list[str]]:
    """For each defined type the defined types that its events are made of."""
    queries = list(queries)
    edges: dict[str, list[str]] = {query.defines: [] for query in queries}
    for query in queries:
        edges[query.defines] += (type_ for type_ in query.reads if type_ in edges)
    return {type_: list(dict.fromkeys(others)) for type_, others in edges.items()}


def _groups(edges: Edges) -> list[list[str]]:
    """The types in groups that are made of each other, each group after those it is made of (Tarjan)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: dict[str, None] = {}
    groups: list[list[str]] = []
    for root in edges:
        waiting = [(root, iter(edges[root]))] if root not in numbers else []
        while waiting:
            type_, others = waiting[-1]
            if type_ not in numbers:
                numbers[type_] = lowest[type_] = len(numbers)
                open_[type_] = None
            other = next(others, None)
            if other is not None:
                if other not in numbers:
                    waiting.append((other, iter(edges[other])))
                elif other in open_:
                    lowest[type_] = min(lowest[type_], numbers[other])
                continue
            waiting.pop()
            if waiting:
                above = waiting[-1][0]
                lowest[above] = min(lowest[above], lowest[type_])
            if lowest[type_] == numbers[type_]:
                group = [open_.popitem()[0]]
                while group[-1] != type_:
                    group.append(open_.popitem()[0])
                groups.append(group)
    return groups
