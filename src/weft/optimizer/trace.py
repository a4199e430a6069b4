"""What the optimiser did: for each query its rewrites with their costs, and what had to stay as it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

from weft.algebra.query import AnyQuery, Program
from weft.optimizer.chains import Refusal
from weft.optimizer.cost.model import Costs
from weft.source import Span
from weft.statistics import LEAST_RATE, Statistics
from weft.tree import Node

Work = Callable[[Costs], float]  # what something costs under statistics


@dataclass(frozen=True)
class Rewrite:
    """One rewrite: the rule, the part of the query before and after it, and the cost of both, or None where it is not
    estimated.
    """

    rule: str
    before: Node
    after: Node
    cost_before: float | None = None
    cost_after: float | None = None


@dataclass(frozen=True)
class Inequality:
    """A comparison that a form rests on: under the statistics, one thing cost no more than another.

    Mostly that is the form of a part of a query, and the cheapest one that a rule can make of it.
    """

    rule: str
    less: Work
    more: Work

    def gain(self, costs: Costs) -> float:
        """Return the cost ratio of the form assumed cheaper to the other; above 1 the comparison no longer holds."""
        return self.less(costs) / max(self.more(costs), LEAST_RATE)


@dataclass(frozen=True)
class QueryTrace:
    """A query as it was written and as it runs, with the work per second of both."""

    written: AnyQuery
    query: AnyQuery
    cost_before: float
    cost_after: float
    rewrites: tuple[Rewrite, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    inequalities: tuple[Inequality, ...] = ()  # the comparisons that its form rests on

    def span_of(self, refusal: Refusal) -> Span | None:
        """Where that stands which forbids more, as far as it is known: a condition, or else all of the parts."""
        spans: dict[Node, list[Span]] = {}
        for node, span in self.written.spans:
            spans.setdefault(node, []).append(span)
        if refusal.condition is not None:
            return next(iter(spans.get(refusal.condition, ())), None)
        kinds = tuple({type(node) for node in spans})
        nodes = [node for part in refusal.parts or (self.written,) for node in part.walk() if isinstance(node, kinds)]
        found = [span for node in nodes for span in spans.get(node, ())]
        return reduce(Span.to, found) if found else None


@dataclass(frozen=True)
class Trace:
    """A program's way through the optimiser, the numbers that were used, and those that were assumed."""

    program: Program
    queries: tuple[QueryTrace, ...]
    statistics: Statistics
    remarks: tuple[str, ...] = ()

    @property
    def rewrites(self) -> Iterator[Rewrite]:
        """All rewrites, in order."""
        return (rewrite for query in self.queries for rewrite in query.rewrites)
