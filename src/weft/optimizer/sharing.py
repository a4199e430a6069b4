"""Queries that share operators: a rewrite that is cheaper for one query alone may lose operators shared with other
queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from weft.algebra.composites import CompositeQuery
from weft.algebra.query import AnyQuery
from weft.optimizer.cost.model import Costs
from weft.optimizer.trace import Inequality, QueryTrace

Works = dict[str, float]  # by signature


def keep_shared(traced: Sequence[QueryTrace], costs: Costs) -> list[QueryTrace]:
    """The queries, of which those run as they were written that then cost the program less."""
    changed = [number for number, one in enumerate(traced) if one.query is not one.written]
    if not changed or len(traced) == 1:
        return list(traced)
    running = [_works(one.query, costs) for one in traced]
    uses = Counter(text for works in running for text in works)
    kept = list(traced)
    for number in changed:
        now, then = running[number], _works(traced[number].written, costs)
        uses.subtract(now.keys())
        if _alone(then, uses) < _alone(now, uses):
            one = traced[number]
            taken_back = replace(one, query=one.written, cost_after=one.cost_before, rewrites=())
            kept[number] = replace(taken_back, inequalities=(_by_itself(one), *one.inequalities))
            now = then
        uses.update(now.keys())
    return kept


def _by_itself(one: QueryTrace) -> Inequality:
    """What was taken back is cheaper by itself: this does not hold, so that all queries are looked at together."""

    def total(query: AnyQuery, costs: Costs) -> float:
        return sum(_works(query, costs).values())

    return Inequality("keep_shared", lambda costs: total(one.written, costs), lambda costs: total(one.query, costs))


def _works(query: AnyQuery, costs: Costs) -> Works:
    if not isinstance(query, CompositeQuery):
        return {}
    return {text: profile.work for text, (_, profile) in costs.operators([query.pattern]).items()}


def _alone(works: Works, uses: Counter[str]) -> float:
    """Return the work of the operators that no other query uses."""
    return sum(work for text, work in works.items() if not uses[text])
