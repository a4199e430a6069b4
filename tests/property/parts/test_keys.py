"""Slots of partition keys against a Python dict of the keys themselves."""

from __future__ import annotations

from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import given, settings

from weft.kernels.memory import key_slots
from weft.runtime.classify import direct_keys
from weft.runtime.classify.keys import KeyCoder, key_hashes, lane_of
from weft.runtime.data.buffers import fixed
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.reading.kinds import column_of_values

TEXTS = ["", "a", "b", "1", "abcdefg", "abcdefg\x0f", "abcdefgh", "a text of many bytes", "a text of many bytez", "é"]
VALUES = st.one_of(
    st.integers(-2, 3),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 2.0**62, float("inf"), float("nan")]),
    st.sampled_from([2**62, 2**53 + 1, -(2**63)]),
    st.sampled_from(TEXTS),
    st.booleans(),
    st.none(),
)
EVENTS = st.fixed_dictionaries({}, optional={"a": VALUES, "b": VALUES})
PARTITIONS = st.sampled_from([(("a",),), (("a", "b"),), (("a",), ("b",)), (("b", "a"), ("a",)), ()])


def batch_of(events, encode=False):
    columns = {}
    for name in ("a", "b"):
        column = column_of_values([event.get(name) for event in events])
        encoded = column.texts.dictionary_encode() if encode and column.texts is not None else column.texts
        columns[name] = Column(column.numbers, encoded, column.booleans)
    times = np.arange(len(events))
    return EventBatch(pa.nulls(len(events), pa.string()), times, times, times, columns)


def key_of(event, partition):
    parts = []
    for part in partition:
        present = [event.get(name) for name in part if event.get(name) is not None and event[name] == event[name]]
        if not present:
            return None
        parts.append((type(present[0]) if isinstance(present[0], (bool, str)) else float, present[0]))
    return tuple(parts)


@patch.object(direct_keys, "AT_ONCE", 2)
@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(EVENTS, max_size=10), min_size=1, max_size=4), PARTITIONS, st.booleans(), st.randoms())
def test_slots_are_keys(batches, partition, encode, random):
    coder = KeyCoder(partition)
    slots_of: dict = {}
    saved: dict = {}
    for events in batches:
        batch = batch_of(events, encode)
        found = coder.code(batch)
        lanes = lane_of(batch, partition, 7)
        for event, slot, lane in zip(events, found.tolist(), lanes.tolist(), strict=True):
            key = key_of(rounded(event, batch), partition)
            if key is None:
                assert slot == lane == -1
            else:
                assert slots_of.setdefault(key, (slot, lane)) == (slot, lane)
        assert len({slot for slot, _ in slots_of.values()}) == len(slots_of) == coder.live
        for key in [key for key in slots_of if random.random() < 0.3]:
            coder.release([slots_of.pop(key)[0]])
        for name, page in coder.snapshot().items():
            saved.pop(name, None) if page is None else saved.update({name: page})
        if random.random() < 0.5:
            coder = KeyCoder.restore(partition, saved)
    assert coder.live == len(slots_of)


def rounded(event, batch):
    """The event as its column holds it: integers that share an attribute with floats are floats."""
    kinds = {name: batch.columns[name].numbers for name in ("a", "b")}
    return {
        name: float(value)
        if isinstance(value, int)
        and not isinstance(value, bool)
        and kinds[name] is not None
        and pa.types.is_float64(kinds[name].type)
        else value
        for name, value in event.items()
    }


