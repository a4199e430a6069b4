"""The optimiser: the ordered tuple of rules for regular patterns, and the way of every query through it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from weft.algebra.composites import CompositeQuery
from weft.algebra.patterns import Bind, Event, Pattern
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.situations import SituationQuery
from weft.optimizer.chains import Refusal
from weft.optimizer.chooser import choose
from weft.optimizer.cost.known import known_of
from weft.optimizer.cost.model import Costs
from weft.optimizer.cost.ranks import Ranks
from weft.optimizer.rules.drop_always_where import drop_always_where
from weft.optimizer.rules.flatten_predicate import flatten_predicate
from weft.optimizer.rules.merge_where import merge_where
from weft.optimizer.rules.order_conditions import order_conditions
from weft.optimizer.rules.push_where_into_events import push_where_into_events
from weft.optimizer.rules.split_sequence import split_sequence
from weft.optimizer.sharing import keep_shared
from weft.optimizer.splits import late_work, quick_split
from weft.optimizer.trace import QueryTrace, Rewrite, Trace
from weft.statistics import Statistics
from weft.tree import Node, deep

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


class Choices(NamedTuple):
    """How a program is to run: rewritten or as it was written, and by which numbers."""

    optimize: bool = True
    statistics: Statistics | None = None

    def applied(self, program: Program) -> Program:
        """The program as it runs."""
        return optimize(program, self.statistics) if self.optimize else program


DEFAULT = Choices()
AS_WRITTEN = Choices(optimize=False)


def optimize(program: Program, statistics: Statistics | None = None) -> Program:
    """The program with every pattern rewritten; it has the same matches."""
    return trace(program, statistics).program


@deep
def trace(program: Program, statistics: Statistics | None = None) -> Trace:
    """The rewritten program, and every step that led to it."""
    costs = Costs(known_of(program, statistics))
    traced = keep_shared([_optimized(query, costs) for query in program.queries], costs)
    rewritten = replace(program, queries=tuple(one.query for one in traced))
    return Trace(rewritten, tuple(traced), costs.statistics, tuple(costs.remarks))


@deep
def as_written(program: Program, statistics: Statistics | None = None) -> Trace:
    """The program as it is, with what it costs."""
    costs = Costs(known_of(program, statistics))
    traced = []
    for query in program.queries:
        cost = costs.total(query.pattern) if isinstance(query, CompositeQuery) else _rate_read(query, costs)
        traced.append(QueryTrace(query, query, cost, cost))
    return Trace(program, tuple(traced), costs.statistics, tuple(costs.remarks))


def _optimized(query: AnyQuery, costs: Costs) -> QueryTrace:
    match query:
        case CompositeQuery():
            return _composite(query, costs)
        case Query():
            return _ordered(_regular(query, _rate_read(query, costs)), costs)
        case SituationQuery():
            return _situation(query, costs)
    cost = _rate_read(query, costs)
    return QueryTrace(query, query, cost, cost)


def _rate_read(query: AnyQuery, costs: Costs) -> float:
    """How many events a second a query looks at: all that its automaton, its search or its index does grows with it."""
    return sum(costs.rate(type_) for type_ in query.reads)


# ---------------------------------------------------------------- composite patterns: by cost


def _composite(query: CompositeQuery, costs: Costs) -> QueryTrace:
    before = costs.total(query.pattern)
    choice = choose(query.pattern, costs)
    after, cost = query, before
    if choice.pattern != query.pattern:
        after = replace(query, pattern=choice.pattern, order=query.variables)
        cost = costs.total(choice.pattern)
    return QueryTrace(query, after, before, cost, choice.rewrites, choice.refusals, choice.compared)


# ---------------------------------------------------------------- situations: split by what is known of rates


def _situation(query: SituationQuery, costs: Costs) -> QueryTrace:
    cost, situation = _rate_read(query, costs), query.situation
    choice = quick_split(situation, costs.statistics)
    if choice.split == situation.split:
        refusals = () if choice.reason is None else (Refusal(choice.reason),)
        return QueryTrace(query, query, cost, cost, (), refusals)
    split = split_sequence(situation, choice.split)
    late, less = (late_work(situation, early, costs.statistics) for early in (0, choice.split))
    rewrite = Rewrite(split_sequence.__name__, situation, split, late, less)
    return QueryTrace(query, replace(query, situation=split), cost, cost, (rewrite,))


# ---------------------------------------------------------------- regular patterns: by rules that always pay


def _regular(query: Query, cost: float) -> QueryTrace:
    pattern, rewrites = query.pattern, list[Rewrite]()
    for _ in range(PASSES):
        before = pattern
        for rule in RULES:
            pattern = _applied(rule, pattern, query.name, rewrites)
        if pattern == before:
            return QueryTrace(query, replace(query, pattern=pattern), cost, cost, tuple(rewrites))
    raise AssertionError(f"the rules do not come to rest on query {query.name!r}")


def _ordered(found: QueryTrace, costs: Costs) -> QueryTrace:
    """The query with its conditions over several events in the order in which they are worth testing."""
    query = found.query
    assert isinstance(query, Query)
    ranks = Ranks(query.pattern, costs.statistics)
    after = query.pattern.transform(lambda node: order_conditions(node, ranks.rank), within=Pattern)
    if after == query.pattern:
        return found
    assert isinstance(after, Pattern)
    rewrite = Rewrite(order_conditions.__name__, query.pattern, after)
    return replace(found, query=replace(query, pattern=after), rewrites=(*found.rewrites, rewrite))


def _applied(rule: Rule, pattern: Pattern, query: str, rewrites: list[Rewrite]) -> Pattern:
    after = pattern.transform(rule, within=None if rule in PREDICATE_RULES else Pattern)
    if after is pattern or after == pattern:
        return pattern
    assert isinstance(after, Pattern), f"{rule.__name__} made something else of a pattern"
    assert bound_variables(after) == bound_variables(pattern), f"{rule.__name__} changed the variables of {query!r}"
    rewrites.append(Rewrite(rule.__name__, pattern, after))
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
