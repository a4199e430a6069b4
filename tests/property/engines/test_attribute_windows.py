"""`WITHIN n [x]`: one huge value does not silence a query, and the engine agrees with meaning in any batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import weft

HUGE = (10**6, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 1e300, float("inf"), 10**25, 7.5)
QUERIES = (
    "SELECT * FROM S WHERE A ; B WITHIN 3 [x]",
    "SELECT * FROM S WHERE A ; A+ ; B WITHIN 0 [x]",
    "SELECT NEXT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 2.5 [x] CONSUME BY ANY",
)


@st.composite
def streams(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Values that rise slowly, fall now and then, and are wrong now and then."""
    value, events = 0, []
    for ts in range(draw(st.integers(1, 24))):
        value += draw(st.sampled_from([0, 1, 1, 2, 9, -1, -3]))
        x = draw(st.sampled_from([value, value, value, *draw(st.sampled_from([HUGE, (value,)]))]))
        event = {"type": draw(st.sampled_from("AB")), "ts": ts, "x": x, "k": draw(st.sampled_from("uv"))}
        events.append({name: given for name, given in event.items() if name != "x" or draw(st.integers(0, 9))})
    return events


@given(streams(), st.sampled_from(QUERIES), st.lists(st.integers(1, 5), min_size=24, max_size=24), st.integers(0, 24))
@settings(max_examples=75, deadline=None)
def test_the_engine_agrees_with_meaning(
    events: list[dict[str, Any]], query: str, sizes: Sequence[int], saved_at: int
) -> None:
    wanted = sorted(match.id for match in weft.detect(events, query, engine="meaning"))
    assert sorted(match.id for match in weft.detect(events, query)) == wanted
    running, found, done = weft.live(query), [], 0
    for size in sizes:
        if done <= saved_at < done + size:
            with TemporaryDirectory() as folder:
                running.save(Path(folder) / "saved")
                running = weft.live.load(Path(folder) / "saved")  # type: ignore[attr-defined]
        found += [match.id for match in running.push(events[done : done + size])]
        done += size
    found += [match.id for match in running.finish()]
    assert sorted(found) == wanted


def test_a_query_goes_on_after_one_huge_value() -> None:
    values = [1, 2, 3, 4, 10**15, *range(5, 12)]
    events = [{"type": "AB"[at % 2], "ts": at, "x": x} for at, x in enumerate(values)]
    found = [match.positions for match in weft.detect(events, QUERIES[0])]
    assert found == [(0, 1), (0, 3), (2, 3), (8, 9), (8, 11), (10, 11)]  # 5 and 6 were taken to be late


def test_two_large_values_are_believed() -> None:
    values = [1, 2, 10**15, 10**15 + 1, 3, 4, 5, 6, 7, 8]
    events = [{"type": "AB"[at % 2], "ts": at, "x": x} for at, x in enumerate(values)]
    assert [match.positions for match in weft.detect(events, QUERIES[0])] == [(0, 1), (2, 3)]
