"""Identities of events do not depend on when earlier events are given up, nor on restarts."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.runtime.data.events import Column, EventBatch
from weft.runtime.identity.chunks import Attributes
from weft.runtime.identity.events import EventIdentities
from weft.runtime.store import pages

STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=40)  # of time; values of x
BY_X = Attributes(("x",), ("x",))


def batch_of(times: list[int], values: list[int], first: int) -> EventBatch:
    ends, numbers = np.array(times, np.int64), pa.array(values, pa.int64())
    types = pa.array(["A"] * len(times))
    positions = np.arange(first, first + len(times))
    return EventBatch(types, ends, ends, positions, {"x": Column(numbers=numbers)})


def identities() -> EventIdentities:
    found = EventIdentities()
    found.want([BY_X])
    return found


@patch.object(pages, "ITEMS", 4)
@settings(max_examples=60, deadline=None)
@given(STEPS, st.data())
def test_events_that_stay_are_identified_as_if_all_had_stayed(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    times, values = np.cumsum([step for step, _ in steps]).tolist(), [value for _, value in steps]
    whole, part = identities(), identities()
    whole.add(batch_of(times, values, 0))
    expected = whole.of(np.arange(len(times)), BY_X)
    saved: dict[str, bytes | None] = {}
    begin = first = 0
    while begin < len(times):
        end = data.draw(st.integers(begin + 1, len(times)), "pushed")
        part.add(batch_of(times[begin:end], values[begin:end], begin))
        begin, first = end, data.draw(st.integers(first, end - 1), "oldest")
        part.forget(partial(int, first), least=0)
        assert len(part) <= end
        saved |= part.snapshot()
        if data.draw(st.booleans(), "restarted"):
            part = identities()
            part.load({name: page for name, page in saved.items() if page is not None})
        found = part.of(np.arange(first, end), BY_X)
        assert [own.tolist() for own in found] == [own[first:end].tolist() for own in expected]
