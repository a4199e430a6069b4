"""Adaptive execution: measure rates, and replace the form of running queries when a `Replanner` says so.

Changes of evaluation order keep the state, between two batches. For queries that are exchanged, both forms run side by
side for as long as a match may last. The old one emits matches that began before the change, the new one those that
begin after it, so no match is lost or duplicated.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from weft.algebra.query import AnyQuery, Program
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.watching.measuring import Measure
from weft.statistics import Statistics
from weft.stored import Plain

if TYPE_CHECKING:
    from weft.plan.forms.replanning import Exchange, Replanning

FIRST_LOOK = 1 << 18  # events before rates are measured for the first time; later each time after twice as many
FEW = 1 << 6  # queries; with more, the first measurement is later in proportion to its cost
ENOUGH = 1 << 13  # events that rates are measured in
AT_ONCE = 1 << 12  # most events of a batch that are measured
NEVER = 1 << 62
LOG = logging.getLogger("weft")


class Replanner(Protocol):
    """Judges the forms of running queries by measured rates; `weft.plan.forms.replanning` describes the methods."""

    @property
    def written(self) -> Mapping[int, AnyQuery]:
        """The queries that are judged, by number, as written."""

    @property
    def program(self) -> Program:
        """The same queries as a program."""

    def watch(self, program: Program, numbers: Sequence[int], others: Iterable[AnyQuery], against: str | None) -> bool:
        """Judge queries of a program, and return whether any of them can change."""

    def add_readers(self, types: Collection[str]) -> None:
        """Record that others read events of these types from now on."""

    def drop(self, numbers: Collection[int]) -> None:
        """Stop judging these queries."""

    def judge(self, running: Mapping[int, AnyQuery], found: Statistics) -> Replanning | None:
        """Return the changes to make, if any."""

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Record the new numbers of exchanged queries."""

    def saved(self) -> Plain:
        """Return the state to continue from."""

    def resume(self, saved: Plain) -> None:
        """Continue from saved state."""


class RetiringPlan(NamedTuple):
    """Old forms, by number, and the time after which they are removed."""

    numbers: frozenset[int]
    time: int


