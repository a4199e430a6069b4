"""What the optimiser did: for each query its rewrites with their costs, and what had to stay as it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

from weft.algebra.composites import Composite
from weft.algebra.query import AnyQuery, Program
from weft.optimizer.chains import Refusal
from weft.optimizer.cost.model import Costs
from weft.source import Span
from weft.statistics import LEAST_RATE, Statistics
from weft.tree import Node

Others = Callable[[], Iterable[Composite]]  # forms that a part of a query might have


@dataclass(frozen=True)
class Rewrite:
    """One change: the rule, the part of the query before and after it, and what both cost; None: nobody counts that."""

    rule: str
    before: Node
    after: Node
    cost_before: float | None = None
    cost_after: float | None = None


@dataclass(frozen=True)
class Inequality:
    """A comparison that was made: under the statistics, one form of a part of a query cost no more than another."""

    chosen: Composite
    other: Composite

    def gain(self, costs: Costs) -> float:
        """How many times as much the chosen form costs as the other, under other statistics perhaps."""
        return costs.total(self.chosen) / max(costs.total(self.other), LEAST_RATE)


@dataclass(frozen=True)
class QueryTrace:
    """A query as it was written and as it runs, with the work per second of both."""

    written: AnyQuery
    query: AnyQuery
    cost_before: float
    cost_after: float
    rewrites: tuple[Rewrite, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    compared: tuple[tuple[Composite, Others], ...] = ()

    @property
    def inequalities(self) -> Iterator[Inequality]:
        """The comparisons that its form rests on."""
        for chosen, others in self.compared:
            yield from (Inequality(chosen, other) for other in dict.fromkeys(others()) if other != chosen)

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
