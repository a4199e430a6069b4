"""One event in the far future: time does not follow it, in live programs, live sources and lanes on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some

import weft
from weft.runtime.reading.fronts import Front, clusters_of, reach

HOUR = 3_600_000
DAY = 24 * HOUR
YEAR_2020, YEAR_2025 = 1_577_836_800_000, 1_735_689_600_000
PAIRS = "SELECT * FROM S WHERE A ; B WITHIN 1 EVENTS"
LATER = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[n] = b[n] WITHIN 3 HOURS"


def _events(count: int, first: int = YEAR_2020) -> list[dict[str, object]]:
    return [{"type": "AB"[n % 2], "ts": first + n * 1000, "n": n // 2} for n in range(count)]


def _front(*batches: list[int], jump: int = 10, agree: int = 2) -> tuple[int | None, list[int]]:
    front = Front(agree=agree)
    for batch in batches:
        front.take(np.array(batch, np.int64), jump)
    return front.time, front.doubted


@pytest.mark.parametrize(
    ("batches", "time"),
    [
        ([[1, 2, 3]], 3),
        ([[1, 2], [500], [4]], 4),  # one event ahead moves nothing
        ([[500], [1], [2]], 2),  # also as the first of all
        ([[500, 1, 2]], 2),
        ([[1, 2], [500], [501], [502]], 502),  # others confirm it
        ([[1, 2], [500, 501, 502]], 502),
        ([[1, 2], [500, 3, 4, 5, 6, 7, 8], [501, 9, 10, 11], [502, 12, 13]], 13),  # one in a while is not confirmed
        ([[1, 2], [50], [100], [150]], 50),  # events that are rare: time follows, two behind
        ([[1, 2], [50], [100], [150], [200]], 100),
        ([[-(2**62), 2**62 - 1, 5, 6]], 6),
        ([[7]], None),
    ],
)
def test_time_follows_what_others_confirm(batches: list[list[int]], time: int | None) -> None:
    assert _front(*batches)[0] == time


@some(100)
@given(st.lists(st.lists(st.integers(-(2**62), 2**62 - 1), min_size=1, max_size=6), max_size=6), st.integers(0, 2**61))
def test_time_never_goes_back_nor_beyond_the_events(batches: list[list[int]], jump: int) -> None:
    front, seen, before = Front(), list[int](), None
    for batch in batches:
        seen += batch
        time = front.take(np.array(batch, np.int64), jump)
        assert before is None or (time is not None and time >= before)
        assert time is None or time in seen
        before = time


@some(100)
@given(st.lists(st.lists(st.integers(0, 60), max_size=7), max_size=5), st.integers(0, 12), st.integers(0, 7))
def test_clusters_of_pieces_say_what_all_times_together_do(batches: list[list[int]], jump: int, cut: int) -> None:
    """Tasks send lanes of a stream clusters of the times of their chunks, and not these times."""
    whole, pieces = Front(), Front()
    for batch in batches:
        whole.take(np.array(batch, np.int64), jump)
        parts = (np.sort(np.array(part, np.int64)) for part in (batch[:cut], batch[cut:]))
        pieces.take_clusters([own for part in parts for own in clusters_of(part, jump)], jump)
        assert (pieces.time, pieces.doubted) == (whole.time, whole.doubted)


def test_a_source_that_agrees_with_the_others_is_believed_at_once() -> None:
    reached, doubted = {"0": 100}, dict[str, list[int]]()
    reach(reached, doubted, "1", clusters_of(np.array([105]), 10), 10)
    reach(reached, doubted, "2", clusters_of(np.array([500]), 10), 10)
    assert reached == {"0": 100, "1": 105}
    assert doubted == {"2": [500]}


# ---------------------------------------------------------------- live programs


@pytest.mark.parametrize("ahead", [20 * HOUR, YEAR_2025 - YEAR_2020])
@pytest.mark.parametrize("size", [1, 7])
def test_an_event_ahead_makes_no_other_late(ahead: int, size: int) -> None:
    events = _events(40)
    events.insert(11, {"type": "A", "ts": YEAR_2020 + 10_000 + ahead, "n": -1})
    rejects: list[weft.Rejected] = []
    with weft.live(PAIRS, rejects=rejects) as program:
        found = [match for at in range(0, len(events), size) for match in program.push(events[at : at + size])]
        assert program.counters["set aside"] == 1
        assert len(found) == 20
        program.finish()
    assert rejects == []
    assert program.counters["events"] == 41


@pytest.mark.parametrize("threads", [None, 2])
@pytest.mark.parametrize("count", [1, 2])
def test_a_beginning_in_the_far_future_is_given_up(count: int, threads: int | None, tmp_path: Path) -> None:
    rejects: list[weft.Rejected] = []
    program = weft.live(PAIRS, rejects=rejects, threads=threads)
    for at in range(count):
        program.push([{"type": "A", "ts": YEAR_2025 + at, "n": -1}])
    found = [*program.push(_events(1)), *program.push(_events(1))]
    program.save(tmp_path / "saved")
    program = weft.live.load(tmp_path / "saved", rejects=rejects)
    found += [match for at in range(2, 40) for match in program.push(_events(40)[at : at + 1])]
    assert [one.reason.partition(":")[0] for one in rejects] == ["late"] * 3
    assert len(found) == 18
    assert found[0].positions == (count + 1, count + 2)
    program.save(tmp_path / "again")
    assert len(weft.live.load(tmp_path / "again").push(_events(2, YEAR_2020 + 80_000))) == 1


def test_a_beginning_that_is_confirmed_or_told_is_kept() -> None:
    confirmed, told = weft.live(PAIRS, rejects=[]), weft.live(PAIRS, rejects=[])
    for at in range(3):
        confirmed.push([{"type": "A", "ts": YEAR_2025 + at, "n": -1}])
    told.push(_events(1))
    told.advance(YEAR_2025)
    for event in _events(10):
        assert len(confirmed.push([event])) == len(told.push([event])) == 0
    assert confirmed.counters["rejected"] == told.counters["rejected"] == 10


def test_queries_can_be_removed_after_a_beginning_was_given_up() -> None:
    program = weft.live(rejects=[])
    deployed = program.deploy(PAIRS)
    program.push([{"type": "A", "ts": YEAR_2025, "n": -1}])
    program.push(_events(3))
    assert len(program.push(_events(4, YEAR_2020 + 10_000))) == 2
    program.remove(deployed)
    assert len(program.push(_events(4, YEAR_2020 + 20_000))) == 0


def test_events_after_a_pause_are_matched_when_they_are_confirmed() -> None:
    program = weft.live(PAIRS)
    assert len(program.push(_events(4))) == 2
    found = [len(program.push([event])) for event in _events(4, YEAR_2020 + 3 * DAY)]
    assert found == [0, 0, 1, 1]
    assert program.counters["events"] == 8


def test_without_the_guard_every_event_is_matched_at_once() -> None:
    program = weft.live(PAIRS, max_jump=None)
    program.push(_events(4))
    assert [len(program.push([event])) for event in _events(4, YEAR_2020 + 3 * DAY)] == [0, 1, 0, 1]


def test_time_that_is_told_confirms() -> None:
    program = weft.live("SELECT * FROM S WHERE A")
    program.push(_events(2))
    assert len(program.push([{"type": "A", "ts": YEAR_2020 + DAY}])) == 0
    assert len(program.advance(YEAR_2020 + 2 * DAY)) == 1


def test_what_is_set_aside_is_saved(tmp_path: Path) -> None:
    program = weft.live(PAIRS)
    program.push([*_events(4), {"type": "A", "ts": YEAR_2025, "n": 0}])
    program.save(tmp_path / "saved")
    loaded = weft.live.load(tmp_path / "saved")
    assert loaded.counters["set aside"] == 1
    assert len(loaded.push(_events(2, YEAR_2020 + 5000))) == 1
    found = [*loaded.push(_events(3, YEAR_2025 + 5000))]
    assert len(found) == 1
    assert found[0].positions == (7, 8)
    assert loaded.counters["events"] == 10


def test_a_queue_sets_aside_too() -> None:
    found: list[object] = []
    rejects: list[weft.Rejected] = []
    program = weft.live(PAIRS, queue=100, rejects=rejects)
    program.subscribe("q", to=found.append)
    program.push([{"type": "A", "ts": YEAR_2020 + 20 * HOUR, "n": -1}, *_events(10)])
    program.push(_events(10, YEAR_2020 + 20_000))
    program.join()
    program.finish()
    assert len(found) == 10
    assert rejects == []


# ---------------------------------------------------------------- live sources


@pytest.mark.parametrize("place", [0, 1, 17])
def test_an_event_ahead_makes_no_other_late_in_a_live_source(place: int) -> None:
    events = _events(40)
    events.insert(place, {"type": "A", "ts": YEAR_2025, "n": -1})

    def one_by_one() -> Iterator[dict[str, object]]:
        yield from events

    rejects: list[weft.Rejected] = []
    found = list(weft.detect({"events": one_by_one()}, LATER, delay=0, rejects=rejects))
    assert len(found) == 20
    assert rejects == []
    late: list[weft.Rejected] = []
    list(weft.detect({"events": one_by_one()}, LATER, delay=0, max_jump=None, rejects=late))
    assert len(late) == 40 - place


@pytest.mark.parametrize("first", [-(2**63), -(2**62), 0])
@pytest.mark.parametrize("jump", [10, 2**62, 2**63 - 1])
def test_differences_that_are_larger_than_any_time_are_jumps(first: int, jump: int) -> None:
    far = 2**63 - 1
    if far - first - 2 > jump:
        assert _front([first, first + 1, first + 2, far], jump=jump)[0] == first + 2
        assert _front([first, first + 1], [first + 2, far], jump=jump)[0] == first + 2