class Adapting:
    """Measures the events of a matcher, and changes the form of its queries, which are identified by number.

    For queries that cannot change a cheaper form is only counted and reported.
    """

    def __init__(self, matcher: Matcher, replanner: Replanner) -> None:
        self._matcher = matcher
        self._replanner = replanner
        self._seen = 0
        self._next_look = FIRST_LOOK
        self._measure: Measure | None = None
        self._measured = 0
        self._leaving: RetiringPlan | None = None
        self._before: dict[int, int] = {}  # the number of the form before, by that of the form that runs
        self.changes = 0
        self.refused = 0

    @property
    def is_changing(self) -> bool:
        """Whether two forms of a query are running."""
        return self._leaving is not None

    @property
    def counters(self) -> dict[str, int]:
        """Numbers of changes, and of changes that were not possible, if any."""
        counted = {"changes": self.changes, "changes_refused": self.refused}
        return {name: count for name, count in counted.items() if count}

    def watch(
        self,
        program: Program,
        numbers: Sequence[int],
        others: Collection[AnyQuery] = (),
        against: str | None = None,
    ) -> None:
        """Watch queries of a program, as written, which run under these numbers together with the rest of the program.

        With a reason `against` it, none of them changes: a cheaper form is only counted and reported.
        """
        if self._replanner.watch(program, numbers, others, against):
            self._next_look = FIRST_LOOK * max(1, len(self._replanner.written) // FEW)
            self._measure = None

    def add_readers(self, types: Collection[str]) -> None:
        """Record that others read events of these types, so that the queries that define them stay unchanged."""
        self._replanner.add_readers(types)

    def stop(self) -> None:
        """Keep the current forms."""
        self._next_look = NEVER

    def saved(self) -> Plain:
        """Return the state to continue from, besides the watched queries, as plain data."""
        leaving = None if self._leaving is None else [sorted(self._leaving.numbers), self._leaving.time]
        return {
            "seen": self._seen,
            "next_look": self._next_look,
            "leaving": leaving,
            "before": sorted(self._before.items()),
            "changes": self.changes,
            "refused": self.refused,
            "by": self._replanner.saved(),
            "measured": None if self._measure is None else [self._measured, self._measure.saved()],
        }

    def resume(self, saved: Plain) -> None:
        """Continue from saved state."""
        self._seen, self._next_look = saved["seen"], saved["next_look"]
        self.changes, self.refused = saved["changes"], saved["refused"]
        leaving = saved["leaving"]
        self._leaving = None if leaving is None else RetiringPlan(frozenset(leaving[0]), leaving[1])
        self._before = dict(saved["before"])
        self._replanner.resume(saved["by"])
        measured, counts = saved["measured"] or (0, None)
        if counts is not None and self._replanner.written:
            self._measure, self._measured = Measure(self._replanner.program, apart=True), measured
            self._measure.resume(counts)

    def drop(self, numbers: Collection[int]) -> set[int]:
        """Stop watching these queries, and return the numbers of their old forms that still run."""
        before = {self._before[number] for number in numbers if number in self._before}
        self._replanner.drop(numbers)
        self._measure, self._measured = None, 0
        if self._leaving is None:
            return set()
        gone = self._leaving.numbers
        self._leaving = self._leaving._replace(numbers=gone - before) if gone - before else None
        return before & gone

    def renumbered(self, number: int) -> int:
        """Return the number of the current form of a query."""
        return next((new for new, old in self._before.items() if old == number), number)

    def pass_by(self, events: int) -> None:
        """Record that events arrived that are not measured."""
        self._seen += events

    def look(self, batch: EventBatch) -> None:
        """Measure the next events, before the matcher processes them."""
        self._seen += len(batch)
        if self._leaving is not None:
            if self._matcher.last is not None and self._matcher.last > self._leaving.time:
                self._matcher.remove(self._leaving.numbers)
                self._leaving = None
        elif self._replanner.written and self._seen >= self._next_look and len(batch):
            measure = self._measure = self._measure or Measure(self._replanner.program, apart=True)
            measure.look(blocks.slice(batch, 0, min(len(batch), AT_ONCE)))
            self._measured += len(batch)
            if self._measured >= ENOUGH:
                written = self._replanner.written
                change = self._replanner.judge(self._matcher.queries(written), measure.statistics())
                if change is not None:
                    self._change(change)
                measure.clear()
                self._measured, self._next_look = 0, 2 * self._seen

    def _change(self, change: Replanning) -> None:
        """Continue queries in other forms."""
        for number, reasons in change.refused.items():
            for reason in reasons:
                self._refuse(number, reason)
        if change.turned:
            self._matcher.replace_queries(change.turned)
            self.changes += len(change.turned)
            self._tell(change.turned.values())
        if change.exchange is not None:
            self._exchange(change.exchange)

    def _refuse(self, number: int, reason: str) -> None:
        self.refused += 1
        name = self._replanner.written[number].name
        LOG.info("%s: another form is cheaper by the rates measured, but it stays while it runs: %s", name, reason)

    def _exchange(self, exchange: Exchange) -> None:
        """Run the new forms beside the old ones, until these have emitted all matches that began before."""
        matcher, first = self._matcher, self._matcher.next_number
        matcher.retire(exchange.numbers)
        matcher.extend(exchange.planned(first))
        self._leaving = RetiringPlan(frozenset(exchange.numbers), (matcher.last or 0) + exchange.longest)
        renumbered = {number: first + place for place, number in enumerate(exchange.numbers)}
        self._before = {new: old for old, new in renumbered.items()}
        self._replanner.renumber(renumbered)
        self._measure = None
        self.changes += 1
        self._tell(exchange.program.queries)

    def _tell(self, queries: Collection[AnyQuery]) -> None:
        LOG.info("%s: another form is cheaper by the rates measured", ", ".join(query.name for query in queries))
