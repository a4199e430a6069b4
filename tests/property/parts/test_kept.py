"""Buffered events are found by position after any release, save and restore."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.runtime.data import blocks
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.store import event_buffer as kept
from weft.runtime.store import pages
from weft.runtime.store.event_buffer import LEAST, EventBuffer
from weft.runtime.store.pages import Paging

STEPS = st.lists(
    st.one_of(
        st.lists(st.booleans(), max_size=6).map(lambda chosen: ("add", chosen)),
        st.one_of(st.none(), st.integers(0, 12)).map(lambda back: ("forget", back)),
        st.just(("save", None)),
        st.just(("load", None)),
    ),
    max_size=16,
)


def batch_of(first: int, count: int, *, rows: bool) -> EventBatch:
    positions = np.arange(first, first + count)
    values = pa.array(positions * 10)
    if rows:
        return EventBatch(pa.nulls(count), positions, positions, positions, rows=pa.record_batch({"x": values}))
    # A column that is there in some batches only.
    columns = {"x": Column(numbers=values)} if first % 3 else {}
    return EventBatch(pa.nulls(count), positions, positions, positions, columns)


@settings(max_examples=100, deadline=None)
@given(STEPS, st.booleans())
def test_what_is_kept_is_found_by_position(steps: list[tuple[str, object]], rows: bool) -> None:
    with patch.object(kept, "LEAST", 3), patch.object(pages, "ITEMS", 2):
        found, paging, saved = EventBuffer(None if rows else ["x"]), Paging(), dict[str, bytes]()
        meant: dict[int, int | None] = {}
        at = 0
        for step, given_ in steps:
            if step == "add":
                assert isinstance(given_, list)
                batch = batch_of(at, len(given_), rows=rows)
                chosen = np.flatnonzero(given_)
                found.add(batch, chosen)
                known = rows or "x" in batch.columns
                meant |= {at + place: (at + place) * 10 if known else None for place in chosen.tolist()}
                at += len(given_)
            elif step == "forget":
                oldest = None if given_ is None else at - int(str(given_))
                found.forget(lambda oldest=oldest: oldest)  # type: ignore[misc]
                meant = {position: x for position, x in meant.items() if oldest is not None and position >= oldest}
            else:
                changes = paging.changes({}, growing=[found.growing("kept")])
                saved = {name: page for name, page in (saved | changes).items() if page is not None}
            if step == "load":
                found, paging = EventBuffer(found.attributes), Paging()
                found.load(saved, "kept")
                paging.load(saved, [found.growing("kept")])
            check(found, meant, rows=rows)


def check(found: EventBuffer, meant: dict[int, int | None], *, rows: bool) -> None:
    assert len(found) >= len(meant)  # others may be there, too
    if not meant:
        return
    positions = np.array([*reversed(meant)], np.int64)
    if rows:
        assert found.shown(positions).at(positions).column("x").to_pylist() == [meant[p] for p in positions.tolist()]
        return
    column = found.column("x", np.append(positions, -1))
    values = [None] * (len(positions) + 1) if column.numbers is None else column.numbers.to_pylist()
    assert values == [*(meant[p] for p in positions.tolist()), None]


def test_what_is_given_up_is_not_picked_out_of_its_batch() -> None:
    found = EventBuffer()
    for first in range(0, 3 * LEAST, LEAST):
        found.add(batch_of(first, LEAST, rows=True), np.arange(1, LEAST))
    with patch.object(blocks, "take", side_effect=AssertionError("picked")):
        found.forget(lambda: 2 * LEAST)
    assert len(found) == LEAST - 1
    check(found, {3 * LEAST - 1: 10 * (3 * LEAST - 1)}, rows=True)
