"""The execution of one situation: events in stream order in, matching sets out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from weft.algebra.contexts import Forgetting, FromFor, FromUntil, Whole, Windows
from weft.algebra.policies import Evaluation, Repeated
from weft.algebra.predicates import Predicate
from weft.algebra.situations import SituationQuery
from weft.kernels.situations import found_sets, participants, partitions, select
from weft.plan.atoms import IsType
from weft.plan.search import SituationSearch
from weft.runtime.classify.classifier import Classifier, Predicates
from weft.runtime.classify.layer_keys import Keys
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.operators.event_store import Columns
from weft.runtime.operators.fields import Fields
from weft.runtime.operators.situations.members import Members
from weft.runtime.operators.situations.memory import Memory
from weft.runtime.operators.situations.residual import SetFilter
from weft.runtime.operators.situations.tables import SituationTables
from weft.runtime.store.pages import Pages
from weft.runtime.store.size import older_half

NUMBERS = 1 << 16  # in one piece of output
LEAST_EVENTS = 1 << 12
INTERRUPT_CHECK_EVERY = 1 << 22  # visited entries between two checks for Ctrl-C
_NOTHING = np.empty(0, np.int64)
Ends = Callable[[EventBatch], npt.NDArray[np.bool_]]


class Stage:
    """The state of one situation, and how events change it.

    `ends` computes which events of a batch end a set of its first slots, if these are evaluated elsewhere.
    """

    def __init__(
        self,
        query: SituationQuery,
        search: SituationSearch,
        predicates: Predicates,
        keys: Keys,
        ends: Ends | None = None,
    ) -> None:
        self.query = query
        situation, columns = query.situation, Columns()
        self.tables = SituationTables(situation, search, columns)
        by = situation.context.by
        shown = Fields(query.fields).attributes
        for name in shown:
            columns.number(name)
        self._residual = SetFilter(search.residual, situation.variables, columns) if search.residual else None
        self.members = Members(columns, self.tables.code, shown)
        self.is_absence = situation.kind == "absence"
        # Windows without any event of a known key are absences.
        self._remembers_keys = self.is_absence and isinstance(situation.context, Windows)
        self.immediate = situation.evaluation is Evaluation.IMMEDIATE
        self.time: int | None = None  # no later event ends earlier
        self.longest = 0  # ticks of the longest event so far
        self.memory = Memory(self.tables, self.members.width)
        slots = zip(situation.participants, search.exists, search.fills, strict=True)
        overrides = [(seen if slot.repeated is Repeated.OVERRIDE else fills, fills) for slot, seen, fills in slots]
        guards = [part for pair in overrides for part in pair]
        self._classifier = Classifier([[*guards, *_boundaries(query)]], predicates)
        self._ends = ends
        # By class of events: their letter, or with `ends` twice the letter, plus one if they end a set:
        self._kinds = np.empty(0, np.int64)  # whether an event opens or closes partitions
        self._fills = np.empty(0, bool)  # whether an event is a participant
        self._key = keys.use(tuple((name,) for name in by), self) if by else None
        self._key_members: Int64s = _NOTHING  # by key: an event with its values, for absences that show them
        self._width = select.ABSENT if self.is_absence else self.tables.count
        self._out = np.empty(max(NUMBERS // self._width, 1) * self._width, np.int64)
        self._sweep_at = LEAST_EVENTS

    def replace_queries(self, query: SituationQuery, ends: Ends | None) -> None:
        """Replace the situation by one that differs only in what is evaluated eagerly or shared.

        The state stays valid: events that end no candidate are in no set, however this is determined.
        """
        if query.situation.shared != self.query.situation.shared:
            self.tables.forget_classes()
            self._fills, self._kinds = np.empty(0, bool), np.empty(0, np.int64)
        self.query, self._ends = query, ends
        self.memory.place_blocks({participants.SLOTS: self.tables.slots(query.situation)})

    # -- events and time ------------------------------------------------------------------------

    def take(self, batch: EventBatch, time: int, *, counting: bool = False) -> Iterator[Int64s]:
        """Yield the sets that events, and then the passing of time, complete, as numbers of members."""
        if len(batch) or self.time is None or time > self.time:
            if not self.is_absence:  # absences are not found by end, so none is final before all are known
                self.time = time
            yield from self._drive(self._prepared(batch, time, 0), counting)
            self.time = time
            self._sweep()

    def expect_end(self, last: int) -> None:
        """Declare the end of the input: derived events may end later, but windows that begin later do not count."""
        context = self.query.situation.context
        if isinstance(context, Windows):
            self.memory.m[participants.LAST_NUMBER] = last // context.step

    def finish(self, last: int) -> Iterator[Int64s]:
        """Yield the sets of the partitions that close at the end of the input, whose last time this is."""
        yield from self._drive(self._prepared(blocks.empty(), last, partitions.FINISH), counting=False)

    @property
    def settled(self) -> int | None:
        """The output watermark, or None if nothing is known."""
        if self.time is None or self.is_absence or self.immediate:
            context = self.query.situation.context
            if (
                self._remembers_keys
                and isinstance(context, Windows)
                and self.time is not None
                and self.memory.has_unreported()
            ):
                return (self.time - context.length) // context.step * context.step + context.length
            return None if self.is_absence and isinstance(context, Whole) else self.time
        return min(self.time, self.memory.oldest()[0])

    @property
    def visited(self) -> int:
        """The number of events that the searches visited."""
        return int(self.memory.m[participants.LOOKED])

    def key_members(self, keys: Int64s) -> Int64s:
        """Return an event with the values of each key, or -1."""
        found: Int64s = self._key_members[keys] if len(self._key_members) else np.full(len(keys), -1, np.int64)
        return found

    def key_hashes(self, keys: Int64s) -> npt.NDArray[np.uint64]:
        """Return a hash of each key that is the same in every process, or 0 without a key."""
        return np.zeros(len(keys), np.uint64) if self._key is None else self._key.coder.hashes(keys)

    def _drive(self, arriving: Int64s, counting: bool) -> Iterator[Int64s]:
        """Run the kernel over events and yield sets; while only counting, sets have no members."""
        memory, members = self.memory, self.members
        memory.m[participants.ARRIVED] = 0
        machine = members.machine()
        only_count = counting and self._residual is None
        while True:
            status = select.advance_situation(
                memory.m, members.machine_notes, machine, arriving, self._out, only_count, INTERRUPT_CHECK_EVERY
            )
            found, memory.m[participants.FOUND] = int(memory.m[participants.FOUND]), 0
            if found:
                sets = self._out[: 0 if only_count else found * self._width].reshape(found, -1)
                yield sets if self._residual is None else sets[self._residual(members, sets)]
            if status == found_sets.DONE:
                return
            if status == found_sets.GROW:
                memory.grow()
            if status == found_sets.CROWDED:
                memory.grow_seen(memory.oldest()[1] if not self.immediate else 0)

    def _prepared(self, batch: EventBatch, time: int, kind: int) -> Int64s:
        """Encode the relevant events for the kernel, followed by a time up to which all is known."""
        if not len(batch):
            return np.array([-1, 0, time, time, kind, -1, -1, -1], np.int64)
        classes = self._classifier.letters(batch)[0]
        self._add_classes()
        if self._ends is not None:
            classes = 2 * classes + self._ends(batch)
        kinds, fills = self._kinds[classes], self._fills[classes]
        matters = np.ones(len(batch), bool) if self.is_absence else fills | (kinds != 0)
        keys = None
        if self._key is not None:
            keys = self._key.code(batch)
            matters &= keys >= 0
            self.memory.reserve_keys(self._key.capacity)
        chosen = np.flatnonzero(matters)
        arriving: npt.NDArray[np.int64] = np.full((len(chosen) + 1, partitions.ARRIVING), -1, np.int64)
        arriving[-1] = [-1, 0, time, time, kind, -1, -1, -1]
        events = arriving[:-1]
        events[:, partitions.OF_CLASS] = classes[chosen]
        events[:, partitions.OF_KEY] = 0 if keys is None else keys[chosen]
        events[:, partitions.STARTS], events[:, partitions.ENDS] = batch.starts[chosen], batch.ends[chosen]
        events[:, partitions.OF_KIND], events[:, partitions.PLACED] = kinds[chosen], batch.positions[chosen]
        events[:, partitions.FROM] = (batch.positions if batch.origins is None else batch.origins)[chosen]
        if self.is_absence:
            self._add_key_members(batch, chosen, events[:, partitions.OF_KEY])
        else:
            inside = np.flatnonzero(fills[chosen])
            first = self.members.add(batch, chosen[inside])
            events[inside, partitions.NUMBERED] = np.arange(first, first + len(inside))
        return arriving.ravel()

    def _add_classes(self) -> None:
        """Add classes for new letters."""
        known, count = len(self._fills) // (1 if self._ends is None else 2), self._classifier.letter_count(0)
        if known == count:
            return
        for letter in range(known, count):
            truths = self._classifier.truths(0, letter)
            if self._ends is not None:
                without = list(truths)
                without[2 * self.query.situation.shared - 1] = False  # it exists in the slot, but does not fill it
                self._add_class(without)
            self._add_class(truths)
        self.memory.place_blocks(self.tables.class_blocks())

    def _add_class(self, truths: Sequence[bool]) -> None:
        """Add a class of events, given which slots and boundaries they satisfy."""
        slots = 2 * self.tables.count
        fills = self.tables.add_class(truths[:slots])
        bits = (partitions.OPENS, partitions.CLOSES)
        kind = sum(bit for bit, truth in zip(bits, truths[slots:], strict=False) if truth)
        self._fills, self._kinds = np.append(self._fills, fills), np.append(self._kinds, np.int64(kind))

    def _add_key_members(self, batch: EventBatch, chosen: Int64s, keys: Int64s) -> None:
        """Store an event of each new key if its values are shown."""
        if self._key is None or not self.members.columns:
            return
        more = max(self._key.capacity - len(self._key_members), 0)
        self._key_members = np.concatenate([self._key_members, np.full(more, -1, np.int64)])
        if len(keys) and self._key_members[keys].min() < 0:
            new, rows = np.unique(keys, return_index=True)
            rows, new = rows[self._key_members[new] < 0], new[self._key_members[new] < 0]
            order = np.argsort(rows)  # members are in the order of events, while slots of keys are reused in any order
            rows, new = rows[order], new[order]
            first = self.members.add(batch, chosen[rows])
            self._key_members[new] = np.arange(first, first + len(rows))

    # -- stored events ---------------------------------------------------------------------------

    def live_slots(self, capacity: int) -> npt.NDArray[np.bool_]:
        """See `KeyUser`."""
        keys = self.memory.keys()[:capacity]
        live: npt.NDArray[np.bool_] = keys[:, partitions.OPEN_PARTS] > 0
        context = self.query.situation.context
        if isinstance(context, Forgetting) and self.time is not None:
            # Keys stay alive until no event can continue their known windows.
            last = self.memory.known_until()[: len(keys)] // context.step * context.step  # start of a window
            known = last >= self.time - context.length - self.longest
            live |= (keys[:, partitions.NEXT_NUMBER] != participants.NEVER) & known
        elif self._remembers_keys:
            return np.ones(capacity, bool)
        return np.append(live, np.zeros(capacity - len(live), bool))

    def clear_slots(self, slots: npt.NDArray[np.int32]) -> None:
        """See `KeyUser`."""
        self._key_members[slots[slots < len(self._key_members)]] = -1
        if isinstance(self.query.situation.context, Forgetting):
            keys = self.memory.keys()
            keys[slots[slots < len(keys)], partitions.NEXT_NUMBER] = participants.NEVER

    def drop_oldest(self, limit: int) -> int:
        """Evict the older half of the events if partitions take more than half of `limit` bytes; return how many."""
        entries = self.memory.entries()
        each = int(self.memory.m[participants.ENTRY_SIZE]) * entries.itemsize + self.members.bytes_of_each
        dropped = entries[older_half(self.memory.m[entries + participants.EVENT_END], each, limit)]
        if len(dropped):
            partitions.remove_entries(self.memory.m, dropped)
            self._sweep_at = 0
            self._sweep()
        return len(dropped)

    def _sweep(self) -> None:
        """Release events that are in no partition when there are many."""
        if len(self.members) > self._sweep_at:
            events, live = self.memory.entries() + participants.EVENT, np.zeros(len(self.members), bool)
            live[self.memory.m[events]] = True
            known = self._key_members >= 0
            live[self._key_members[known]] = True
            numbers = self.members.keep(live)
            self.memory.m[events] = numbers[self.memory.m[events]]
            self._key_members[known] = numbers[self._key_members[known]]
            self._sweep_at = max(LEAST_EVENTS, 2 * len(self.members))

    # -- state ----------------------------------------------------------------------------------

    def small(self) -> dict[str, bytes]:
        """Return the small parts of the state as pages."""
        return {"time": json.dumps(self.time).encode(), **self.members.small()}

    def arrays(self) -> dict[str, Int64s]:
        """Return the other parts of the state as arrays."""
        return {"memory": self.memory.used(), "key_members": self._key_members, **self.members.arrays()}

    def load(self, saved: Mapping[str, bytes]) -> None:
        """Restore the state from pages."""
        pages = Pages(saved)
        self.time = json.loads(saved["time"])
        self.memory.load(pages.numbers("memory"))
        self.members.load(pages)
        self._key_members = pages.numbers("key_members")


def _boundaries(query: SituationQuery) -> list[Predicate]:
    """Return the predicates of the events that open and close partitions."""
    match query.situation.context:
        case FromUntil(opener=opener, closer=closer):
            return [IsType(opener), IsType(closer)]
        case FromFor(opener=opener):
            return [IsType(opener)]
    return []
