"""The join operator: batches of events in, matches of all its queries out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from weft.algebra.composites import CompositeQuery
from weft.kernels.joins import joining, occurrences
from weft.plan.graph import Graph
from weft.plan.partitioning.replicated import Replicated
from weft.plan.partitioning.splits import Lane
from weft.plan.properties import ALL_FIELDS
from weft.plan.text.graph import node_text
from weft.runtime.classify.classifier import Predicates
from weft.runtime.classify.layer_keys import Keys, SharedKey
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.data.matches import Int32s, MatchBatch
from weft.runtime.machine.code import Code
from weft.runtime.operators.event_store import Columns
from weft.runtime.operators.joins.build import build_operators
from weft.runtime.operators.joins.chains import ChainOperator
from weft.runtime.operators.joins.channels import OccurrenceBatch, ReceivedOperator, occurrences_of
from weft.runtime.operators.joins.choosing import Choosing, ChosenEvents
from weft.runtime.operators.joins.code import Compiler
from weft.runtime.operators.joins.dropping import drop_oldest
from weft.runtime.operators.joins.layout import Layouts
from weft.runtime.operators.joins.occurrence_store import OccurrenceStore
from weft.runtime.operators.joins.operators import (
    ALL,
    BEGINNING,
    ENDLESS,
    Build,
    Running,
    SinceOperator,
    SourceOperator,
)
from weft.runtime.operators.joins.output import QueryOutput, all_fields, fields_of
from weft.runtime.operators.joins.pages import chain_arrays, growing_parts, load_graph, store_pages, summary_of
from weft.runtime.operators.joins.sweep import LEAST_ROWS, sweep_graph
from weft.runtime.operators.operator import TOGETHER, Operator
from weft.runtime.store.event_buffer import EventBuffer
from weft.runtime.store.pages import Paging
from weft.runtime.store.size import bytes_of
from weft.runtime.watching.triggers import OperatorStats

Mask = npt.NDArray[np.bool_]
PIECE = 1 << 16  # matches in one batch
MOST_ROWS = 1 << 17  # rows that a part of a batch should add at most
LEAST_GONE = 64  # removed operators whose code and columns are tolerated
FEWEST_EVENTS, FIRST_EVENTS, MOST_EVENTS = 1 << 9, 1 << 12, 1 << 16  # processed at a time


class JoinOperator(Operator):
    """The composite queries of a layer, as one graph."""

    def __init__(self, graph: Graph, predicates: Predicates, keys: Keys, lane: Lane | None = None) -> None:
        self.graph = graph
        self._columns, self._code, self._keys = Columns(), Code(), keys
        layouts = Layouts(graph)
        by_start = lane is not None and isinstance(lane.split, Replicated) and lane.split.by_start
        share = (lane.share, lane.shares) if lane is not None and by_start else ALL
        self._build = build = Build(graph, layouts, Compiler(layouts, self._columns, self._code), share)
        self.operators = build_operators(build)
        for operator in self.operators:
            operator.link(build)
        self.row_store = OccurrenceStore(self._columns.names, self._code)
        self.running = Running(self.row_store, self.operators, BEGINNING)
        self.received = {found.channel: found for found in self.operators if isinstance(found, ReceivedOperator)}
        self.sent: list[OccurrenceBatch] = []  # occurrences for other lanes, until they are collected
        self.outputs = [QueryOutput(output) for output in graph.outputs]
        self.kept = EventBuffer([])
        self._keep_shown()
        self.sweep_at = LEAST_ROWS
        self.paging = Paging()
        self._events_at_once = FIRST_EVENTS
        self._gone = 0  # nodes that were removed
        self.chains: list[ChainOperator] = []
        self._predicates = predicates
        self._bind_predicates()

    @property
    def queries(self) -> Sequence[CompositeQuery]:
        """The composite queries, in the order of the outputs."""
        return [output.query for output in self.graph.outputs]

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Emit the matches that are final with these events."""
        return self.timed(TOGETHER, self._found(batch))

    def _found(self, batch: EventBatch) -> Iterator[MatchBatch]:
        for _ in self._steps(batch):
            for output in self.outputs:
                yield from self._report(output)

    def count(self, batch: EventBatch) -> dict[str, int]:
        """Return how many matches of each query are final with a batch."""
        totals: Counter[str] = Counter()
        chains = self._only_counted()
        try:
            for chain in chains:
                chain.is_counting = True
            for _ in self.timed(TOGETHER, self._steps(batch)):
                for output in self.outputs:
                    found = len(self._ready(output)) if output.is_plain else sum(map(len, self._report(output)))
                    totals[output.query.name] += found + self.operators[output.node].counted
                for chain in chains:
                    chain.counted = 0
        finally:
            for chain in chains:
                chain.is_counting = False
        return dict(totals)

    def _only_counted(self) -> list[ChainOperator]:
        """Return the chains whose matches are only counted: no operator and no query reads them."""
        read = {number for operator in self.operators for number in operator.inputs}
        read |= {output.node for output in self.outputs if not output.is_plain}
        return [chain for chain in self.chains if chain.number not in read]

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """Emit the matches that are final because no later event ends before this time."""
        if time > self.running.clock:
            self._advance(time)
        for output in self.outputs:
            yield from self._report(output)

    def finish(self, last: int) -> Iterator[MatchBatch]:
        """Emit all pending matches: the stream has ended."""
        self.running.finished = True
        self._advance(ENDLESS)
        for output in self.outputs:
            yield from self._report(output)

    def watermark_of(self, place: int) -> int:
        """The output watermark of a query: no later match ends earlier."""
        return self.operators[self.outputs[place].node].watermark

    def oldest(self) -> int | None:
        """Return the position of the first stored event, or None."""
        return self.row_store.oldest(in_order=not self.received)

    def bytes_of_query(self, name: str) -> int:
        """Return the bytes of memory of the whole graph, as queries share parts of it."""
        return bytes_of(self, without=(SharedKey, Keys, Predicates))

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """See `Operator.drop_oldest`."""
        return drop_oldest(self, limit, names)

    @property
    def waiting(self) -> int:
        """The number of occurrences that operators store."""
        return sum(operator.waiting for operator in self.operators)

    def operator_stats(self, where: str, received: int, emitted: int) -> list[OperatorStats]:
        """Return statistics of each operator; it received what its inputs emitted, or all events without inputs."""
        return [
            OperatorStats(
                f"{where}.{number}: {node_text(self.graph, number)}",
                sum(self.operators[place].emitted for place in operator.inputs) if operator.inputs else received,
                operator.emitted,
                operator.waiting,
            )
            for number, operator in enumerate(self.operators)
        ]

    def retire(self, places: Collection[int], position: int) -> None:
        """From now on, emit only matches of these queries with an event before this position."""
        for place in places:
            self.outputs[place].before = position

    # -- adding and removing queries ------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether queries can be added: not after many removals, as removed operators leave code and columns behind."""
        return self._gone <= LEAST_GONE + 4 * len(self.operators)

    def extend(self, graph: Graph) -> None:
        """Continue with a graph that has further nodes and outputs after the same ones."""
        first, sizes, build = len(self.operators), self._build.layouts.sizes, self._build
        self.graph = graph
        build.extend(graph)
        added = build_operators(build, first)
        self.operators += added
        for operator in self.operators:
            operator.ordered = build.ordered[operator.number]
            operator.link(build)
        for operator in added:
            if isinstance(operator, SinceOperator):  # rows emitted so far consist of earlier events
                operator.control[operator.cursor(0)] = self.running.emitted_rows(operator, 0)[1]
        more = max(new - old for new, old in zip(build.layouts.sizes[:first], sizes, strict=True))
        self.row_store.widen(self._columns.names)
        if more:
            self.row_store.add_slots(more)
        self.row_store.read(self._code)
        self.outputs += map(QueryOutput, graph.outputs[len(self.outputs) :])
        self._keep_shown()
        self._bind_predicates()

    def remove(self, places: Collection[int]) -> None:
        """Remove the operators that only the queries at these places need; later places move up."""
        kept = [place for place in range(len(self.outputs)) if place not in places]
        needed = self.graph.needed(kept)
        self.graph = self.graph.only(kept)
        self._gone += len(self.operators) - len(needed)
        self._build.keep(needed, self.graph)
        self.operators[:] = [self.operators[number] for number in needed]
        for number, (operator, node) in enumerate(zip(self.operators, self.graph.nodes, strict=True)):
            operator.number, operator.inputs = number, node.inputs
        self.outputs = [self.outputs[place] for place in kept]
        for output, planned in zip(self.outputs, self.graph.outputs, strict=True):
            output.node = planned.node
        self._keep_shown()
        self._bind_predicates()

    def _bind_predicates(self) -> None:
        """Register the predicates of operators with the shared classifier of the layer."""
        self._sources = [operator for operator in self.operators if isinstance(operator, SourceOperator)]
        before, self.chains = self.chains, [found for found in self.operators if isinstance(found, ChainOperator)]
        for chain in self.chains:
            chain.read(self._predicates)
            if chain not in before:
                chain.use(self._keys)
        for chain in before:
            if chain not in self.chains:
                self._keys.leave(chain)
        self.paging.renumbered()
        taking = [source.predicate for source in self._sources]
        self._choosing = Choosing(taking, self._build.truths.predicates, self._predicates)

    # -- state ----------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Release unused rows and events when there are many."""
        sweep_graph(self)

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""
        small = {"summary": summary_of(self), **dict(store_pages(self))}
        return self.paging.changes(small, chain_arrays(self), growing_parts(self))

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from the pages of snapshots."""
        load_graph(self, pages)
        self.paging.load(pages, growing_parts(self))

    # -- events in ------------------------------------------------------------------------------

    def _steps(self, batch: EventBatch) -> Iterator[None]:
        """Process a batch in parts whose rows fit into the processor's cache."""
        at, chosen, seen = 0, self._choosing.letters(batch), [chain.letters_and_keys(batch) for chain in self.chains]
        while at < len(batch):
            before = self.row_store.row_count
            part = blocks.slice(batch, at, self._events_at_once)
            end = at + len(part)
            kept = self._advance_chains(part, [(letters[at:end], slots[at:end]) for letters, slots in seen])
            wanted = reduce(np.bitwise_or, kept, np.zeros(len(part), bool))
            self._take(part, self._choosing.take(part, chosen, len(batch), at, wanted, self.row_store), kept)
            at = end
            made = self.row_store.row_count - before
            yield
            sweep_graph(self)
            if made > MOST_ROWS:
                self._events_at_once = max(FEWEST_EVENTS, self._events_at_once // 2)
            elif made < MOST_ROWS // 4:
                self._events_at_once = min(MOST_EVENTS, self._events_at_once * 2)

    def _advance_chains(self, batch: EventBatch, seen: Sequence[tuple[Int32s, Int32s]]) -> list[Mask]:
        """Pass events with their letters and keys to the chains, and return which events each keeps."""
        first = self.row_store.event_count
        return [chain.advance_keys(batch, *known, first) for chain, known in zip(self.chains, seen, strict=True)]

    def _take(self, batch: EventBatch, taken: ChosenEvents, kept: Sequence[Mask]) -> None:
        self.kept.add(batch, taken.relevant)
        for source, chosen in zip(self._sources, taken.chosen, strict=True):
            source.chosen = chosen
        if self._sources or len(kept) > 1:  # else the provisional numbers of the only chain are final
            for chain, own in zip(self.chains, kept, strict=True):
                chain.renumber_kept(taken.first, taken.numbers(own))
        self._advance(max(self.running.clock, int(batch.ends[-1])))

    def _advance(self, clock: int) -> None:
        self.running.clock = clock
        for operator in self.operators:
            before = int(operator.control[joining.OUT])
            operator.advance(self.running)
            operator.emitted += int(operator.control[joining.OUT]) - before

    # -- matches out ----------------------------------------------------------------------------

    def _ready(self, output: QueryOutput) -> Int64s:
        """Return the final rows that a query has not reported yet."""
        operator = self.operators[output.node]
        ready = self.row_store.before(operator.emitted_rows()[output.taken :], operator.watermark)
        output.taken += len(ready)
        return ready

    def receive(self, batch: OccurrenceBatch) -> None:
        """Import occurrences that another lane found."""
        self.received[batch.channel].receive(self, batch)

    def _report(self, output: QueryOutput) -> Iterator[MatchBatch]:
        ready = self._ready(output)
        if output.channel is not None:
            if len(ready):
                self.sent.append(occurrences_of(self, output.channel, ready))
            return
        for begin in range(0, len(ready), PIECE):
            batch = self._matches(output, ready[begin : begin + PIECE])
            if output.before is not None:
                first = np.minimum.reduceat(batch.positions, batch.offsets[:-1]) if len(batch) else batch.positions
                batch = batch.take(np.flatnonzero(first < output.before))
            if len(batch):
                yield batch

    def _matches(self, output: QueryOutput, rows: Int64s) -> MatchBatch:
        row_store = self.row_store
        offsets, positions, labels = occurrences.report(row_store.rows, row_store.events, rows, len(rows))
        if output.reported is not None:
            new = _new_ones(output.reported, offsets, positions, labels)
            if len(new) < len(rows):
                rows = rows[new]
                offsets, positions, labels = occurrences.report(row_store.rows, row_store.events, rows, len(rows))
        fields = fields_of(output, rows, row_store, self.kept)
        if output.query.all_fields:
            fields |= all_fields(output, (offsets, positions, labels), self.kept)
        return MatchBatch(
            query=output.query.name,
            names=output.names,
            starts=self.row_store.times(rows, occurrences.START),
            ends=self.row_store.times(rows, occurrences.END),
            offsets=offsets,
            positions=positions,
            labels=labels,
            fields=fields,
            sparse=output.query.all_fields,
        )

    def _keep_shown(self) -> None:
        """Keep the attributes of events that matches, and occurrences for other lanes, include."""
        shown = {name for output in self.outputs for name in output.fields.attributes}
        shown = shown.union(*(output.channel.attributes for output in self.outputs if output.channel))
        self.kept.attributes = sorted(shown - {ALL_FIELDS})
        self.kept.all_fields = ALL_FIELDS in shown or any(output.query.all_fields for output in self.outputs)


def _new_ones(reported: dict[bytes, None], offsets: Int64s, positions: Int64s, labels: Int32s) -> Int64s:
    """Return which matches have bindings not reported before."""
    new = []
    for number in range(len(offsets) - 1):
        part = slice(offsets[number], offsets[number + 1])
        key = positions[part].tobytes() + labels[part].tobytes()
        if key not in reported:
            reported[key] = None
            new.append(number)
    return np.array(new, np.int64)
