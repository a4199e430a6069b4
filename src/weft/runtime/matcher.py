"""The matcher: batches of events in, matches out. The same on every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weft.kernels import tecs
from weft.plan.automaton.determinize import ABSENT
from weft.plan.operators import AutomatonOp, Plan
from weft.runtime.automaton import AutomatonRun, Found
from weft.runtime.classify import Classifier
from weft.runtime.events import EventBatch
from weft.runtime.history import History, selected_fields
from weft.runtime.keys import KeyCoder
from weft.runtime.matches import MatchBatch
from weft.runtime.selection import Selector
from weft.runtime.windows import WindowKeys

Int32s = npt.NDArray[np.int32]
_ONE_PARTITION = np.empty(0, np.int32)


class QueryRun:
    """One query at work: from classified events to reported matches."""

    def __init__(self, operator: AutomatonOp) -> None:
        query = operator.query
        self.query = query
        self.run = AutomatonRun(query)
        automaton = self.run.automaton
        self.names = tuple(label.names for label in automaton.labels)
        self.window = WindowKeys(query.window)
        self.selector = Selector(query, self.names, may_repeat=automaton.may_repeat)
        fields = selected_fields(query, automaton.automaton)
        self.history = History(fields, automaton.labels) if fields else None
        self.out_of_order = 0

    def push(self, batch: EventBatch, letters: Int32s, slots: Int32s) -> MatchBatch | None:
        """The matches that end in the batch."""
        prepared = self._prepare(batch, letters, slots)
        found = self.selector.select(self.run.run(prepared))
        result = self._report(batch, found) if len(found.events) else None
        if self.history is not None:
            self.history.forget(self.run.oldest_position(batch))
        return result

    def count(self, batch: EventBatch, letters: Int32s, slots: Int32s) -> int:
        """How many matches end in the batch."""
        prepared = self._prepare(batch, letters, slots)
        if not self.selector.idle:
            return len(self.selector.select(self.run.run(prepared)).events)
        before = int(self.run.control[tecs.COUNTED])
        self.run.run(prepared, counting=True)
        return int(self.run.control[tecs.COUNTED]) - before

    def _prepare(self, batch: EventBatch, letters: Int32s, slots: Int32s) -> tecs.Batch:
        if self.window.follows_attribute:
            exists = self.run.classes[letters] != ABSENT
            if len(slots):
                exists &= slots >= 0
            keys, horizons, late = self.window.keys(batch, exists)
            if late is not None and late.any():
                letters = np.where(late, np.int32(self.run.absent_letter), letters)
                self.out_of_order += int(late.sum())
        else:
            keys, horizons, _ = self.window.keys(batch, np.empty(0, bool))
        if self.history is not None:
            self.history.add(batch, self.run.markable[self.run.classes[letters]])
        payload = self.run.conditions.payload(batch, self.run.state.payload)
        return tecs.Batch(letters, slots, keys, horizons, batch.positions, batch.starts, payload)

    def _report(self, batch: EventBatch, found: Found) -> MatchBatch:
        return MatchBatch(
            query=self.query.name,
            names=self.names,
            starts=found.starts,
            ends=batch.ends[found.events],
            firsts=found.firsts,
            lasts=batch.positions[found.events],
            offsets=found.offsets,
            positions=found.positions,
            labels=found.labels,
            keys=np.zeros(len(found.events), np.uint64),
            fields={} if self.history is None else self.history.fields(found),
        )


class Matcher:
    """All queries of a plan (or some of them) over one stream of events."""

    def __init__(self, plan: Plan, queries: Sequence[int] | None = None) -> None:
        self.plan = plan
        chosen = range(len(plan.queries)) if queries is None else queries
        self._runs = [QueryRun(plan.queries[number]) for number in chosen if plan.queries[number].query.limit != 0]
        self._classifier = Classifier([run.run.automaton.predicates for run in self._runs])
        partitions = dict.fromkeys(run.query.partition for run in self._runs if run.query.partition)
        self._coders = {partition: KeyCoder(partition) for partition in partitions}
        self._sweep_at = dict.fromkeys(partitions, 4096)
        self.counters: Counter[str] = Counter(events=0)

    def push(self, batch: EventBatch) -> list[MatchBatch]:
        """The matches that end in a batch of events, at most one MatchBatch per query."""
        found = [run.push(batch, letters, slots) for run, letters, slots in self._classified(batch)]
        return [matches for matches in found if matches is not None]

    def count(self, batch: EventBatch) -> dict[str, int]:
        """How many matches of each query end in a batch."""
        totals: Counter[str] = Counter()
        for run, letters, slots in self._classified(batch):
            totals[run.query.name] += run.count(batch, letters, slots)
        return dict(totals)

    def finish(self) -> list[MatchBatch]:
        """The stream has ended. A regular pattern has nothing pending then."""
        return []

    def _classified(self, batch: EventBatch) -> list[tuple[QueryRun, Int32s, Int32s]]:
        self.counters["events"] += len(batch)
        if not len(batch):
            return []
        letters = self._classifier.letters(batch)
        slots = {partition: coder.code(batch) for partition, coder in self._coders.items()}
        result = []
        for number, run in enumerate(self._runs):
            known = run.run.letters_known
            if self._classifier.letter_count(number) > known:
                run.run.learn_letters(
                    [self._classifier.truths(number, k) for k in range(known, self._classifier.letter_count(number))]
                )
            mine = slots[run.query.partition] if run.query.partition else _ONE_PARTITION
            if run.query.partition:
                run.run.reserve_slots(self._coders[run.query.partition].capacity)
            result.append((run, letters[number], mine))
        return result

