"""Live programs in several lanes find what they find in one, whatever is deployed, removed, saved and loaded."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import weft

PAIRS = [
    f"SELECT * FROM S WHERE (A AS a ; B AS b) PARTITION BY [k] WITHIN {seconds} SECONDS" for seconds in range(1, 6)
]
RULES = """
define Hot(k: int) from B(k = $k) and last A(k = $k) within 3 s from B where k = B.k ;
define Hotter(k: int) from C(k = $k) and last Hot(k = $k) within 9 s from C where k = C.k
"""


def stream(count: int, seed: int = 0) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [{"type": chance.choice("ABC"), "ts": 200 * at, "k": chance.randrange(3)} for at in range(count)]


def started(**sharing: Any) -> weft.LiveProgram:
    running = weft.live(**sharing)
    for number, text in enumerate(PAIRS):
        running.deploy(text, f"q{number}", "ceql")
    running.deploy(RULES, language="tesla")
    return running


def found(running: weft.LiveProgram, events: list[dict[str, Any]]) -> list[dict[str, object]]:
    return [match.to_json() for at in range(0, len(events), 37) for match in running.push(events[at : at + 37])]


def test_lanes_find_the_same_in_the_same_order(tmp_path: Path) -> None:
    one, several = started(), started(lanes=3, threads=2)
    events = stream(400)
    assert found(several, events[:150]) == found(one, events[:150])
    for running in (one, several):
        running.remove("q1", "q3")
        running.deploy(PAIRS[1], "late", "ceql")
    assert found(several, events[150:300]) == found(one, events[150:300])
    several.save(tmp_path / "saved")
    loaded = weft.live.load(tmp_path / "saved", threads=2)  # type: ignore[attr-defined]
    expected = found(one, events[300:])
    assert found(loaded, events[300:]) == expected
    assert len(expected) > 50
    assert [match.to_json() for match in loaded.finish()] == [match.to_json() for match in one.finish()]
    assert loaded.counters["events"] == len(events)


def test_queries_that_feed_each_other_share_a_lane() -> None:
    running = started(lanes=2)
    running.deploy("define Hottest(k: int) from A(k = $k) and last Hotter(k = $k) within 9 s from A where k = A.k")
    events = [{"type": type_, "ts": at, "k": 1} for at, type_ in enumerate("ABCA")]
    queries = [match.query for match in running.push(events)]
    assert (queries.count("Hotter"), queries.count("Hottest")) == (1, 1)


def test_what_would_tie_lanes_together_is_refused_and_changes_nothing() -> None:
    running = weft.live(lanes=2)
    running.deploy("define X(k: int) from A(k = $k) and last B(k = $k) within 3 s from A where k = A.k")
    running.deploy("define Y(k: int) from B(k = $k) and last A(k = $k) within 3 s from B where k = B.k")
    with pytest.raises(weft.UsageError, match="deploy all of them at once, or run the program in one lane"):
        running.deploy("define Z(k: int) from X(k = $k) and last Y(k = $k) within 3 s from X where k = X.k")
    assert running.program.names == ("X", "Y")
    with pytest.raises(weft.UsageError, match="at least one lane"):
        weft.live(lanes=0)


def test_events_of_the_input_can_be_subscribed_to() -> None:
    running = started()
    came: list[weft.Match] = []
    running.subscribe("A", came.append, where="k > 0")
    with pytest.raises(weft.UsageError, match="none reads events of that type"):
        running.subscribe("D", came.append)
    running.push(
        [{"type": "A", "ts": 1, "k": 0}, {"type": "A", "ts": 2, "k": 1, "x": "y"}, {"type": "B", "ts": 3, "k": 1}]
    )
    (match,) = came
    assert (match.query, match.positions, match.event) == ("A", (1,), {"ts": 2, "k": 1, "x": "y"})
    assert all(match.query != "A" for match in running.push([{"type": "A", "ts": 4, "k": 0}]))
