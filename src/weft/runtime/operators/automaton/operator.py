"""Execution of regular queries: each has its own automaton over the classified events of one stream."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from weft.algebra.query import Query
from weft.kernels.automaton import tecs
from weft.plan.automaton.cea import build_automaton
from weft.plan.automaton.determinize import ABSENT
from weft.plan.operators import AutomatonOp
from weft.plan.partitioning.by_match import ByMatch
from weft.plan.partitioning.by_rank import ByRank
from weft.plan.partitioning.dealing import Dealer
from weft.plan.partitioning.splits import Lane
from weft.runtime.classify import vectors
from weft.runtime.classify.classifier import Classifier, Predicates
from weft.runtime.classify.functions import to_column
from weft.runtime.classify.layer_keys import Keys, SharedKey
from weft.runtime.data.buffers import writable
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.operators.automaton.advancing import AutomatonRun
from weft.runtime.operators.automaton.candidates import Candidates
from weft.runtime.operators.automaton.fields import Fields, selected_fields
from weft.runtime.operators.automaton.found import Found, joined
from weft.runtime.operators.automaton.pages import load_node_page, load_row_page, node_pages, row_pages
from weft.runtime.operators.automaton.pending import PendingMatches
from weft.runtime.operators.automaton.selection import Selector
from weft.runtime.operators.automaton.sessions import SessionTracker
from weft.runtime.operators.automaton.shares import RankShare
from weft.runtime.operators.automaton.windows import WindowKeys, window_of
from weft.runtime.operators.operator import Operator
from weft.runtime.store.pages import WORTH_FORGETTING, Growing, Paging, pages_below, pages_under
from weft.runtime.store.size import bytes_of

Int32s = npt.NDArray[np.int32]
_ONE_PARTITION = np.empty(0, np.int32)
_KEPT = "kept"


class QueryRun:
    """Execution of one query: from classified events to reported matches."""

    def __init__(self, op: AutomatonOp, keys: Keys, lane: Lane | None = None) -> None:
        self.query = query = op.query
        self.key = keys.use(query.partition, self) if query.partition else None
        split = None if lane is None else lane.split
        share = RankShare(lane.share, lane.shares) if lane is not None and isinstance(split, ByRank) else None
        self.run = AutomatonRun(query, op.automaton, share, tests=not isinstance(split, ByMatch))
        self.candidates: Candidates | None = None
        if lane is not None and isinstance(split, ByMatch):
            self.candidates = Candidates(self.run.conditions, lane.share, Dealer(lane.shares, split.dealing, seed=1))
        self._counts = lane is None or lane.share == 0 or not isinstance(split, ByRank | ByMatch)
        automaton = self.run.automaton
        self.names = tuple(label.names for label in automaton.labels)
        self.window = WindowKeys(window_of(query))
        holds = [label.holds for label in automaton.labels]
        self.selector = Selector(query, self.names, holds, may_repeat=automaton.may_repeat, chosen=self.run.chooses)
        fields = selected_fields(query, automaton.automaton)
        reads = bool(fields or query.computed or query.top)
        self.fields = Fields(query, fields, automaton.labels) if reads else None
        waits = any(part is not None for part in (query.skip, query.unless, query.session, query.top))
        self.sessions = SessionTracker(query) if query.session is not None else None
        self.pending = PendingMatches(query, self.names) if waits else None
        self.out_of_order = 0
        self.horizon = tecs.NEVER
        self.time = 0  # no later event ends earlier
        self._floor = tecs.NEVER  # matches that start earlier were evicted
        self._saved = 0  # nodes below this id are in a snapshot

    def replace_queries(self, query: Query) -> None:
        """Continue with a query that differs only in the order of its conditions."""
        self.query = query
        self.run.replace_queries(build_automaton(query))

    def push(self, batch: EventBatch, letters: Int32s, slots: Int32s) -> Iterator[MatchBatch]:
        """Emit the matches that are final with a batch."""
        prepared = self._prepare(batch, letters, slots)
        found = self.run.run(prepared)
        if self.candidates is not None:
            self.candidates.add_events(batch.positions, prepared.payload, self.run.oldest_position())
            found = self.candidates.satisfying(found)
        if not self.selector.idle:
            found = iter([self.selector.select(joined(list(found)))])
        for piece in found:
            if len(piece.events) and self.pending is not None:
                own = slots[piece.events] if len(slots) else np.zeros(len(piece.events), np.int32)
                self.pending.add(self._report(batch, piece), own)
            elif len(piece.events):
                yield self._report(batch, piece)
        if self.pending is not None:
            yield from self.pending.release(self.horizon, int(batch.ends[-1]))

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """Emit the pending matches that are final because no later event ends before this time."""
        window = self.query.window
        if self.pending is not None:
            timed = window is not None and window.unit == "time"
            horizon = time - int(window.amount) if window is not None and timed else self.horizon
            yield from self.pending.release(horizon, time)

    def finish(self) -> Iterator[MatchBatch]:
        """Emit all pending matches: the stream has ended."""
        return iter(()) if self.pending is None else self.pending.release(None, None)

    def count(self, batch: EventBatch, letters: Int32s, slots: Int32s) -> int:
        """Return how many matches end in the batch; if lanes share the enumeration, the first lane counts all."""
        if not self._counts:
            return 0
        if self.pending is not None:
            return sum(map(len, self.push(batch, letters, slots)))
        prepared = self._prepare(batch, letters, slots)
        if not self.selector.idle or self.run.chooses:
            return len(self.selector.select(joined(list(self.run.run(prepared)))).events)
        return self.run.count(prepared)

    def sweep(self) -> None:
        """Release expired nodes, events that no match can contain, and texts that no condition can read."""
        self.run.free_expired(self.horizon)
        if self.fields is not None:
            self.fields.kept.forget(self.run.oldest_position)
        conditions = self.run.conditions
        if conditions.texts.is_crowded and self.candidates is None:
            conditions.drop_texts(self.run.state.payload, self.run.live_nodes())
            self._saved = 0

    def drop_oldest(self, limit: int) -> int:
        """Evict the older half of the partial matches if all take more than half of `limit` bytes.

        Return the number of evicted nodes.
        """
        run = self.run
        head, tail = int(run.control[tecs.HEAD]), int(run.control[tecs.TAIL])
        capacity = len(run.state.starts)
        each = (run.state.nodes.nbytes + run.state.starts.nbytes) // capacity
        if 2 * (head - tail) * each <= limit:
            return 0
        middle = ((head + tail) // 2 & (capacity - 1)) << 2
        self._floor = max(self._floor, int(run.state.nodes[middle + 3]) + 1)
        self.horizon = max(self.horizon, self._floor)
        run.free_expired(self.horizon)
        return int(run.control[tecs.TAIL]) - tail

    def live_slots(self, capacity: int) -> npt.NDArray[np.bool_]:
        """Return which partitions have partial matches, or with sessions, which may continue their session."""
        if self.sessions is not None:
            return self.sessions.live(capacity, self.time)
        live = np.zeros(capacity, bool)
        own = self.run.live_slots(self.horizon)[:capacity]
        live[: len(own)] = own
        return live

    def clear_slots(self, slots: Int32s) -> None:
        """Clear partitions, so that their slots can be reused."""
        self.run.clear_slots(slots)
        if self.sessions is not None:
            self.sessions.clear(slots)

    def changes(self) -> tuple[dict[str, bytes], list[str]]:
        """Return the pages that may have changed, and the names of unchanged pages that are still needed."""
        if self.fields is not None:
            self.fields.kept.forget(self.run.oldest_position, least=WORTH_FORGETTING)
        nodes, live = node_pages(self.run, self._saved)
        self._saved = int(self.run.control[tecs.HEAD])
        kept = [name for name in (f"nodes/{number}" for number in live) if name not in nodes]
        summary = {**self.run.summary(), "window": self.window.snapshot(), "out_of_order": self.out_of_order}
        if self._floor > tecs.NEVER:
            summary["floor"] = self._floor
        pages = {"summary": json.dumps(summary).encode(), **nodes, **dict(row_pages(self.run))}
        if self.pending is not None:
            pages.update(self.pending.pages())
        if self.candidates is not None:
            pages.update(self.candidates.pages())
        if self.sessions is not None:
            pages["sessions"] = self.sessions.ends.tobytes()
        return pages, kept

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from a snapshot."""
        summary = json.loads(pages["summary"])
        self.run.load_summary(summary)
        self.window.restore(summary["window"])
        self.out_of_order = summary["out_of_order"]
        self._floor = summary.get("floor", tecs.NEVER)
        for name, page in pages.items():
            kind, _, number = name.partition("/")
            if kind == "nodes":
                load_node_page(self.run, page)
            elif kind == "rows":
                load_row_page(self.run, int(number), page)
        if self.fields is not None:
            self.fields.kept.load(pages, _KEPT)
        if self.pending is not None:
            self.pending.load({name: page for name, page in pages.items() if name.startswith("held/")})
        if self.candidates is not None:
            self.candidates.load(pages)
        if self.sessions is not None:
            self.sessions.ends = np.frombuffer(pages["sessions"], np.int64).copy()
        self._saved = int(self.run.control[tecs.HEAD])

    def _prepare(self, batch: EventBatch, letters: Int32s, slots: Int32s) -> tecs.Batch:
        if self.window.follows_attribute:
            exists = self.run.tables.classes[letters] != ABSENT
            if len(slots):
                exists &= slots >= 0
            keys, horizons, late = self.window.keys(batch, exists)
            if late is not None and late.any():
                letters = np.where(late, np.int32(self.run.tables.absent_letter), letters)
                self.out_of_order += int(late.sum())
        else:
            keys, horizons, _ = self.window.keys(batch, np.empty(0, bool))
        if self._floor > tecs.NEVER:
            horizons = np.maximum(horizons, self._floor)
        self.horizon, self.time = int(horizons[-1]), int(batch.ends[-1])
        if self.fields is not None:
            self.fields.kept.add(batch, np.flatnonzero(self.run.tables.markable[self.run.tables.classes[letters]]))
        payload = self.run.conditions.payload(self._derived(batch))
        return tecs.Batch(letters, slots, keys, horizons, batch.positions, writable(batch.starts), payload)

    def _derived(self, batch: EventBatch) -> EventBatch:
        """Add the computed attributes that conditions read."""
        derived = self.run.automaton.automaton.derived
        if not derived:
            return batch
        made = {name: to_column(vectors.evaluate(value, batch), len(batch)) for name, value in derived}
        return replace(batch, columns={**batch.columns, **made})

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
            fields={} if self.fields is None else self.fields.values(found),
        )


