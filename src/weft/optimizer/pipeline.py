"""The optimizer: all rules in their order by kind of query, and their application to each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from weft.algebra.composites import CompositeQuery
from weft.algebra.patterns import Correlate, Pattern
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.errors import InternalError
from weft.optimizer.chains import Refusal
from weft.optimizer.chooser import choose
from weft.optimizer.cost.known import resolve_statistics
from weft.optimizer.cost.lookbacks import MOST_ORDERED, best_order, rule_work
from weft.optimizer.cost.model import Costs
from weft.optimizer.cost.ranks import ConditionRanks
from weft.optimizer.invariants import check_query
from weft.optimizer.join_order import choose_join_order
from weft.optimizer.prefixes import share_prefixes
from weft.optimizer.rules.drop_always_where import drop_always_where
from weft.optimizer.rules.flatten_predicate import flatten_predicate
from weft.optimizer.rules.lift_plain_conditions import lift_plain_conditions
from weft.optimizer.rules.merge_where import merge_where
from weft.optimizer.rules.order_conditions import order_conditions
from weft.optimizer.rules.order_lookbacks import order_lookbacks
from weft.optimizer.rules.order_overlap import order_overlap
from weft.optimizer.rules.push_where_into_events import push_where_into_events
from weft.optimizer.rules.rebracket_each import rebracket_each
from weft.optimizer.rules.rebracket_next import rebracket_next
from weft.optimizer.rules.reorder_union import reorder_union
from weft.optimizer.rules.share_prefix import share_prefix
from weft.optimizer.rules.split_sequence import split_sequence
from weft.optimizer.rules.spread_key import spread_key
from weft.optimizer.sharing import keep_shared
from weft.optimizer.splits import late_work, quick_split, split_inequalities
from weft.optimizer.trace import Inequality, QueryTrace, Rewrite, Trace
from weft.statistics import Statistics
from weft.tree import Node, deep

Rewriting = Callable[[Node], Node]

# Rules for regular patterns that always pay, applied in this order until nothing changes.
REGULAR_RULES: tuple[Rewriting, ...] = (
    push_where_into_events,
    # After pushing: filters that were apart meet at the event they are about.
    merge_where,
    # After merging, which makes nested conjunctions.
    flatten_predicate,
    # Last: flattening may show that a filter is empty.
    drop_always_where,
)
# Every rule, in the order in which it is applied to queries of its kind; those not above are chosen by cost.
RULES: Mapping[type[AnyQuery], tuple[Callable[..., object], ...]] = {
    Query: (*REGULAR_RULES, order_conditions),
    # For each operator, operands first; a sequence is rebracketed after its key is spread and conditions are lifted.
    # Forms are found by the documents' costs; `join_order.py` then takes the one that runs fastest.
    CompositeQuery: (
        spread_key,
        lift_plain_conditions,
        rebracket_next,
        rebracket_each,
        reorder_union,
        order_overlap,
    ),
    # Prefixes are shared between the situations of a program, after each of them is split.
    SituationQuery: (split_sequence, share_prefix),
    Rule: (order_lookbacks,),
}
PREDICATE_RULES = (flatten_predicate,)  # the others look at patterns only
WORTH = 1.1  # how many times as much look-backs must cost for another order
# A pass that still changes something after this many is a rule that undoes another.
PASSES = 20


class Choices(NamedTuple):
    """How a program is optimised: rewritten or as written, and by which statistics."""

    optimize: bool = True
    statistics: Statistics | None = None
    grows: bool = False  # queries may come later that read what these define

    @classmethod
    def of(cls, optimize: bool = True, statistics: Statistics | str | Path | None = None) -> Choices:
        """The choices that a user makes; statistics may be in a file."""
        known = Statistics.read(statistics) if isinstance(statistics, str | Path) else statistics
        return cls(bool(optimize), known)

    def applied(self, program: Program) -> Program:
        """The program as it runs."""
        return trace(program, self.statistics, grows=self.grows).program if self.optimize else program


DEFAULT = Choices()
AS_WRITTEN = Choices(optimize=False)


def optimize(program: Program, statistics: Statistics | None = None) -> Program:
    """The program with every pattern rewritten; it has the same matches."""
    return trace(program, statistics).program


@deep
def trace(program: Program, statistics: Statistics | None = None, *, grows: bool = False) -> Trace:
    """The rewritten program, and every step that led to it."""
    program = replace(program, queries=tuple(query.as_mentioning() for query in program.queries))
    costs = Costs(resolve_statistics(program, statistics))
    read = {type_ for query in program.queries for type_ in query.reads}
    traced = [_optimized(query, costs, not grows and query.defines not in read) for query in program.queries]
    traced = choose_join_order(keep_shared(traced, costs), costs)
    traced = share_prefixes(traced, costs.statistics)
    rewritten = replace(program, queries=tuple(one.query for one in traced))
    return Trace(rewritten, tuple(traced), costs.statistics, tuple(costs.remarks))


@deep
def as_written(program: Program, statistics: Statistics | None = None) -> Trace:
    """The program as it is, with what it costs."""
    costs = Costs(resolve_statistics(program, statistics))
    traced = []
    for query in program.queries:
        cost = _cost(query, costs)
        traced.append(QueryTrace(query, query, cost, cost))
    return Trace(program, tuple(traced), costs.statistics, tuple(costs.remarks))


def _optimized(query: AnyQuery, costs: Costs, free: bool) -> QueryTrace:
    """Optimise one query and return its trace; `free` means that no other query reads its output."""
    match query:
        case CompositeQuery():
            return _composite(query, costs)
        case Query():
            return _ordered(_regular(query, _rate_read(query, costs)), costs)
        case SituationQuery():
            return _situation(query, costs)
        case Rule():
            return _rule(query, costs, free)


def _rate_read(query: AnyQuery, costs: Costs) -> float:
    """Return how many events per second a query reads, to which the work of its operator is proportional."""
    return sum(costs.rate(type_) for type_ in query.reads)


def _cost(query: AnyQuery, costs: Costs) -> float:
    """What a query does in a second: the occurrences, or else the events, that it looks at."""
    match query:
        case CompositeQuery(pattern=pattern):
            return costs.total(pattern)
        case Rule():
            return _rate_read(query, costs) + rule_work(query, costs.statistics)
    return _rate_read(query, costs)


# ---------------------------------------------------------------- composite patterns: by cost


def _composite(query: CompositeQuery, costs: Costs) -> QueryTrace:
    before = costs.total(query.pattern)
    choice = choose(query.pattern, costs)
    after, cost = query, before
    if choice.pattern != query.pattern:
        after = replace(query, pattern=choice.pattern, order=query.variables)
        check_query(query, after, "the chooser")
        cost = costs.total(choice.pattern)
    return QueryTrace(query, after, before, cost, choice.rewrites, choice.refusals, choice.inequalities)


# ---------------------------------------------------------------- situations: split by what is known of rates


def _situation(query: SituationQuery, costs: Costs) -> QueryTrace:
    cost, situation = _rate_read(query, costs), query.situation
    choice = quick_split(situation, costs.statistics)
    inequalities = () if situation.split else split_inequalities(situation, choice.split)
    if choice.split == situation.split:
        refusals = () if choice.reason is None else (Refusal(choice.reason, parts=choice.parts),)
        return QueryTrace(query, query, cost, cost, (), refusals, inequalities)
    split = split_sequence(situation, choice.split)
    late, less = (late_work(situation, early, costs.statistics) for early in (0, choice.split))
    rewrite = Rewrite(split_sequence.__name__, situation, split, late, less)
    after = replace(query, situation=split)
    check_query(query, after, split_sequence.__name__)
    return QueryTrace(query, after, cost, cost, (rewrite,), (), inequalities)


# ---------------------------------------------------------------- rules: look-backs in the cheapest order


def _rule(query: Rule, costs: Costs, free: bool) -> QueryTrace:
    before, known = _cost(query, costs), costs.statistics
    refusals: tuple[Refusal, ...] = ()
    order = best_order(query, known, free)
    if not free and _saves(query, best_order(query, known, free=True), before, costs):
        reason = "other queries depend on the order of its look-backs, so those that take several events stay"
        refusals = (Refusal(reason, parts=tuple(step for step in query.lookbacks if step.count != 1)),)
    if not _saves(query, order, before, costs):
        return QueryTrace(query, query, before, before, (), refusals, _least_looks(query, query, free))
    after = order_lookbacks(query, order, free)
    assert isinstance(after, Rule)
    check_query(query, after, order_lookbacks.__name__)
    cost = _cost(after, costs)
    rewrite = Rewrite(order_lookbacks.__name__, query, after, before, cost)
    return QueryTrace(query, after, before, cost, (rewrite,), refusals, _least_looks(query, after, free))


def _least_looks(written: Rule, chosen: Rule, free: bool) -> tuple[Inequality, ...]:
    """That no order of look-backs costs less, where there are several."""
    if not 1 < len(written.lookbacks) <= MOST_ORDERED:
        return ()

    def least(costs: Costs) -> float:
        best = order_lookbacks(written, best_order(written, costs.statistics, free), free)
        assert isinstance(best, Rule)
        return _cost(best, costs)

    return (Inequality(order_lookbacks.__name__, lambda costs: _cost(chosen, costs), least),)


def _saves(query: Rule, order: Sequence[str], cost: float, costs: Costs) -> bool:
    """Return whether an order saves enough. Rules that differ in constants only should have the same order."""
    if all(name == step.variable for name, step in zip(order, query.lookbacks, strict=True)):
        return False
    after = order_lookbacks(query, order)
    return isinstance(after, Rule) and cost > WORTH * _cost(after, costs)


# ---------------------------------------------------------------- regular patterns: by rules that always pay


def _regular(query: Query, cost: float) -> QueryTrace:
    pattern, rewrites = query.pattern, list[Rewrite]()
    for _ in range(PASSES):
        before = pattern
        for rule in REGULAR_RULES:
            pattern = _applied(rule, pattern, query, rewrites)
        if pattern == before:
            return QueryTrace(query, replace(query, pattern=pattern), cost, cost, tuple(rewrites))
    raise InternalError(f"the rules of the optimizer do not reach a fixed point on query {query.name!r}")


def _ordered(found: QueryTrace, costs: Costs) -> QueryTrace:
    """The query with its conditions over several events in the order in which they are worth testing."""
    query = found.query
    assert isinstance(query, Query)
    if not any(isinstance(part, Correlate) and isinstance(part.pattern, Correlate) for part in query.pattern.walk()):
        return found
    after = _in_best_order(query.pattern, costs)
    found = replace(found, inequalities=(_least_tests(after),))
    if after == query.pattern:
        return found
    ordered = replace(query, pattern=after)
    check_query(query, ordered, order_conditions.__name__)
    ranks = ConditionRanks(after, costs.statistics)
    tests = ranks.work(query.pattern), ranks.work(after)
    rewrite = Rewrite(order_conditions.__name__, query.pattern, after, *tests)
    return replace(found, query=ordered, rewrites=(*found.rewrites, rewrite))


def _in_best_order(pattern: Pattern, costs: Costs) -> Pattern:
    ranks = ConditionRanks(pattern, costs.statistics)
    after = pattern.transform(lambda node: order_conditions(node, ranks.rank), within=Pattern)
    assert isinstance(after, Pattern)
    return after


def _least_tests(pattern: Pattern) -> Inequality:
    """That no order of conditions costs less."""

    def work(pattern: Pattern, costs: Costs) -> float:
        return ConditionRanks(pattern, costs.statistics).work(pattern)

    def least(costs: Costs) -> float:
        return work(_in_best_order(pattern, costs), costs)

    return Inequality(order_conditions.__name__, lambda costs: work(pattern, costs), least)


def _applied(rule: Rewriting, pattern: Pattern, query: Query, rewrites: list[Rewrite]) -> Pattern:
    after = pattern.transform(rule, within=None if rule in PREDICATE_RULES else Pattern)
    if after is pattern or after == pattern:
        return pattern
    if not isinstance(after, Pattern):
        raise InternalError(f"the optimizer's rule {rule.__name__} made something else of a pattern")
    check_query(replace(query, pattern=pattern), replace(query, pattern=after), rule.__name__)
    rewrites.append(Rewrite(rule.__name__, pattern, after))
    return after
