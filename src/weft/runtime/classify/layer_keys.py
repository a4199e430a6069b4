"""Keys shared by the operators of a layer, each coded once per batch.

A key keeps its slot while one of its users has state for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from weft.runtime.classify.keys import KeyCoder, Partition, Slots
from weft.runtime.data.buffers import values_of
from weft.runtime.data.events import EventBatch
from weft.runtime.store.pages import pages_below, pages_under

Mask = npt.NDArray[np.bool_]
LEAST_SLOTS = 1 << 12  # fewer are not worth a sweep
MUCH = 4  # times as many keys as are needed: a key that comes again is best found where it was


class KeyUser(Protocol):
    """Protocol of operators that have state for each key."""

    def live_slots(self, capacity: int) -> Mask:
        """Return a mask of the slots that have state."""

    def clear_slots(self, slots: Slots) -> None:
        """Clear these slots, so that other keys can have them."""


class SharedKey:
    """The slots of one key for all its users."""

    def __init__(self, partition: Partition) -> None:
        self.coder = KeyCoder(partition)
        self.users: list[KeyUser] = []
        self._batch: EventBatch | None = None
        self._slots: Slots = np.empty(0, np.int32)
        self._sweep_at = LEAST_SLOTS

    @property
    def capacity(self) -> int:
        """An upper bound of the slots."""
        return self.coder.capacity

    def code(self, batch: EventBatch) -> Slots:
        """Return the slot of each event's key, or -1 for an event without one, as a read-only array."""
        if batch is not self._batch:
            self._batch, self._slots = batch, self.coder.code(batch)
        return self._slots

    def code_equal(self, batch: EventBatch) -> Slots:
        """Like `code` where keys are compared by `=`: NaN equals nothing, so it is no key."""
        slots = self.code(batch)
        for (name,) in self.coder.partition:
            numbers = batch.columns[name].numbers if name in batch.columns else None
            if numbers is not None and len(numbers) and (values := values_of(numbers)).dtype == np.float64:
                slots = np.where(np.isnan(values) & (slots >= 0), np.int32(-1), slots)
        return slots

    def sweep(self) -> None:
        """Release the keys without state, when most have none."""
        if self.coder.live <= self._sweep_at:
            return
        live = np.zeros(self.capacity, bool)
        for user in self.users:
            live |= user.live_slots(self.capacity)
        self._sweep_at = max(LEAST_SLOTS, MUCH * int(live.sum()))
        if self.coder.live <= self._sweep_at:
            return
        dead = np.flatnonzero(~live).astype(np.int32)
        for user in self.users:
            user.clear_slots(dead)
        self.coder.release(dead)
        self._batch = None


class Keys:
    """The keys of a layer."""

    def __init__(self) -> None:
        self._shared: dict[Partition, SharedKey] = {}

    def use(self, partition: Partition, user: KeyUser) -> SharedKey:
        """Add a user to the key with these parts, and return the key."""
        shared = self._shared.setdefault(partition, SharedKey(partition))
        shared.users.append(user)
        return shared

    def leave(self, user: KeyUser) -> None:
        """Remove a user."""
        for shared in self._shared.values():
            shared.users = [other for other in shared.users if other is not user]

    def sweep(self) -> None:
        """Release the keys without state, when there are many."""
        for shared in self._shared.values():
            shared.sweep()

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages that changed since the last snapshot, or None for a deleted page."""
        pages: dict[str, bytes | None] = {}
        for number, shared in enumerate(self._shared.values()):
            pages |= pages_under(f"{number}/", shared.coder.snapshot())
        return pages

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the keys from the pages of snapshots."""
        for number, (partition, shared) in enumerate(self._shared.items()):
            shared.coder = KeyCoder.restore(partition, pages_below(f"{number}/", pages))
