"""The local run: match order holds over the borders of batches, and counters say what happened."""

from __future__ import annotations

import pytest

import weft
from weft.plan.planner import plan
from weft.runtime.data.matches import PlainMatch, to_batch
from weft.runtime.local import LocalRun, settle
from weft.runtime.reading.order import read_events
from weft.runtime.writing.match_rows import rows_to_matches

# Position 2 and 3 are at one time: what ends at 3 may start earlier than what ends at 2, and then comes first.
TIES = [
    {"type": "A", "ts": 1, "k": 1},
    {"type": "A", "ts": 2, "k": 2},
    {"type": "B", "ts": 5, "k": 2},
    {"type": "B", "ts": 5, "k": 1},
    {"type": "A", "ts": 5, "k": 3},
    {"type": "B", "ts": 6, "k": 3},
]
SAME_KEY = "SELECT * WHERE A AS a; B AS b FILTER a[k] = b[k] WITHIN 10 EVENTS"


def run(batch_size: int) -> LocalRun:
    chosen = plan(weft.compile(SAME_KEY))
    return LocalRun(chosen, read_events(TIES, batch_size=batch_size, columns=chosen.columns))


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 100])
def test_matches_of_one_time_are_ordered_over_batches(batch_size: int) -> None:
    matches = [match for rows in run(batch_size).rows() for match in rows_to_matches(rows)]
    assert [match.positions for match in matches] == [(0, 3), (1, 2), (4, 5)]


@pytest.mark.parametrize("batch_size", [1, 100])
def test_counts_and_counters(batch_size: int) -> None:
    counting = run(batch_size)
    assert counting.counts() == {"q": 3}
    assert counting.counters["events"] == 6
    assert counting.counters["matches"] == 3
    matching = run(batch_size)
    assert sum(len(rows) for rows in matching.rows()) == 3
    assert matching.counters["matches"] == 3


def test_what_ends_at_the_last_time_is_held_back() -> None:
    batch = to_batch("q", [PlainMatch(0, end, 0, end, (end,), {"x": (end,)}, {}) for end in (3, 4, 4)])
    ready, held = settle([batch], 4)
    assert [len(part) for part in ready] == [1]
    assert [len(part) for part in held] == [2]
    assert settle([batch], 9)[1] == []
