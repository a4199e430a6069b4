"""The matcher: batches of events in, matches out, on every engine."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from weft.algebra.analysis.feeding import mentioned_below
from weft.algebra.query import AnyQuery, Program
from weft.errors import UsageError
from weft.plan.operators import Layer, Plan
from weft.plan.partitioning.splits import Lane
from weft.runtime.classify.classifier import Predicates
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch, Origin
from weft.runtime.execution.layer_state import layer_from_plain_state, layer_to_plain_state
from weft.runtime.execution.layers import LayerExecution
from weft.runtime.identity.chunks import Attributes
from weft.runtime.identity.events import EventIdentities
from weft.runtime.identity.ids import identified
from weft.runtime.lanes.ownership import emits_subset, filter_owned
from weft.runtime.lanes.routing import placed
from weft.runtime.operators.operator import Operator
from weft.runtime.store.pages import FOREIGN, FORMAT, WORTH_FORGETTING, Paging, pages_below, pages_under
from weft.runtime.store.size import bytes_of
from weft.runtime.watching.triggers import OperatorStats
from weft.stored import Plain, canonical_text
from weft.tree import deep

NOTHING = Plan(Program("", ()), (), (), (), frozenset())
NO_NAMES: Mapping[str, str] = {}
_IDENTITIES = "identities/"


class Matcher:
    """All queries of a plan over one stream of events, layer by layer.

    The matcher of a lane executes its queries over its events, and emits the matches that it owns.
    """

    @deep
    def __init__(self, plan: Plan, lane: Lane | None = None) -> None:
        self.plan = plan if lane is None else plan.only(lane.queries)
        self.lane = lane
        self.layers: list[LayerExecution] = []
        self._predicates = Predicates()  # of the input
        self._layer_of: dict[int, LayerExecution] = {}  # by number of a query that is emitted there
        self._events = 0
        self._last: int | None = None  # the end of the last event
        self._position = -1  # its position
        self._ended: Counter[str] = Counter()  # counters of removed operators
        self._paging = Paging()
        self._texts: dict[int, tuple[AnyQuery, str]] = {}
        self._made = 0  # layers so far
        self._identities, self._attributes = EventIdentities(), dict[Origin, Attributes]()
        self._key: tuple[str, ...] = ()
        self._add(self.plan.layers)

    def identify_by(self, key: tuple[str, ...]) -> None:
        """Identify events by these attributes instead of those in queries; call it before the first event, or again."""
        self._key = key
        self._identities.identify_by(key)
        self._note_attributes()

    def _note_attributes(self) -> None:
        """Update the attributes that identify the events of matches, after queries were added."""
        queries = [query for layer in self.layers for query in layer.running]
        for query, names in zip(queries, mentioned_below(queries), strict=True):
            alike = tuple(sorted({*names, *self._key}))
            self._attributes[query.origin] = Attributes(tuple(sorted(self._key)) or names, alike)
        self._identities.want(self._attributes.values())

    def _identified(self, found: Iterable[MatchBatch]) -> Iterator[MatchBatch]:
        """Add ids to matches of the input."""
        return (identified(batch, self._identities.of, self._attributes) for batch in found)

    def _derived(self, found: MatchBatch, *, tells_ends: bool) -> MatchBatch:
        """Add ids to matches of a layer."""
        return identified(found, self._identities.of, self._attributes, tells_ends=tells_ends)

    @property
    def operators(self) -> Iterator[Operator]:
        """The operators, layer by layer."""
        return (operator for layer in self.layers for operator in layer.operators.values())

    @deep
    def extend(self, plan: Plan) -> None:
        """Add queries, by number, which read the events from now on, and derived events of existing queries."""
        layers = list(plan.layers)
        for place, layer in enumerate(layers):
            for running in sorted(self.layers, key=lambda other: other.lacks(layer)):
                begin = running.next_place(layer, self._position, self._last)
                if begin is not None:
                    layers[place] = running.extended(layers[place], begin)
                    self._layer_of |= dict.fromkeys(running.emitted_numbers, running)
        self._add(layer for layer in layers if layer.operators)

    def _add(self, layers: Iterable[Layer]) -> None:
        for node in layers:
            self._put(LayerExecution(node, self._last, self._position, self._predicates, self.lane, self._made))
        self._note_attributes()

    def _put(self, layer: LayerExecution) -> None:
        self._made = layer.number + 1
        layer.identify = self._derived
        self.layers.append(layer)
        self._layer_of |= dict.fromkeys(layer.emitted_numbers, layer)
        for number in layer.feeders:
            if number in self._layer_of:
                self._layer_of[number].link(number, layer)

    def remove(self, numbers: Collection[int]) -> None:
        """Remove queries with the state that they do not share."""
        for layer in self.layers:
            layer.remove(numbers)
        gone = [layer for layer in self.layers if not layer.emitted_numbers]
        self.layers = [layer for layer in self.layers if layer.emitted_numbers]
        for layer in gone:
            self._ended.update(layer.ended)
            for number in layer.feeders:
                if number in self._layer_of:
                    self._layer_of[number].unlink(layer)
        for number in numbers:
            self._layer_of.pop(number, None)

    def queries(self, numbers: Collection[int]) -> dict[int, AnyQuery]:
        """Return queries in their current form, by number."""
        return {number: query for layer in self.layers for number, query in layer.queries(numbers).items()}

    @deep
    def replace_queries(self, queries: Mapping[int, AnyQuery]) -> None:
        """Replace the form of queries, by number, where the state is the same; called between batches."""
        for layer in self.layers:
            layer.replace_queries(queries)

    def retire(self, numbers: Collection[int]) -> None:
        """From now on, emit only matches of these queries' graphs with an event already seen."""
        for layer in self.layers:
            layer.retire(numbers, self._position + 1)

    @property
    def last(self) -> int | None:
        """The end of the last event."""
        return self._last

    @property
    def next_number(self) -> int:
        """An unused number for a query."""
        return max(self._layer_of, default=-1) + 1

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Process a batch of events and yield the matches that are final with it, query by query, by end.

        Matches come in pieces, so that there may be more than fit into memory. The iterator must be exhausted before
        the next batch is pushed.
        """
        batch = self._placed(batch)
        if not len(batch):
            return
        last = self._see(batch)
        self._identities.add(batch)
        for layer in self.layers:
            with _interrupted_as_usual():
                yield from self._identified(filter_owned(layer.take(batch, self._bound(layer, last)), self.lane))
        self._forget()

    def _forget(self) -> None:
        """Release the identities of events that no later match contains."""
        self._identities.forget(self.oldest)

    def count(self, batch: EventBatch) -> dict[str, int]:
        """Return how many matches of each query are final with a batch."""
        if not len(batch):
            return {}
        totals: Counter[str] = Counter()
        if self.lane is not None and emits_subset(self.lane):
            for found in self.push(batch):
                totals.update(found.counts)
            return dict(totals)
        last = self._see(batch)
        if any(layer.is_fed for layer in self.layers):  # derived events of one rank are ordered by their ids
            self._identities.add(batch)
        for layer in self.layers:
            with _interrupted_as_usual():
                totals.update(layer.count(batch, self._bound(layer, last)))
        self._forget()
        return dict(totals)

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """Emit the matches that are final because no later event ends before this time."""
        for layer in self.layers:
            with _interrupted_as_usual():
                yield from self._identified(filter_owned(layer.take(None, self._bound(layer, time)), self.lane))

    def finish(self) -> list[MatchBatch]:
        """Emit all pending matches: the stream has ended."""
        if self._last is None:
            return []
        with _interrupted_as_usual():
            found = (found for layer in self.layers for found in filter_owned(layer.finish(self._last), self.lane))
            return list(self._identified(found))

    def _placed(self, batch: EventBatch) -> EventBatch:
        return batch if self.lane is None else placed(batch, self.lane)

    def _see(self, batch: EventBatch) -> int:
        """Count the events, and return the end of the last."""
        self._events += len(batch)
        self._last, self._position = int(batch.ends[-1]), int(batch.positions[-1])
        return self._last

    def _bound(self, layer: LayerExecution, time: int) -> int:
        """Return the least end of later events of a layer, given that of later input events."""
        feeders = [number for number in layer.feeders if number in self._layer_of]
        return min([time, *(self._layer_of[number].watermark_of(number) for number in feeders)])

    @property
    def emits_several_queries(self) -> bool:
        """Whether matches of several queries are emitted query by query instead of all by end."""
        operators = list(self.operators)
        if len(operators) == 1 and operators[0].fires_in_order is not None:
            return not operators[0].fires_in_order
        return sum(len(layer.emitted_numbers) for layer in self.layers) > 1

    @property
    def looks_back(self) -> bool:
        """Whether the length of events matters: a long event may open partitions that ended before it."""
        return any(operator.looks_back for operator in self.operators)

    def expect(self, longest: int) -> None:
        """Declare that the input is finite, with events of at most `longest` ticks."""
        for operator in self.operators:
            operator.expect(longest)

    def oldest(self) -> int | None:
        """Return the first position that a later match may contain, or None if it contains no event so far."""
        known = [layer.oldest() for layer in self.layers]
        return min((position for position in known if position is not None), default=None)

    @property
    def counters(self) -> dict[str, int]:
        """Number of events, and counters of the operators."""
        totals = Counter({"events": self._events, **self._ended})
        for layer in self.layers:
            totals.update(layer.ended)
        for operator in self.operators:
            totals.update(operator.counters)
        return dict(totals)

    def operator_stats(self) -> list[OperatorStats]:
        """Return statistics of the operators: events received, matches emitted, and pending state."""
        return [
            standing
            for number, layer in enumerate(self.layers)
            for kind, operator in layer.operators.items()
            for standing in operator.operator_stats(f"{kind} {number}", layer.received[kind], layer.emitted[kind])
        ]

    @property
    def watermark(self) -> int | None:
        """The output watermark: no later match ends earlier. None means the end of the last event."""
        known = [layer.watermark for layer in self.layers]
        return min((time for time in known if time is not None), default=None)

    # -- state ----------------------------------------------------------------------------------

    @property
    def state_bytes(self) -> int:
        """The bytes of memory that all queries use, by count."""
        return bytes_of(self.layers)

    def bytes_of_query(self, name: str) -> int:
        """Return the bytes that one query uses."""
        return sum(operator.bytes_of_query(name) for operator in self._operators_of((name,)))

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """Evict the oldest partial matches of queries that exceed `limit` bytes; return how many, by query."""
        own, dropped = self._operators_of(names), Counter[str]()
        for operator in own:
            dropped += operator.drop_oldest(limit // len(own), names)
        return dropped

    def seconds_of_query(self, name: str) -> float:
        """Return the seconds spent for one query since the first call."""
        return sum(operator.seconds_of_query(name) for operator in self._operators_of((name,)))

    def _operators_of(self, names: Collection[str]) -> list[Operator]:
        return [
            operator
            for operator in self.operators
            if any(query is not None and query.name in names for query in operator.queries)
        ]

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""
        self._identities.forget(self.oldest, least=WORTH_FORGETTING)
        own = {"format": self.fingerprint, "events": json.dumps([self._events, self._last, self._position]).encode()}
        pages = self._paging.changes(own) | pages_under(_IDENTITIES, self._identities.snapshot())
        for layer in self.layers:
            pages.update(pages_under(f"layer/{layer.number}/", layer.snapshot()))
        return pages

    @classmethod
    def restore(
        cls, plan: Plan, pages: Mapping[str, bytes], lane: Lane | None = None, gone: Collection[int] = ()
    ) -> Matcher:
        """Restore a matcher from pages; `gone` are the queries that had been removed from it."""
        matcher = cls(plan, lane)
        if gone:
            matcher.remove(gone)
        if pages.get("format") != matcher.fingerprint:
            raise UsageError(FOREIGN)
        matcher._load(pages)
        return matcher

    def _load(self, pages: Mapping[str, bytes]) -> None:
        for layer in self.layers:
            layer.load(pages_below(f"layer/{layer.number}/", pages))
        self._identities.load(pages_below(_IDENTITIES, pages))
        self._events, self._last, self._position = json.loads(pages["events"])
        self._paging.load({name: pages[name] for name in ("format", "events")})

    def structure(self) -> Plain:
        """Return the running structure as plain data, which `rebuilt` needs besides the pages."""
        layers = [layer_to_plain_state(layer) for layer in self.layers]
        return {"format": FORMAT, "made": self._made, "layers": layers, "ended": dict(self._ended)}

    @classmethod
    @deep
    def rebuilt(
        cls, structure: Plain, pages: Mapping[str, bytes], names: Mapping[str, str] = NO_NAMES, lane: Lane | None = None
    ) -> Matcher:
        """Rebuild a matcher from its structure and pages.

        Queries are renamed by `names`; `lane` is the lane it works for.
        """
        if structure.get("format") != FORMAT:
            raise UsageError(FOREIGN)
        matcher = cls(NOTHING)
        matcher.lane = lane
        for layer in structure["layers"]:
            matcher._put(layer_from_plain_state(layer, names, matcher._predicates, lane))
        matcher._note_attributes()
        matcher._made, matcher._ended = structure["made"], Counter(structure["ended"])
        matcher._load(pages)
        return matcher

    def _text(self, query: AnyQuery) -> str:
        """Describe a query independently of the version; cached, as each snapshot needs it."""
        known = self._texts.get(id(query))
        if known is None or known[0] is not query:
            known = self._texts[id(query)] = query, canonical_text(query)
        return known[1]

    @property
    def fingerprint(self) -> bytes:
        """Return a short text that identifies the running queries, to reject pages of other queries."""
        layers = [
            (
                sorted(layer.feeders),
                [[self._text(query) for query in op.queries] for op in layer.operators.values()],
            )
            for layer in self.layers
        ]
        text = repr((FORMAT, layers))
        return hashlib.blake2b(text.encode(), digest_size=16).digest()


@contextmanager
def _interrupted_as_usual() -> Iterator[None]:
    """Raise KeyboardInterrupt where Python reports Ctrl-C during a kernel's return as a kernel error."""
    try:
        yield
    except SystemError as failure:
        cause: BaseException | None = failure
        while isinstance(cause, SystemError):  # one for each array
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
