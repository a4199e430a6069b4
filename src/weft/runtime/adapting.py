"""Queries that change their form while they run: when measured rates say that another form is cheaper, it takes over.

The forms run side by side for as long as a match may last: what began before the change is told by the old one, what
begins after it by the new one, so no match is lost or told twice.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from weft.algebra.composites import CompositeQuery
from weft.algebra.query import AnyQuery, Program
from weft.optimizer.cost.model import Costs
from weft.optimizer.pipeline import Choices, trace
from weft.optimizer.trace import Inequality
from weft.plan.chains import as_chains
from weft.plan.partitioning.reach import Reach, reach_of_query
from weft.plan.planner import plan
from weft.plan.reuse import looks_ahead_only
from weft.runtime import blocks
from weft.runtime.events import EventBatch
from weft.runtime.matcher import Matcher
from weft.runtime.measuring import Measure
from weft.statistics import Statistics
from weft.stored import Plain

FIRST_LOOK = 1 << 16  # events before rates are measured for the first time; later each time after twice as many
ENOUGH = 1 << 13  # events that rates are measured in
AT_ONCE = 1 << 12  # events of a batch that are measured at most
NEVER = 1 << 62
GAIN = 1.3  # how many times as much the running form must cost
LOG = logging.getLogger("weft")


class Adapting:
    """Watches the events of a matcher, and changes the form of its composite queries. They are known by number.

    Queries change that see nothing but the input, whose events nobody else sees, and whose matches have a bound of time
    and depend on nothing before them.
    """

    def __init__(self, matcher: Matcher, choices: Choices) -> None:
        self._matcher = matcher
        self._choices = choices
        self._seen = 0
        self._next_look = FIRST_LOOK
        self._measure: Measure | None = None
        self._measured = 0
        self._written: dict[int, CompositeQuery] = {}
        self._unit = "ms"
        self._inequalities: list[Inequality] = []
        self._leaving: tuple[frozenset[int], int] | None = None  # queries, and the time after which they are gone
        self._before: dict[int, int] = {}  # the number of the form before, by that of the form that runs
        self.changes = 0

    @property
    def is_changing(self) -> bool:
        """Whether two forms of a query run now."""
        return self._leaving is not None

    def watch(self, program: Program, numbers: Sequence[int], others: Collection[AnyQuery] = ()) -> None:
        """Watch queries of a program, as it was written, that run under these numbers; `others` run beside them."""
        queries = dict(zip(numbers, program.queries, strict=True))
        read = {type_ for query in (*queries.values(), *others) for type_ in query.reads}
        made = {query.defines for query in (*queries.values(), *others)}
        composite = {number: query for number, query in queries.items() if isinstance(query, CompositeQuery)}
        alone = all(query.defines not in read and made.isdisjoint(query.reads) for query in composite.values())
        if self._choices.optimize and composite and alone and all(map(_can_change, composite.values())):
            self._written, self._unit, self._measure = composite, program.time_unit, None
            self._inequalities = self._compared(None)

    def stop(self) -> None:
        """Keep the forms that run now."""
        self._next_look = NEVER

    def saved(self) -> Plain:
        """What another one needs to go on, besides what it watches, as plain data."""
        leaving = None if self._leaving is None else [sorted(self._leaving[0]), self._leaving[1]]
        return {
            "seen": self._seen,
            "next_look": self._next_look,
            "leaving": leaving,
            "before": sorted(self._before.items()),
            "changes": self.changes,
            "measured": None if self._measure is None else [self._measured, self._measure.saved()],
        }

    def resume(self, saved: Plain) -> None:
        """Go on from what another one has saved."""
        self._seen, self._next_look, self.changes = saved["seen"], saved["next_look"], saved["changes"]
        self._leaving = None if saved["leaving"] is None else (frozenset(saved["leaving"][0]), saved["leaving"][1])
        self._before = dict(saved["before"])
        measured, counts = saved.get("measured") or (0, None)
        if counts is not None and self._written:
            self._measure, self._measured = Measure(self._program(), apart=True), measured
            self._measure.resume(counts)

    def drop(self, numbers: Collection[int]) -> set[int]:
        """Watch these queries no more; the numbers of their old forms that are still there."""
        before = {self._before[number] for number in numbers if number in self._before}
        self._written = {number: query for number, query in self._written.items() if number not in numbers}
        self._measure = None
        if self._leaving is None:
            return set()
        gone, time = self._leaving
        self._leaving = (gone - before, time) if gone - before else None
        return before & gone

    def renumbered(self, number: int) -> int:
        """The number of the form of a query that runs now."""
        return next((new for new, old in self._before.items() if old == number), number)

    def pass_by(self, events: int) -> None:
        """So many events came that are not looked at."""
        self._seen += events

    def look(self, batch: EventBatch) -> None:
        """Take note of events that come now, before the matcher sees them."""
        self._seen += len(batch)
        if self._leaving is not None:
            gone, time = self._leaving
            if self._matcher.last is not None and self._matcher.last > time:
                self._matcher.remove(gone)
                self._leaving = None
        elif self._written and self._seen >= self._next_look and len(batch):
            measure = self._measure = self._measure or Measure(self._program(), apart=True)
            measure.look(blocks.slice(batch, 0, min(len(batch), AT_ONCE)))
            self._measured += len(batch)
            if self._measured >= ENOUGH:
                self._judge(measure)
                measure.clear()
                self._measured, self._next_look = 0, 2 * self._seen

    def _program(self) -> Program:
        return Program("", tuple(self._written.values()), time_unit=self._unit)

    def _compared(self, measure: Measure | None) -> list[Inequality]:
        known = self._choices.statistics if measure is None else measure.statistics()
        return [found for one in trace(self._program(), known).queries for found in one.inequalities]

    def _judge(self, measure: Measure) -> None:
        """Change the form if a comparison that it rests on does not hold any more."""
        known = measure.statistics()
        costs = Costs(known)
        if not any(inequality.gain(costs) > GAIN for inequality in self._inequalities):
            return
        found = trace(self._program(), known)
        running = [query.pattern for query in self._matcher.graph_queries(self._written)]
        planned = [as_chains(query, lambda: costs) for query in found.program.queries]
        best = [query.pattern for query in planned if isinstance(query, CompositeQuery)]
        if costs.total(*running) <= GAIN * costs.total(*best):
            return
        self._inequalities = [inequality for one in found.queries for inequality in one.inequalities]
        self._change(found.program, known)
        LOG.info("%s: another form is cheaper by the rates measured", ", ".join(found.program.names))

    def _change(self, program: Program, known: Statistics) -> None:
        matcher = self._matcher
        old, first = frozenset(self._written), matcher.next_number
        matcher.retire(old)
        matcher.extend(plan(program, first=first, statistics=known))
        longest = max(_bound(query) or 0 for query in self._written.values())
        self._leaving = old, (matcher.last or 0) + longest
        self._before = {first + place: number for place, number in enumerate(self._written)}
        self._written = {first + place: query for place, query in enumerate(self._written.values())}
        self._measure = None
        self.changes += 1


def _can_change(query: CompositeQuery) -> bool:
    """Whether matches that begin after a change depend on nothing before it, and those before it end some time."""
    return _bound(query) is not None and looks_ahead_only(query.pattern)


def _bound(query: CompositeQuery) -> int | None:
    reach = reach_of_query(replace(query, fields=()))
    return reach.back if isinstance(reach, Reach) else None
