"""A running layer: operators that read the same events, of the input alone or merged with derived events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from operator import not_
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from weft.algebra.query import AnyQuery
from weft.errors import InputError
from weft.plan.operators import JoinOp, Layer, PhysicalOp, RuleOp
from weft.plan.partitioning.splits import Lane
from weft.plan.properties import shows_all_fields
from weft.plan.reuse import extended, needed
from weft.runtime.classify.classifier import Predicates
from weft.runtime.classify.layer_keys import Keys
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.data.matches import MatchBatch, add_counts
from weft.runtime.execution.derived import Derived, derived, slots_of
from weft.runtime.execution.merging import Merge
from weft.runtime.execution.operators import JOINS, RULES, operators_of
from weft.runtime.identity.ids import Identify, unidentified
from weft.runtime.operators.operator import EARLIEST, Operator
from weft.runtime.store.pages import Array, Paging, pages_below, pages_under

if TYPE_CHECKING:
    from weft.runtime.operators.joins.operator import JoinOperator
    from weft.runtime.operators.rules.operator import RuleOperator

LEAST_PLACES = 1 << 12  # fewer are not compacted


class Added(NamedTuple):
    """Operators that a layer added, and the place from which they read events."""

    layer: Layer
    place: int


class ReplacedQuery(NamedTuple):
    """A query that continued in another form with its state."""

    number: int
    query: AnyQuery


class LayerExecution:
    """The operators of a layer. `since` and `position` are those of the last event it ignores, or None.

    `predicates` are shared by all operators on the input; with derived events it has separate ones.
    """

    def __init__(
        self,
        layer: Layer,
        since: int | None,
        position: int,
        predicates: Predicates,
        lane: Lane | None = None,
        number: int = 0,
    ) -> None:
        self.node = layer
        self.number = number  # permanent
        self.beginning = since, position
        # What was added, the queries that were removed, and those that changed their form, in order.
        self.changes: list[Added | ReplacedQuery | tuple[int, ...]] = []
        self.feeders = {definer.number: definer for definer in layer.feeders}
        self.network = layer.network
        self.operators: dict[str, Operator] = {}
        self.numbers: dict[str, list[int]] = {}  # of the queries of each operator
        self._keys = Keys()
        for kind, op, numbers in operators_of(layer, Predicates() if layer.feeders else predicates, self._keys, lane):
            self.operators[kind], self.numbers[kind] = op, list(numbers)
        self.silent = layer.silent
        self.mute = frozenset[int]() if lane is None else lane.mute
        self.emitted_numbers = [number for own in self.numbers.values() for number in own if number not in self.silent]
        self.clock = EARLIEST  # no later event ends earlier
        self._readers: dict[int, list[LayerExecution]] = {}  # by query: the layers that read its derived events
        self._since = EARLIEST if since is None else since
        self.is_fed = bool(layer.feeders)
        self._merge = Merge(layer.types, position) if self.is_fed else None
        self._removed: set[str] = set()
        self.ended: Counter[str] = Counter()  # counters of removed operators
        self.received: Counter[str] = Counter()  # events, by kind of operator
        self.emitted: Counter[str] = Counter()  # matches, by kind of operator
        self._forget_at = LEAST_PLACES
        self._paging = Paging()
        self.identify: Identify = unidentified  # set by the matcher, which has the input events

    @property
    def graph(self) -> JoinOperator | None:
        """The operator of composite queries, if any."""
        return cast("JoinOperator | None", self.operators.get(JOINS))

    @property
    def running(self) -> list[AnyQuery]:
        """The queries that run here."""
        return [query for op in self.operators.values() for query in op.queries if query is not None]

    def queries(self, numbers: Collection[int]) -> dict[int, AnyQuery]:
        """Return those of these queries that run here, in their current form."""
        kinds = [(self.operators[kind].queries, own) for kind, own in self.numbers.items()]
        pairs = [pair for queries, own in kinds for pair in zip(own, queries, strict=True)]
        return {number: query for number, query in pairs if number in numbers and query is not None}

    def replace_queries(self, queries: Mapping[int, AnyQuery]) -> None:
        """Replace the form of queries, by number, where the state is the same."""
        for kind, own in self.numbers.items():
            found = {place: queries[own[place]] for place in self._places(kind, queries)}
            if found:
                self.operators[kind].replace_queries(found)
                self.changes += [ReplacedQuery(own[place], query) for place, query in found.items()]

    def retire(self, numbers: Collection[int], position: int) -> None:
        """From now on, emit only matches of these queries' graphs with an event before a position."""
        if self.graph is not None:
            self.graph.retire(self._places(JOINS, numbers), position)

    def _places(self, kind: str, numbers: Collection[int]) -> list[int]:
        return [place for place, number in enumerate(self.numbers[kind]) if number in numbers]

    def link(self, number: int, reader: LayerExecution) -> None:
        """Pass the derived events of a query to another layer from now on."""
        self._readers.setdefault(number, []).append(reader)

    def unlink(self, reader: LayerExecution) -> None:
        """Stop passing derived events to another layer."""
        kept = {number: [own for own in readers if own is not reader] for number, readers in self._readers.items()}
        self._readers = {number: readers for number, readers in kept.items() if readers}

    def lacks(self, layer: Layer) -> int:
        """Return how many operators the composite queries of a layer would add if they were added here."""
        added = [op.graph for op in layer.operators if isinstance(op, JoinOp)]
        if self.graph is None or not self.graph.is_open:
            return sum(len(one.nodes) for one in added)
        return sum(needed(self.graph.graph, one) for one in added)

    def next_place(self, layer: Layer, position: int, time: int | None) -> int | None:
        """Return the place from which operators deployed now could read the events here, or None if they differ.

        The input has reached a position and a time. All future derived events must have places after the existing ones.
        """
        if {definer.number for definer in layer.feeders} != self.feeders.keys() or layer.network != self.network:
            return None
        if self._merge is None:
            return position + 1
        alone = self.operators.keys() == {JOINS}  # other operators would read events that they must not
        known = self._merge.sees(layer.types) or (alone and layer.types is not None)
        return self._merge.next_place() if known and (time is None or self.clock >= time) else None

    def extended(self, layer: Layer, place: int) -> Layer:
        """Add the operators that can run here and read events from a place on; return the rest of the layer.

        Rules share tables, since they read each other's events. Composite queries are added to the graph if some of
        their sub-patterns exist already.
        """
        taken = [self._takes(op, place) for op in layer.operators]
        own, rest = (tuple(compress(layer.operators, picked)) for picked in (taken, map(not_, taken)))
        if own:
            self.changes.append(Added(replace(layer, operators=own), place))
            if self._merge is not None:
                self._merge.see(layer.types)
        return replace(layer, operators=rest)

    def _takes(self, op: PhysicalOp, place: int) -> bool:
        """Whether an operator is added here from now on."""
        tables, graph = cast("RuleOperator | None", self.operators.get(RULES)), self.graph
        if isinstance(op, RuleOp) and tables is not None and not self.feeders:
            tables.extend(op.rules)
            kind = RULES
        elif isinstance(op, JoinOp) and graph is not None and graph.is_open:
            whole = extended(graph.graph, op.graph, place)
            if whole is None:
                return False
            graph.extend(whole)
            kind = JOINS
        else:
            return False
        self.numbers[kind] += op.numbers
        self.emitted_numbers += op.numbers
        return True

    def remove(self, numbers: Collection[int]) -> None:
        """Remove queries with the state that they do not share."""
        own_numbers = {number for own in self.numbers.values() for number in own}.intersection(numbers)
        if not own_numbers:
            return
        self.changes.append(tuple(sorted(own_numbers)))
        self.emitted_numbers = [number for number in self.emitted_numbers if number not in numbers]
        for kind, own in list(self.numbers.items()):
            places = self._places(kind, numbers)
            if any(number in self.emitted_numbers for number in own) and kind == JOINS:
                self.operators[kind].remove(places)
                self.numbers[kind] = [number for number in own if number not in numbers]
            elif any(number in self.emitted_numbers for number in own):
                self.operators[kind].remove(places)
                self._removed |= {self.operators[kind].queries[place].name for place in places if kind != RULES}
            else:
                self.ended.update(self.operators.pop(kind).counters)
                del self.numbers[kind]

    # -- events ---------------------------------------------------------------------------------

    def take(self, batch: EventBatch | None, time: int) -> Iterator[MatchBatch]:
        """Emit the matches that are final with events, and with later ones ending at a time or later."""
        ready = self._ready(batch, time)
        for kind, op in self.operators.items():
            if ready is not None:
                self.received[kind] += len(ready)
                yield from self._publish(kind, op.push(ready))
            if batch is None or self._merge is not None:
                yield from self._publish(kind, op.advance(time))
            op.sweep()
        self._pass(time)

    def count(self, batch: EventBatch | None, time: int) -> Counter[str]:
        """Return how many matches of each query are final then."""
        totals: Counter[str] = Counter()
        ready = self._ready(batch, time)
        for kind, op in self.operators.items():
            self.received[kind] += 0 if ready is None else len(ready)
            if ready is not None and self._must_enumerate(kind):
                add_counts(totals, self._publish(kind, op.push(ready)))
            elif ready is not None:
                counted = op.count(ready)
                self.emitted[kind] += sum(counted.values())
                totals.update(counted)
            if batch is None or self._merge is not None:
                add_counts(totals, self._publish(kind, op.advance(time)))
            op.sweep()
        self._pass(time)
        return totals

    def finish(self, last: int) -> Iterator[MatchBatch]:
        """Emit the pending matches: no further event follows; the input ended at this time."""
        ready = None if self._merge is None else self._merge.ready(None)
        for kind, op in self.operators.items():
            op.expect_end(last)
            if ready is not None:
                yield from self._publish(kind, op.push(ready))
            yield from self._publish(kind, op.finish(last))

    def _ready(self, batch: EventBatch | None, time: int) -> EventBatch | None:
        """Return the events whose turn it is."""
        if self._merge is None:
            return batch
        if batch is not None:
            self._merge.add_input(batch)
        return self._merge.ready(time)

    def _pass(self, time: int) -> None:
        self.clock = max(self.clock, time)
        self._keys.sweep()
        if self._merge is not None and self._merge.known > self._forget_at:
            self.oldest()
            self._forget_at = max(LEAST_PLACES, 2 * self._merge.known)

    # -- watermarks -----------------------------------------------------------------------------

    def watermark_of(self, number: int) -> int:
        """The output watermark of a query: no later match ends earlier."""
        for kind, numbers in self.numbers.items():
            if number in numbers:
                time = self.operators[kind].watermark_of(numbers.index(number))
                return self.clock if time is None else min(time, self.clock)
        raise KeyError(number)

    @property
    def watermark(self) -> int | None:
        """The output watermark: no later match ends earlier. None means the end of the last event."""
        known = [time for op in self.operators.values() if (time := op.watermark) is not None]
        return min([*known, *([] if self._merge is None else [self.clock])], default=None)

    def oldest(self) -> int | None:
        """Return the first input position that a future match may contain, or None if it has not arrived yet."""
        kept = min((first for op in self.operators.values() if (first := op.oldest()) is not None), default=None)
        if self._merge is None:
            return kept
        self._merge.forget(kept)
        return self._merge.oldest()

    # -- matches --------------------------------------------------------------------------------

    def _must_enumerate(self, kind: str) -> bool:
        """Whether matches of an operator must be enumerated even if they are only counted."""
        hidden = self.silent | self.mute
        return any(number in self._readers or number in hidden for number in self.numbers[kind])

    def _publish(self, kind: str, found: Iterator[MatchBatch]) -> Iterator[MatchBatch]:
        """Yield matches in input positions, and publish them as derived events."""
        numbers = self.numbers[kind]
        for batch in found:
            if batch.query in self._removed:
                continue
            self.emitted[kind] += len(batch)
            identified = batch if self._merge is None else self._merge.in_input(batch, spans=self.operators[kind].spans)
            if self._merge is not None or (self._readers and any(number in self._readers for number in numbers)):
                identified = self.identify(identified, tells_ends=self._merge is None)
            for number, readers in self._readers.items():
                if number in numbers:
                    rows = self._rows(kind, batch, numbers.index(number))
                    self._feed_readers(number, batch.take(rows), identified.take(rows), readers)
            visible = self._filter_hidden(kind, identified)
            if visible is not None:
                yield visible

    def _filter_hidden(self, kind: str, identified: MatchBatch) -> MatchBatch | None:
        """Keep the matches that are emitted here, and not in another layer or lane."""
        numbers, hidden = self.numbers[kind], self.silent | self.mute
        if not hidden:
            return identified
        if identified.codes is not None:
            visible = np.array([number not in hidden for number in numbers])
            return identified.take(np.flatnonzero(visible[identified.codes]))
        pairs = zip(self.operators[kind].queries, numbers, strict=True)
        names = {query.name for query, number in pairs if number in hidden}
        return None if identified.query in names else identified

    def _rows(self, kind: str, found: MatchBatch, place: int) -> Int64s:
        """Return the rows of the matches of a query."""
        if found.codes is not None:
            return np.flatnonzero(found.codes == place)
        is_own = self.operators[kind].queries[place].name == found.query
        return np.arange(len(found) if is_own else 0)

    def _feed_readers(
        self, number: int, found: MatchBatch, identified: MatchBatch, readers: Sequence[LayerExecution]
    ) -> None:
        """Pass the matches of a query to the layers that read them as events."""
        if not len(identified) or number in self.silent:
            return
        for reader in readers:
            definer = reader.feeders[number]
            slots = slots_of(found) if reader.network and definer.in_network else None
            reader.feed(derived(identified, definer, slots, all_fields=any(map(shows_all_fields, reader.running))))

    def feed(self, events: Derived) -> None:
        """Add derived events of a query."""
        assert self._merge is not None
        ends = events.batch.ends
        if (ends < self._since).any():  # events that ended before the layer existed are ignored
            events = events.take(np.flatnonzero(ends >= self._since))
            ends = events.batch.ends
        early = ends < self.clock
        if early.any():
            raise InputError(
                f"an event longer than all before opens a partition of {events.batch.types[0].as_py()!r} that ended at "
                f"{int(ends[np.argmax(early)])}, before what those who look at it have seen; with the whole input at "
                "hand (weft match, weft.detect) that is no problem"
            )
        if len(ends):
            self._merge.add(events)

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""
        small = {"clock": json.dumps(self.clock).encode()}
        arrays: list[tuple[str, Array]] = []
        if self._merge is not None:
            small |= self._merge.small()
            arrays += self._merge.arrays()
        pages = self._paging.changes(small, arrays) | pages_under("keys/", self._keys.snapshot())
        for kind, op in self.operators.items():
            pages |= pages_under(f"{kind}/", op.snapshot())
        return pages

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from the pages of snapshots."""
        kinds = ("keys/", *(f"{kind}/" for kind in self.operators))
        own = {name: page for name, page in pages.items() if not name.startswith(kinds)}
        self._paging.load(own)
        self.clock = json.loads(own["clock"])
        if self._merge is not None:
            self._merge.load(own)
        self._keys.load(pages_below("keys/", pages))
        for kind, op in self.operators.items():
            op.load(pages_below(f"{kind}/", pages))
