"""The rows that lanes of slices see, found for all at once, are those that each lane finds by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.plan.partitioning.by_slice import BySlice
from weft.runtime.lanes.slices import rows_seen, seen

SMALL = st.integers(0, 30)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-100, 300)).map(sorted), SMALL, SMALL, st.integers(1, 20), st.integers(-5, 5), SMALL)
def test_all_lanes_at_once(values: list[int], back: int, ahead: int, size: int, origin: int, lanes: int) -> None:
    split = BySlice("a test", "time", back, ahead, size=size, origin=origin)
    ends = np.array(values, np.int64)
    for share, rows in enumerate(rows_seen(ends, split, lanes + 1)):
        assert rows.tolist() == np.flatnonzero(seen(ends, split, share, lanes + 1)).tolist()
