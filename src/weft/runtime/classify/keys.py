"""Partition keys to slots: each live key of a stream has a small number for as long as it lives.

A key is identified by two 64-bit hashes of its values; the table compares 96 bits of them beside the place of the
entry. The hashes of one integer, or of a text of up to eight bytes, are one-to-one in the value, so such keys are never
confused with each other. For longer keys, with a million live keys and a million million events, the chance that any
two different keys are confused is about a million million times 2**20 / 2**96, less than one in 10**10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.numbers import EXACT
from weft.kernels.memory import hashing, key_slots
from weft.runtime.classify.direct_keys import DirectNumbers, DirectTexts
from weft.runtime.data import blocks
from weft.runtime.data.buffers import bits_of, fixed, lengthened, text_buffers, validity_of, values_of
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.data.exact import MOST_DIGITS, digits_at, unnamed_rows

Partition = tuple[tuple[str, ...], ...]
Slots = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]
Has = npt.NDArray[np.uint8]
Dictionaries = dict[str, tuple[tuple[int, ...], pa.Array, Hashes, Hashes]]  # by attribute: addresses, texts, hashes
PAGE = 1 << key_slots.PAGE_BITS
META = "count"
_DIGITS = Context(prec=2 * MOST_DIGITS)
_LIVE_KEY = np.dtype([("slot", "<u2"), ("first", "<u8"), ("second", "<u8")])


class KeyCoder:
    """Slots of partition keys. Numbers are one key if equal in value; a text, a number and a Boolean never are."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._state = np.zeros(3, np.int64)  # slots ever used, how many of them are free, room
        self._first = np.zeros(0, np.uint64)
        self._second = np.zeros(0, np.uint64)
        self._live = np.zeros(0, np.uint8)
        self._free = np.zeros(0, np.int32)
        self._changed = np.zeros(0, np.uint8)
        self._dictionaries: Dictionaries = {}
        self._numbers, self._texts = DirectNumbers(), DirectTexts()
        self._is_single = len(partition) == 1 and len(partition[0]) == 1  # one value, of one attribute
        self._room(PAGE)

    @property
    def capacity(self) -> int:
        """The number of slots ever used: every slot is below it."""
        return int(self._state[0])

    @property
    def live(self) -> int:
        """The number of keys that have a slot."""
        return int(self._state[0] - self._state[1])

    def code(self, batch: EventBatch) -> Slots:
        """Return the slot of each event's key, or -1 for an event without one."""
        if not self.partition and len(batch) > 1:  # all have the same
            return np.repeat(self.code(blocks.slice(batch, 0, 1)), len(batch))
        column = batch.columns.get(self.partition[0][0]) if self._is_single and len(batch) else None
        found = None if column is None else self._code_directly(column)
        return self._find(*key_hashes(batch, self.partition, self._dictionaries)) if found is None else found

    def _code_directly(self, column: Column) -> Slots | None:
        """Return the slots of keys that are the values of one column, or None if they have to be hashed."""
        numbers, texts = column.numbers, column.texts
        if column.booleans is not None or (numbers is not None and texts is not None):
            return None
        if numbers is not None and not numbers.null_count and numbers.type == pa.int64():
            return self._code_wholes(values_of(numbers))
        if texts is not None and not pa.types.is_dictionary(texts.type):
            return self._texts.find(texts, self._code_texts)
        return None

    def _code_wholes(self, values: npt.NDArray[np.int64]) -> Slots:
        known = self._numbers.find(values)
        if known is None:
            return self._learn_wholes(values, len(values))
        slots, rows = known
        if len(rows):
            slots[rows] = self._learn_wholes(fixed(values[rows]), len(values))
        return slots

    def _learn_wholes(self, values: npt.NDArray[np.int64], asked: int) -> Slots:
        """Look up the slots of numbers not found directly, and add them to the direct table if it pays off."""
        has, first, second = _room_for(len(values))
        hashing.hash_wholes(values, has, first, second)
        slots = self._find(has, first, second)
        self._numbers.learn(values, slots, asked, self.capacity)
        return slots

    def _code_texts(self, texts: pa.Array) -> Slots:
        has, first, second = _room_for(len(texts))
        hashing.hash_texts(*text_buffers(texts), has, first, second)
        return self._find(has, first, second)

    def _find(self, has: Has, first: Hashes, second: Hashes) -> Slots:
        """Return the slots of keys by their hashes, new ones for new keys."""
        slots = np.empty(len(has), np.int32)
        row = 0
        while True:
            row = int(key_slots.find_keys(has, first, second, row, self._keys, slots))
            if row == len(has):
                return slots
            self._room(2 * len(self._first))

    def release(self, slots: npt.ArrayLike) -> None:
        """Release the keys of these slots, which can then be reused."""
        wanted = np.ascontiguousarray(slots, np.int32)
        if len(wanted) and int(wanted.max()) >= self.capacity:
            raise IndexError(f"no slot {int(wanted.max())}")
        self._numbers.forget()
        self._texts.forget()
        key_slots.release_keys(wanted, self._keys)

    def hashes(self, slots: npt.ArrayLike) -> Hashes:
        """Return a hash of the key of each slot, the same in every process and run, or 0 for -1."""
        places = np.asarray(slots, np.int64)
        found: Hashes = np.where(places < 0, np.uint64(0), self._first[np.maximum(places, 0)])
        return found

    @property
    def _keys(self) -> key_slots.KeyTable:
        """Return the keys and their slots in the form of the kernels."""
        own = self._table, self._first, self._second, self._live, self._free, self._changed, self._state
        return key_slots.KeyTable(*own)

    def _room(self, slots: int) -> None:
        """Reserve space for `slots` slots, in a table at most a quarter full, so that collisions are rare."""
        self._first, self._second = lengthened(self._first, slots), lengthened(self._second, slots)
        self._live, self._free = lengthened(self._live, slots), lengthened(self._free, slots)
        self._changed = lengthened(self._changed, slots // PAGE)
        self._state[2] = slots
        self._table = np.zeros(2 * 4 * slots, np.uint64)
        key_slots.place_keys(self._first, self._second, self._live, self.capacity, self._table)

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages that changed since the last snapshot, or None for a page without live keys."""
        pages: dict[str, bytes | None] = {}
        for page in np.flatnonzero(self._changed).tolist():
            slots = np.flatnonzero(self._live[page * PAGE : (page + 1) * PAGE])
            keys = np.empty(len(slots), _LIVE_KEY)
            keys["slot"] = slots
            keys["first"] = self._first[page * PAGE + slots]
            keys["second"] = self._second[page * PAGE + slots]
            pages[str(page)] = keys.tobytes() if len(slots) else None
        if pages:
            pages[META] = self.capacity.to_bytes(8, "little")
        self._changed[:] = 0
        return pages

    @classmethod
    def restore(cls, partition: Partition, pages: Mapping[str, bytes]) -> KeyCoder:
        """Restore a coder from the pages of snapshots."""
        coder = cls(partition)
        capacity = int.from_bytes(pages.get(META, b""), "little")
        room = PAGE
        while room < capacity:
            room *= 2
        coder._room(room)
        for name, data in pages.items():
            if name != META:
                keys = np.frombuffer(data, _LIVE_KEY)
                slots = int(name) * PAGE + keys["slot"].astype(np.int64)
                coder._first[slots], coder._second[slots], coder._live[slots] = keys["first"], keys["second"], 1
        free = np.flatnonzero(coder._live[:capacity] == 0)[::-1]
        coder._free[: len(free)] = free
        coder._state[:2] = capacity, len(free)
        key_slots.place_keys(coder._first, coder._second, coder._live, capacity, coder._table)
        return coder


def lane_of(
    batch: EventBatch, partition: Partition, lanes: int, own: int = 0, placed: Sequence[tuple[int, int]] = ()
) -> Slots:
    """Return the lane of each event by its key, or -1 without a key. For `own` and `placed` see `ByKey`."""
    return lanes_of(*lane_hashes(batch, partition), lanes, own, placed)


def lane_hashes(batch: EventBatch, partition: Partition) -> tuple[Has, Hashes]:
    """Return whether each event has a key, and a hash that determines its lane.

    Numbers with the same integer part share a lane: an event that a rule defines may pass a key on as an integer or as
    a float, and must stay in the lane of the events it consists of.
    """
    names = {name for part in partition for name in part}
    coarse = {name: _cut_off(column) for name, column in batch.columns.items() if name in names}
    has, first, _ = key_hashes(replace(batch, columns=coarse), partition)
    return has, first


def lanes_of(has: Has, first: Hashes, lanes: int, own: int, placed: Sequence[tuple[int, int]]) -> Slots:
    """Return the lane of each hash: its assigned lane, or a bucket after the first `own` lanes; -1 without a key."""
    found = np.empty(len(has), np.int32)
    hashing.lanes_of_hashes(has, first, lanes - own, found)
    if own:
        found[found >= 0] += own
    for key, lane in placed:
        found[(first == np.uint64(key)) & (has != 0)] = lane
    return found


def _cut_off(column: Column) -> Column:
    """Truncate the numbers of a column to the integer part of a float."""
    numbers = column.numbers
    if numbers is None or not len(numbers):
        return column
    values = values_of(numbers)
    if values.dtype == np.int64 and int(values.min()) >= -EXACT and int(values.max()) <= EXACT:
        return column
    whole = np.trunc(values.astype(np.float64)) + 0.0  # there is one zero only
    missing = numbers.is_null().to_numpy(zero_copy_only=False)
    return replace(column, numbers=pa.array(whole, mask=missing), exact=None)


def key_hashes(
    batch: EventBatch, partition: Partition, dictionaries: Dictionaries | None = None
) -> tuple[Has, Hashes, Hashes]:
    """Return whether each event has a key, and its two hashes. The empty key, which all have, hashes to 0.

    `dictionaries` caches the hashes of dictionaries that several batches share.
    """
    length = len(batch)
    if not partition:
        return np.ones(length, np.uint8), np.zeros(length, np.uint64), np.zeros(length, np.uint64)
    key: tuple[Has, Hashes, Hashes] | None = None
    for part in partition:
        hashes = np.zeros(length, np.uint8), np.empty(length, np.uint64), np.empty(length, np.uint64)
        for name in part:
            column = batch.columns.get(name)
            if column is not None:
                _hash_column(name, column, {} if dictionaries is None else dictionaries, *hashes)
        if key is None:
            key = hashes
        else:
            hashing.join_hashes(*key, *hashes)
    assert key is not None
    return key


def _room_for(count: int) -> tuple[Has, Hashes, Hashes]:
    """Allocate arrays for the hashes of `count` keys, all present."""
    return np.ones(count, np.uint8), np.empty(count, np.uint64), np.empty(count, np.uint64)


def _hash_column(
    name: str, column: Column, dictionaries: Dictionaries, has: Has, first: Hashes, second: Hashes
) -> None:
    """Hash the values of a column for the events that have no value yet."""
    numbers, texts, flags = column.numbers, column.texts, column.booleans
    if numbers is not None:
        values = values_of(numbers)
        wanted = _wanted(numbers, has)
        if values.dtype == np.int64:
            hashing.hash_wholes(values, wanted, first, second)
        else:
            hashing.hash_floats(values, values.view(np.uint64), wanted, first, second)
            _hash_digits(column, wanted, first, second)
    if texts is not None:
        wanted = _wanted(texts, has)
        if pa.types.is_dictionary(texts.type) and len(texts.dictionary):
            first_of, second_of = _hash_dictionary(name, texts.dictionary, dictionaries)
            hashing.hash_indices(values_of(texts.indices), first_of, second_of, wanted, first, second)
        elif not pa.types.is_dictionary(texts.type):
            hashing.hash_texts(*text_buffers(texts), wanted, first, second)
    if flags is not None:
        hashing.hash_booleans(bits_of(flags), flags.offset, _wanted(flags, has), first, second)


def _hash_digits(column: Column, wanted: Has, first: Hashes, second: Hashes) -> None:
    """Hash the wanted numbers that no float represents: integers directly, decimals by their digits."""
    rows = unnamed_rows(column)
    rows = rows[wanted[rows] != 0]
    if not len(rows):
        return
    numbers = digits_at(column, rows)
    fits = np.array([number == int(number) and -(2**63) <= number < 2**63 for number in numbers], bool)
    wholes = np.array([int(number) if fit else 0 for number, fit in zip(numbers, fits, strict=True)], np.int64)
    texts = pa.array([f"{Decimal(number).normalize(_DIGITS):f}" for number in numbers], pa.string())
    one, other = np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint64)
    hashing.hash_texts(*text_buffers(texts), np.ones(len(rows), np.uint8), one, other)
    one, other = ~one, ~other  # a text of these digits is another key
    hashing.hash_wholes(fixed(wholes), fits.view(np.uint8), one, other)
    first[rows], second[rows] = one, other


def _wanted(array: pa.Array, has: Has) -> Has:
    """Mark the events that have a value here and had none before."""
    wanted: Has
    if array.null_count:
        wanted = np.empty(len(has), np.uint8)
        validity = array.indices if pa.types.is_dictionary(array.type) else array
        hashing.mark_wanted(validity_of(validity), validity.offset, has, wanted)
    else:
        wanted = 1 - has
        has[:] = 1
    return wanted


def _hash_dictionary(name: str, texts: pa.Array, dictionaries: Dictionaries) -> tuple[Hashes, Hashes]:
    """Return the hashes of a dictionary, computed once while batches share it."""
    offsets, data = text_buffers(texts)
    address = (offsets.ctypes.data, len(offsets), data.ctypes.data, len(data))
    if name not in dictionaries or dictionaries[name][0] != address:
        first, second = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
        hashing.hash_texts(offsets, data, np.ones(len(texts), np.uint8), first, second)
        dictionaries[name] = address, texts, first, second  # with the texts, so that their addresses stay their own
    return dictionaries[name][2:]
