"""`WITHIN n [x]`: one huge value does not silence a query, and the engine agrees with meaning in any batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

import weft

HUGE = (10**6, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 1e300, float("inf"), 10**25, 7.5)
ENGINES: tuple[Literal["local", "meaning"], ...] = ("local", "meaning")
QUERIES = (
    "SELECT * FROM S WHERE A ; B WITHIN 3 [x]",
    "SELECT * FROM S WHERE A ; A+ ; B WITHIN 0 [x]",
    "SELECT NEXT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 2.5 [x] CONSUME BY ANY",
    "SELECT * FROM S WHERE A ; B WITHIN 3 [x] JUMP ANY",
    "SELECT * FROM S WHERE A ; B WITHIN 3 [x] JUMP 8.5",
    "SELECT * FROM S WHERE A ; B WITHIN 9300000000000000000 [x]",
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


def test_the_query_says_what_a_jump_is() -> None:
    values = [1, 2, 3, 4, 10**15, *range(5, 12)]
    events = [{"type": "AB"[at % 2], "ts": at, "x": x} for at, x in enumerate(values)]
    for jump, count in (("", 6), (" JUMP 0", 6), (" JUMP 1000000000000000000", 3), (" JUMP ANY", 3)):
        assert [_count(events, QUERIES[0] + jump, engine) for engine in ENGINES] == [count, count]


def test_a_window_may_be_longer_than_any_whole_number_of_64_bits() -> None:
    events = [{"type": "AB"[at], "ts": at, "x": x} for at, x in enumerate((-5, 2**63 - 1))]
    for amount in (2**63 - 1, 2**63 + 3, 2**63 + 4, 10**30):
        query = f"SELECT * FROM S WHERE A ; B WITHIN {amount} [x]"
        fits = 2**63 - 1 - amount <= -5
        assert [_count(events, query, engine) for engine in ENGINES] == [fits, fits]


def _count(events: list[dict[str, Any]], query: str, engine: Literal["local", "meaning"]) -> int:
    return sum(1 for _ in weft.detect(events, query, engine=engine))