def test_many_keys_come_and_go():
    coder = KeyCoder((("a",),))
    known: dict[int, int] = {}
    generator = np.random.default_rng(5)
    for _ in range(12):
        keys = generator.integers(0, 30_000, 9_000)
        slots = coder.code(batch_of([{"a": int(key)} for key in keys]))
        for key, slot in zip(keys.tolist(), slots.tolist(), strict=True):
            assert known.setdefault(key, slot) == slot
        gone = generator.choice(np.array(list(known)), len(known) // 2, replace=False).tolist()
        coder.release([known.pop(key) for key in gone])
        assert coder.live == len(known)
    assert coder.capacity <= 30_000
    restored = KeyCoder.restore((("a",),), {name: page for name, page in coder.snapshot().items() if page})
    same = batch_of([{"a": key} for key in known])
    assert restored.code(same).tolist() == list(known.values())
    assert restored.hashes(list(known.values())).tolist() == coder.hashes(list(known.values())).tolist()


WHOLES = st.one_of(
    st.integers(-3, 12),
    st.integers(90, 130),
    st.integers(10**6, 10**6 + 9),
    st.sampled_from([-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.lists(WHOLES, min_size=1, max_size=12), st.booleans()), min_size=1, max_size=12))
def test_numbers_are_found_directly_as_they_are_by_hashes(batches):
    with patch.object(direct_keys, "FEW_PLACES", 20):
        direct, slots_of = direct_keys.DirectNumbers(), dict[int, int]()
        for numbers, is_forgotten in batches:
            values = fixed(np.array(numbers))
            slots = np.array([slots_of.setdefault(number, len(slots_of)) for number in numbers], np.int32)
            known = direct.find(values)
            rows = np.arange(len(values))
            if known is not None:
                found, rows = known
                assert found[rows].tolist() == [-1] * len(rows)
                found[rows] = slots[rows]
                assert found.tolist() == slots.tolist()
            if len(rows):
                direct.learn(values[rows], slots[rows], len(values), keys=1)
            if is_forgotten:
                direct.forget()
                slots_of = {number: slot + 1000 for number, slot in slots_of.items()}


def test_numbers_that_come_again_need_no_hashes():
    coder = KeyCoder((("a",),))
    batch = batch_of([{"a": 1000 + number % 70} for number in range(100)])
    slots = coder.code(batch).tolist()
    with patch.object(key_slots, "find_keys", side_effect=AssertionError("hashed")):
        assert coder.code(batch).tolist() == slots
    more = batch_of([{"a": 1000 + number % 140} for number in range(200)])
    assert coder.code(more).tolist() == [number % 140 for number in range(200)]
    coder.release([3])
    assert coder.code(batch_of([{"a": 5000}, {"a": 1004}])).tolist() == [3, 4]
    assert coder.code(batch_of([{"a": 1003}])).tolist() == [140]


@patch.object(direct_keys, "AT_ONCE", 1)
def test_texts_that_come_again_need_no_hashes_while_they_are_few():
    coder = KeyCoder((("a",),))
    batch = batch_of([{"a": f"a name, the {number % 70}th"} if number % 9 else {} for number in range(100)])
    slots = coder.code(batch).tolist()
    assert slots == KeyCoder((("a",),))._find(*key_hashes(batch, (("a",),))).tolist()
    with patch.object(key_slots, "find_keys", side_effect=AssertionError("hashed")):
        assert coder.code(batch).tolist() == slots
    coder.release([slots[1]])
    assert coder.code(batch_of([{"a": "new"}])).tolist() == [slots[1]]
    again = coder.code(batch).tolist()
    assert again[2:70] == slots[2:70]
    with patch.object(direct_keys, "MOST_TEXTS", 71):
        coder.code(batch_of([{"a": "another"}, {"a": "more"}]))
    assert coder.code(batch).tolist() == again


def test_hashes_do_not_change():
    coder = KeyCoder((("a",),))
    slots = coder.code(batch_of([{"a": 1}, {"a": "GOOG"}, {"a": True}, {"a": 0.5}, {}]))
    assert [f"{value:016x}" for value in coder.hashes(slots).tolist()] == HASHES


HASHES = ["519583b4ebf579f6", "9f9f4a89c9618d74", "66f8127701ca4815", "ec9afa7ea237fa57", "0000000000000000"]
