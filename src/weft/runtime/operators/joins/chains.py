"""Keyed chain operator: it reads events of a batch directly, and adds rows only for its matches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from weft.algebra.analysis.spans import least
from weft.kernels.events import stored
from weft.kernels.joins import chain, joining
from weft.runtime.classify.classifier import Classifier, Predicates
from weft.runtime.classify.layer_keys import Keys
from weft.runtime.data.buffers import fixed, lengthened, with_room
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.operators.joins.operators import BEGINNING, NOTHING, Build, JoinNode, Running

Mask = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
INTERRUPT_CHECK_EVERY = 1 << 22  # visited entries between two checks for Ctrl-C
MUCH = 0.5  # share of entries in use above which they are not compacted


class ChainOperator(JoinNode):
    """Keyed chain. For each batch call `advance_keys`, then `renumber_kept` when the kept events have numbers."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        found = build.graph.nodes[number].chain
        assert found is not None
        self.partition = tuple((name,) for name in found.key)
        self.predicates = found.predicates
        withins = [step.within for step in found.steps]
        worths = [least(build.spans[number], *withins[place:]) for place in range(len(withins))]
        limits = [limit for pair in zip(withins, worths, strict=True) for limit in pair]
        self.steps = np.array([-1 if limit is None else limit for limit in limits], np.int64)
        self.waits = len(found.steps) - 1
        self.width = chain.EVENTS + self.waits
        self.state = np.zeros(chain.CONTROL, np.int64)
        self.state[chain.STAMP] = 1
        self.is_counting = False
        self.heads: Int64s = np.zeros(0, np.int64)  # for each key and step, the first entry
        self.entries: Int64s = np.empty(64 * self.width, np.int64)
        self._of_letters: Int64s = NOTHING
        self._found: Int64s = np.empty(64 * (self.waits + 1), np.int64)

    @property
    def waiting(self) -> int:
        """The number of partial chains."""
        return int(self.state[chain.USED] - self.state[chain.SPARE])

    def read(self, predicates: Predicates) -> None:
        """Register the predicates with the shared classifier."""
        self._classifier = Classifier([self.predicates], predicates)
        self._of_letters = NOTHING

    def use(self, keys: Keys) -> None:
        """Register with the shared key coding of the layer."""
        self._keys = keys.use(self.partition, self)

    def letters_and_keys(self, batch: EventBatch) -> tuple[Int32s, Int32s]:
        """Return the letter and the key slot of each event."""
        (letters,) = self._classifier.letters(batch)
        for letter in range(len(self._of_letters) // chain.LETTER, self._classifier.letter_count(0)):
            self._of_letters = np.append(self._of_letters, self._letter_entry(self._classifier.truths(0, letter)))
        slots = self._keys.code_equal(batch)
        if len(self.heads) < self._keys.capacity * self.waits:
            self.heads = lengthened(self.heads, 2 * self._keys.capacity * self.waits)
        return letters, slots

    def _letter_entry(self, truths: Sequence[bool]) -> Int64s:
        """Return what the kernel knows of a letter.

        These are its truths as bits, or 0 if the letter is irrelevant, and the first and the last step that it fits.
        """
        bits = sum(1 << place for place, truth in enumerate(truths) if truth)
        of_use = (1 << (self.waits + 1)) - 1 | 1 << (2 * self.waits + 2)
        taking = [step for step in range(1, self.waits + 1) if truths[step]] or [1, 0]
        return np.array([bits if bits & of_use else 0, taking[0], taking[-1]], np.int64)

    def advance_keys(self, batch: EventBatch, letters: Int32s, slots: Int32s, first: int) -> Mask:
        """Process events and return which are kept; these are numbered from `first` on, provisionally."""
        at, state, kept = 0, self.state, np.zeros(len(batch), bool)
        # Space for all matches that may end with one event, so that the kernel need not count them before each.
        waiting = int(state[chain.USED] - state[chain.SPARE])
        self._found = with_room(self._found, 0, waiting * (self.waits + 1))
        events = chain.KeyedEvents(letters, slots, fixed(batch.starts), fixed(batch.ends))
        while True:
            partial = chain.PartialMatches(self.heads, self.entries, state)
            of_letters, most = self._of_letters, INTERRUPT_CHECK_EVERY
            at = chain.follow_keys(self.steps, of_letters, events, at, first, partial, kept, self._found, most)
            if at == len(batch):
                return kept
            if at < 0:
                at = ~at
                continue
            most = self.waiting + 1  # entries, or matches, that one event can add: only full arrays grow
            self.entries = with_room(self.entries, int(state[chain.USED]) * self.width, most * self.width)
            size = self.waits + 1
            self._found = with_room(self._found, int(state[chain.OUT]) * size, most * size)

    def renumber_kept(self, first: int, numbers: Int64s) -> None:
        """Replace the provisional numbers of the kept events, from `first` on, by their final ones."""
        chain.number(self.used().ravel(), self.width, chain.EVENTS, first, numbers)
        chain.number(self.matches().ravel(), self.waits + 1, 0, first, numbers)

    def matches(self) -> Int64s:
        """Return the events of the matches that have no rows yet, one match per row."""
        return self._found[: self.state[chain.OUT] * (self.waits + 1)].reshape(-1, self.waits + 1)

    def advance(self, run: Running) -> None:
        """Add rows for the matches; matches that are only counted get none."""
        found, row_store = self.matches(), run.row_store
        if self.is_counting and len(found):
            ended = int(np.searchsorted(row_store.event_times(found[:, -1], stored.EVENT_END), run.clock))
            self.counted += ended
            self.emitted += ended
            found = found[ended:]
            self.state[chain.OUT] = 0
        if len(found):
            begin = int(self.control[joining.OUT])
            self.emit(row_store.add_matches(found, self.spec))
            self.state[chain.OUT] = 0
            self.sort_new(row_store, begin)
        self.watermark = run.clock

    # -- expiry ---------------------------------------------------------------------------------

    def waiting_since(self) -> Int64s:
        """Return for each partial chain the time from which its age counts."""
        entries = self.used()
        found: Int64s = entries[entries[:, chain.EVENTS] != chain.NO_EVENT, chain.SINCE]
        return found

    def sweep(self, clock: int, live: Mask, floor: int = BEGINNING) -> None:
        """Remove expired partial chains, and those older than the floor; mark the events of the others as live."""
        kept = chain.mark(self.steps, clock, floor, self.entries, self.state, live)
        # Entries that were evicted before they expired must not be visited again.
        if kept < MUCH * self.state[chain.USED] or floor > BEGINNING:
            fresh = np.empty(max(64, 2 * kept) * self.width, np.int64)
            chain.repack(self.heads, self.waits, self.entries, self.state, fresh)
            self.entries = fresh

    def renumber(self, places: Int64s) -> None:
        """Replace the numbers of events after they moved."""
        chain.number(self.used().ravel(), self.width, chain.EVENTS, 0, places)

    def used(self) -> Int64s:
        """Return the entries, one per row."""
        return self.entries[: self.state[chain.USED] * self.width].reshape(-1, self.width)

    def live_slots(self, capacity: int) -> Mask:
        """See `KeyUser`."""
        live = np.zeros(capacity, bool)
        known = self.heads.reshape(-1, self.waits)[:capacity]
        live[: len(known)] = reduce(np.bitwise_or, known.T) != 0
        return live

    def clear_slots(self, slots: Int32s) -> None:
        """See `KeyUser`: free slots have no partial chains."""
