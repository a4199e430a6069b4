"""The optimiser: the ordered tuple of rules, and the driver that applies them until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from weft.algebra.patterns import Bind, Event, Pattern
from weft.algebra.query import Program, Query
from weft.optimizer.rules.drop_always_where import drop_always_where
from weft.optimizer.rules.flatten_predicate import flatten_predicate
from weft.optimizer.rules.merge_where import merge_where
from weft.optimizer.rules.push_where_into_events import push_where_into_events
from weft.tree import Node

Rule = Callable[[Node], Node]

RULES: tuple[Rule, ...] = (
    push_where_into_events,
    # After pushing: filters that were apart meet at the event they are about.
    merge_where,
    # After merging, which makes nested conjunctions.
    flatten_predicate,
    # Last: flattening may show that a filter is empty.
    drop_always_where,
)
PREDICATE_RULES = (flatten_predicate,)  # the others look at patterns only
# A pass that still changes something after this many is a rule that undoes another.
PASSES = 20


@dataclass(frozen=True)
class Step:
    """One change: which rule made which pattern of which."""

    query: str
    rule: str
    before: Pattern
    after: Pattern


def optimize(program: Program) -> Program:
    """The program with every pattern rewritten; it has the same matches."""
    return optimize_with_trace(program)[0]


def optimize_with_trace(program: Program) -> tuple[Program, tuple[Step, ...]]:
    """The rewritten program, and every step that led to it."""
    steps: list[Step] = []
    # The rules so far are about regular patterns; other queries stay as they are.
    queries = tuple(_optimize_query(query, steps) if isinstance(query, Query) else query for query in program.queries)
    return replace(program, queries=queries), tuple(steps)


def _optimize_query(query: Query, steps: list[Step]) -> Query:
    pattern = query.pattern
    for _ in range(PASSES):
        before = pattern
        for rule in RULES:
            pattern = _applied(rule, pattern, query.name, steps)
        if pattern == before:
            return replace(query, pattern=pattern)
    raise AssertionError(f"the rules do not come to rest on query {query.name!r}")


def _applied(rule: Rule, pattern: Pattern, query: str, steps: list[Step]) -> Pattern:
    after = pattern.transform(rule, within=None if rule in PREDICATE_RULES else Pattern)
    if after is pattern or after == pattern:
        return pattern
    assert isinstance(after, Pattern), f"{rule.__name__} made something else of a pattern"
    assert bound_variables(after) == bound_variables(pattern), f"{rule.__name__} changed the variables of {query!r}"
    steps.append(Step(query, rule.__name__, pattern, after))
    return after


def bound_variables(pattern: Pattern) -> frozenset[str]:
    """The variables a pattern binds: what no rule may change."""
    names: set[str] = set()
    for node in pattern.walk(within=Pattern):
        if isinstance(node, Bind):
            names.add(node.name)
        elif isinstance(node, Event):
            names.update(node.names)
    return frozenset(names)
