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
    running = weft.live(lanes=2, strategy="query")
    running.deploy("define X(k: int) from A(k = $k) and last B(k = $k) within 3 s from A where k = A.k")
    running.deploy("define Y(k: int) from B(k = $k) and last A(k = $k) within 3 s from B where k = B.k")
    with pytest.raises(weft.UsageError, match="deploy all of them at once, or run the program in one lane"):
        running.deploy("define Z(k: int) from X(k = $k) and last Y(k = $k) within 3 s from X where k = X.k")
    assert running.program.names == ("X", "Y")
    with pytest.raises(weft.UsageError, match="at least one lane"):
        weft.live(lanes=0)
    with pytest.raises(weft.UsageError, match="by key or by query, not by 'slice'"):
        weft.live(lanes=2, strategy="slice")  # type: ignore[arg-type]
    with pytest.raises(weft.UsageError, match="say how many lanes"):
        weft.live(lanes="auto")  # type: ignore[arg-type]


def test_lanes_by_key_have_their_own_events() -> None:
    running = started(lanes=2)
    running.push(stream(300))
    received = {one.name: one.received for one in running.operators() if "by [k]" in one.name}
    by_rules = [count for name, count in received.items() if "rules" in name]
    assert len(by_rules) == 2
    assert all(0 < count < 300 for count in by_rules)


KEYLESS = "define Any(k: int) from A() and last B() within 3 s from A where k = A.k"


def test_a_query_without_a_key_is_whole_and_cannot_read_what_lanes_by_key_define(tmp_path: Path) -> None:
    one, several = weft.live(RULES), weft.live(RULES, lanes=2)
    for running in (one, several):
        running.deploy(KEYLESS)
    with pytest.raises(weft.UsageError, match=r"run in lanes by \[k\], and has no such key itself"):
        several.deploy("define Sum(n: int) from C() and each Hot(k > 0) within 9 s from C where n = C.k")
    assert several.program.names == ("Hot", "Hotter", "Any")
    events = stream(300)
    assert found(several, events[:200]) == found(one, events[:200])
    with pytest.raises(weft.UsageError, match="has no such key itself"):
        several.change([RULES, KEYLESS, "define Sum(n: int) from C() and each Hot() within 9 s from C where n = C.k"])
    several.change([RULES, KEYLESS.replace("Any", "Some")])
    one.change([RULES, KEYLESS.replace("Any", "Some")])
    several.save(tmp_path / "saved")
    loaded = weft.live.load(tmp_path / "saved")  # type: ignore[attr-defined]
    expected = found(one, events[200:])
    assert found(loaded, events[200:]) == expected
    assert {str(row["query"]) for row in expected} >= {"Hot", "Some"}


@pytest.mark.parametrize("strategy", ["key", "query"])
def test_matches_come_with_the_same_push_as_in_one_lane(strategy: Any) -> None:
    text = "define Lonely(k: int) from C(k = $k) and last A(k = $k) within 9 s from C and not B(k = $k) between A and C"
    one, several = weft.live(text), weft.live(text, lanes=3, strategy=strategy)
    for event in stream(200):
        assert [m.to_json() for m in several.push([event])] == [m.to_json() for m in one.push([event])]
    assert several.counters["events"] == one.counters["events"]


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