class AutomatonOperator(Operator):
    """The regular queries of a layer. All but pending matches are emitted with the event that ends them."""

    spans = True

    def __init__(
        self, operators: Sequence[AutomatonOp], predicates: Predicates, keys: Keys, lane: Lane | None = None
    ) -> None:
        self._queries = tuple(op.query for op in operators)
        made = {place: QueryRun(op, keys, lane) for place, op in enumerate(operators) if op.query.limit != 0}
        self._runs = list(made.values())
        self._pending = {place: run.pending for place, run in made.items() if run.pending is not None}
        self._numbers = list(range(len(self._runs)))  # of the queries, in the classifier
        self._classifier = Classifier([run.run.automaton.predicates for run in self._runs], predicates)
        self._paging = Paging()

    @property
    def queries(self) -> Sequence[Query]:
        """The regular queries, in the order of the operators."""
        return self._queries

    def remove(self, places: Collection[int]) -> None:
        """Stop executing some queries, by place."""
        gone = {self._queries[place].name for place in places}
        kept = [(n, run) for n, run in zip(self._numbers, self._runs, strict=True) if run.query.name not in gone]
        for run in self._runs:
            if run.query.name in gone and run.key is not None:
                run.key.users.remove(run)
        self._numbers, self._runs = [number for number, _ in kept], [run for _, run in kept]

    def replace_queries(self, queries: Mapping[int, Query]) -> None:
        """Replace queries, by place, by others that differ only in the order of their conditions."""
        known = {run.query.name: run for run in self._runs}
        for query in queries.values():
            run = known.get(query.name)
            if run is not None:
                run.replace_queries(query)
        self._queries = tuple(queries.get(place, query) for place, query in enumerate(self._queries))

    def bytes_of_query(self, name: str) -> int:
        """Return the bytes of memory of a query's state."""
        return bytes_of(*(run for run in self._runs if run.query.name == name), without=(SharedKey,))

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """See `Operator.drop_oldest`."""
        own = [run for run in self._runs if run.query.name in names]
        return Counter({run.query.name: run.drop_oldest(limit // len(own)) for run in own})

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Emit the matches that are final with a batch, query by query, in pieces."""
        for run, letters, slots in self._classified(batch):
            yield from self.timed(run.query.name, run.push(batch, letters, slots))

    def count(self, batch: EventBatch) -> dict[str, int]:
        """Return how many matches of each query end in a batch."""
        return {
            run.query.name: sum(self.timed(run.query.name, map(run.count, [batch], [letters], [slots])))
            for run, letters, slots in self._classified(batch)
        }

    def oldest(self) -> int | None:
        """Return the first position of a partial or pending match, or None."""
        known = [run.run.oldest_position() for run in self._runs]
        known += [pending.oldest for pending in self._pending.values()]
        return min((first for first in known if first is not None), default=None)

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """Emit the pending matches that are final because no later event ends before this time."""
        for run in self._runs:
            yield from self.timed(run.query.name, run.advance(time))

    def finish(self, last: int) -> Iterator[MatchBatch]:
        """Emit all pending matches: the stream has ended."""
        for run in self._runs:
            yield from run.finish()

    def watermark_of(self, place: int) -> int | None:
        """Return the earliest end of a pending match of the query, or None if there is none."""
        pending = self._pending.get(place)
        return None if pending is None else pending.watermark

    @property
    def counters(self) -> dict[str, int]:
        """Numbers of events out of the order of a window attribute, and of steps of updates and enumerations."""
        return {
            "out_of_order": sum(run.out_of_order for run in self._runs),
            "steps": sum(int(run.run.control[tecs.STEPS]) for run in self._runs),
            "visits": sum(int(run.run.control[tecs.VISITS]) for run in self._runs),
        }

    @property
    def waiting(self) -> int:
        """The number of nodes in the match graphs."""
        return sum(int(run.run.control[tecs.HEAD] - run.run.control[tecs.TAIL]) for run in self._runs)

    def sweep(self) -> None:
        """Release expired nodes, events and texts."""
        for run in self._runs:
            run.sweep()

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""
        pages: dict[str, bytes] = {}
        kept: list[str] = []
        for number, run in zip(self._numbers, self._runs, strict=True):
            changed, unchanged = run.changes()
            pages.update(pages_under(f"query/{number}/", changed))
            kept += (f"query/{number}/{name}" for name in unchanged)
        return self._paging.changes(pages, (), self._growing(), kept)

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from the pages of snapshots."""
        for number, run in zip(self._numbers, self._runs, strict=True):
            run.load(pages_below(f"query/{number}/", pages))
        self._paging.load(pages_under("query/", pages_below("query/", pages)), self._growing())

    def _growing(self) -> Iterator[Growing]:
        """Yield the arrays that are only appended to."""
        for number, run in zip(self._numbers, self._runs, strict=True):
            if run.fields is not None:
                yield run.fields.kept.growing(f"query/{number}/{_KEPT}")

    def _classified(self, batch: EventBatch) -> Iterator[tuple[QueryRun, Int32s, Int32s]]:
        """Yield each query with the letters and partitions of the events.

        The array of letters is reused for the next.
        """
        if not len(batch):
            return
        slots = [_ONE_PARTITION if run.key is None else run.key.code(batch) for run in self._runs]
        for run, own in zip(self._runs, slots, strict=True):
            if run.sessions is not None and run.sessions.column not in batch.columns:
                batch = run.sessions.marked(batch, own)
        coded = self._classifier.code(batch)
        letters = np.empty(len(batch), np.int32)
        for number, run, own in zip(self._numbers, self._runs, slots, strict=True):
            self._classifier.letters_of(number, coded, letters)
            known, count = run.run.tables.letters_known, self._classifier.letter_count(number)
            if count > known:
                run.run.learn_letters([self._classifier.truths(number, letter) for letter in range(known, count)])
            if run.key is not None:
                run.run.reserve_slots(run.key.capacity)
            yield run, letters, own
