"""The situation operator: each situation finds its sets in a shared stream of events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from weft.algebra.contexts import FromFor, Windows
from weft.algebra.situations import SituationQuery
from weft.plan.keyed import KeyedSequence
from weft.plan.layers import situation_op
from weft.plan.operators import SituationOp
from weft.runtime.classify.classifier import Predicates
from weft.runtime.classify.layer_keys import Keys, SharedKey
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.data.matches import MatchBatch
from weft.runtime.operators.operator import EARLIEST, Operator, named
from weft.runtime.operators.situations.beginnings import Beginning
from weft.runtime.operators.situations.keyed import KeyedRun
from weft.runtime.operators.situations.report import Reporter
from weft.runtime.operators.situations.stage import Stage
from weft.runtime.store.pages import Array, Paging, pages_below, pages_under
from weft.runtime.store.size import bytes_of


class SituationOperator(Operator):
    """The situations of a layer. With `fed`, some of the events are derived."""

    def __init__(
        self, operators: Sequence[SituationOp], predicates: Predicates, keys: Keys, *, fed: bool = False
    ) -> None:
        self._queries = tuple(op.query for op in operators)
        self._predicates, self._keys = predicates, keys
        firsts = {op.beginning.query: op.beginning for op in operators if op.beginning is not None}
        self._beginnings = {query: Beginning(_part(op, predicates, keys, {})) for query, op in firsts.items()}
        self._parts = [_part(op, predicates, keys, self._beginnings) for op in operators]
        self._keyed = [part for part in self._parts if isinstance(part, KeyedRun)]
        self._stages = [(part, Reporter(part)) for part in self._parts if isinstance(part, Stage)]
        self._slack = [_slack(query) for query in self._queries]
        self._fed = fed
        self._longest, self._finite = 0, False  # ticks of the longest event so far, or of the whole finite input
        self._paging = Paging()

    @property
    def queries(self) -> Sequence[SituationQuery]:
        """The situations."""
        return self._queries

    def replace_queries(self, queries: Mapping[int, SituationQuery]) -> None:
        """Replace situations, by place, by others that differ only in what is evaluated eagerly or shared."""
        self._queries = tuple(queries.get(place, query) for place, query in enumerate(self._queries))
        for place, query in queries.items():
            part, first = self._parts[place], situation_op(place, query, fed=self._fed).beginning
            if isinstance(part, KeyedRun):
                part.query = query
                continue
            if first is not None and first.query not in self._beginnings:
                length = query.situation.context.bound
                ready = None if part.time is None or length is None else part.time + length
                self._beginnings[first.query] = Beginning(_part(first, self._predicates, self._keys, {}), ready)
            part.replace_queries(query, None if first is None else self._beginnings[first.query].ends)
        firsts = [situation_op(0, query, fed=self._fed).beginning for query in self._queries]
        used = {first.query for first in firsts if first is not None}
        for query in self._beginnings.keys() - used:
            self._keys.leave(self._beginnings.pop(query).part)

    @property
    def visited(self) -> int:
        """The number of events that its searches visited."""
        return sum(part.visited for part in self._all_parts if isinstance(part, Stage))

    @property
    def _all_parts(self) -> list[KeyedRun | Stage]:
        """All parts; shared prefixes come last, so that state saved without them can be restored."""
        return [*self._parts, *(first.part for first in self._beginnings.values())]

    @property
    def looks_back(self) -> bool:
        """Whether an event may open a partition that ended before the event arrived."""
        return any(slack is not None for slack in self._slack)

    def expect(self, longest: int) -> None:
        """Declare that the input is finite, with events of at most `longest` ticks."""
        self._longest, self._finite = longest, True
        self._set_longest()

    # -- events ---------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Emit the matches that are final with a batch, situation by situation, each by end."""
        self._measure_longest(batch)
        for keyed in self._keyed:
            yield from self.timed(keyed.query.name, keyed.push(batch))
        for stage, reporter in self._stages:
            found = _reported(reporter, stage.take(batch, int(batch.ends[-1])))
            yield from self.timed(stage.query.name, found)

    def count(self, batch: EventBatch) -> dict[str, int]:
        """Return how many matches are final with a batch."""
        self._measure_longest(batch)
        totals = {part.query.name: sum(self.timed(part.query.name, map(part.count, [batch]))) for part in self._keyed}
        for stage, _ in self._stages:
            found = stage.take(batch, int(batch.ends[-1]), counting=True)
            totals[stage.query.name] = sum(map(len, self.timed(stage.query.name, found)))
        return totals

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """Emit the matches that are final because no later event ends before this time."""
        for first in self._beginnings.values():
            first.advance(time)
        for stage, reporter in self._stages:
            yield from self.timed(stage.query.name, _reported(reporter, stage.take(blocks.empty(), time)))

    def expect_end(self, last: int) -> None:
        """Declare the end of the input: windows that begin later do not count."""
        for stage, _ in self._stages:
            stage.expect_end(last)

    def finish(self, last: int) -> Iterator[MatchBatch]:
        """Emit the matches that the end of the input completes."""
        for stage, reporter in self._stages:
            yield from _reported(reporter, stage.finish(last))

    def watermark_of(self, place: int) -> int | None:
        """Return the output watermark of a situation: no later match ends earlier.

        An event that is longer than the partition it opens completes an absence in the past. For a finite input, the
        longest event says how far back that can be, unless derived events open partitions: then nothing is known before
        the end. For an infinite input the longest event so far is used.
        """
        part, slack = self._parts[place], self._slack[place]
        if isinstance(part, KeyedRun):
            return None
        settled = part.settled
        if settled is None or (slack is not None and self._finite and self._fed):
            return EARLIEST
        return settled if slack is None else settled - max(0, self._longest - slack)

    def oldest(self) -> int | None:
        """Return the first position of a stored event, or None."""
        kept = [stage.members.first for stage, _ in self._stages if len(stage.members)]
        return min([*kept, *(first for keyed in self._keyed if (first := keyed.oldest()) is not None)], default=None)

    @property
    def waiting(self) -> int:
        """The number of events in open partitions; for keyed sequences, of keys that have some."""
        return sum(len(part.members) if isinstance(part, Stage) else part.waiting for part in self._all_parts)

    def bytes_of_query(self, name: str) -> int:
        """Return the bytes of memory of a situation's partitions."""
        pairs = zip(self._queries, self._parts, strict=True)
        return bytes_of(*(part for query, part in pairs if query.name == name), without=(SharedKey, Keys, Predicates))

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """See `Operator.drop_oldest`. Shared prefixes are evicted, too, if all their situations may be."""
        own = [
            (query.name, part) for query, part in zip(self._queries, self._parts, strict=True) if query.name in names
        ]
        if len(own) == len(self._parts):
            shared = named([query.name for query in self._queries])
            own += [(shared, first.part) for first in self._beginnings.values()]
        dropped: Counter[str] = Counter()
        for name, part in own:
            dropped[name] += part.drop_oldest(limit // len(own))
        return dropped

    def _measure_longest(self, batch: EventBatch) -> None:
        if self.looks_back and batch.starts is not batch.ends:
            self._longest = max(self._longest, int((batch.ends - batch.starts).max()))
            self._set_longest()

    def _set_longest(self) -> None:
        for stage, _ in self._stages:
            stage.longest = self._longest

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""
        small = {"longest": json.dumps(self._longest).encode()}
        ready = [first.ready for first in self._beginnings.values()]
        if any(time is not None for time in ready):
            small["ready"] = json.dumps(ready).encode()
        arrays: list[tuple[str, Array]] = []
        for number, part in enumerate(self._all_parts):
            name = f"part/{number}/"
            small |= pages_under(name, part.small())
            arrays += [(name + own, array) for own, array in part.arrays().items()]
        return self._paging.changes(small, arrays)

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from the pages of snapshots."""
        self._paging.load(pages)
        self._longest = json.loads(pages["longest"])
        self._set_longest()
        ready = json.loads(pages.get("ready", "[]")) or [None] * len(self._beginnings)
        for first, time in zip(self._beginnings.values(), ready, strict=True):
            first.ready = time
        for number, part in enumerate(self._all_parts):
            part.load(pages_below(f"part/{number}/", pages))


def _part(
    op: SituationOp, predicates: Predicates, keys: Keys, beginnings: Mapping[SituationQuery, Beginning]
) -> KeyedRun | Stage:
    if isinstance(op.way, KeyedSequence):
        return KeyedRun(op.query, op.way, predicates, keys)
    ends = None if op.beginning is None else beginnings[op.beginning.query].ends
    return Stage(op.query, op.way, predicates, keys, ends)


def _reported(reporter: Reporter, sets: Iterator[Int64s]) -> Iterator[MatchBatch]:
    return (reporter.matches(reporter.by_end(some)) for some in sets)


def _slack(query: SituationQuery) -> int | None:
    """Return how long an event may be without completing an absence in the past, or None if any length may."""
    context = query.situation.context
    if query.situation.kind != "absence" or not isinstance(context, FromFor | Windows):
        return None
    return context.length if isinstance(context, FromFor) else 1
