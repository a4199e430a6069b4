"""Sources by name: merged, live or whole, with what an event does not say of itself."""

from __future__ import annotations

import itertools
import json
import queue
import threading
import time

import pyarrow as pa
import pytest

import weft
from weft.runtime.reading.arrivals import LiveEvents
from weft.runtime.reading.idleness import idle_seconds
from weft.runtime.reading.order import Reading
from weft.runtime.reading.sources import NamedSource

STEP = """topology "T"
external Stock(name: string, price: int) < "stock.jsonl" [1.0]
external News(name: string) < "news.jsonl" [1.0]
Moved(News.name, Stock.price): News ;[News.name = Stock.name] Stock
"""
STOCKS = [{"type": "Stock", "ts": t, "name": "x", "price": t} for t in (1, 4, 4, 9)]
NEWS = [{"type": "News", "ts": t, "name": "x"} for t in (2, 4, 5)]
FOUND = [(1, 2), (4, 6), (5, 6)]


def positions(matches):
    return [match.positions for match in matches]


@pytest.mark.parametrize("engine", ["local", "meaning"])
@pytest.mark.parametrize("form", [list, iter, pa.Table.from_pylist, lambda rows: iter([rows[:2], rows[2:]])])
def test_sources_are_one_stream(engine, form):
    """The order of declaration decides between the events at 4, not that of the mapping."""
    for names in (["Stock", "News"], ["News", "Stock"]):
        sources = {name: form(STOCKS if name == "Stock" else NEWS) for name in names}
        assert positions(weft.detect(sources, STEP, engine)) == FOUND


def test_whole_sources_are_sorted_and_live_ones_may_be_late():
    program = weft.compile(STEP)
    backwards = {"Stock": STOCKS[::-1], "News": NEWS}
    assert positions(weft.detect(backwards, program)) == FOUND
    rejects: list[weft.Rejected] = []
    live = {"Stock": iter(STOCKS[::-1]), "News": NEWS}
    assert positions(weft.detect(live, program, rejects=rejects)) == [(0, 3), (1, 3), (2, 3)]
    assert [(item.row, item.event["ts"]) for item in rejects] == [(1, 4), (2, 4), (3, 1)]
    assert rejects[0].reason == "late: it ends at 4, and its source Stock had come to 9 already"
    delayed = {"Stock": iter(STOCKS[::-1]), "News": NEWS}
    assert positions(weft.detect(delayed, program, delay=8)) == FOUND


def test_the_source_says_what_its_events_do_not(tmp_path):
    """The type, where it is declared, and the stream."""
    file = tmp_path / "n.jsonl"
    file.write_text("".join(json.dumps({"ts": event["ts"], "name": "x"}) + "\n" for event in NEWS))
    bare = [{key: value for key, value in event.items() if key != "type"} for event in STOCKS]
    for stocks in (bare, iter(bare), pa.Table.from_pylist(bare)):
        assert positions(weft.detect({"Stock": stocks, "News": file}, STEP)) == FOUND
    ceql = "SELECT * FROM S1, S2 WHERE (S1>A ; S2>A) WITHIN 10 EVENTS"
    sources = {"S2": [{"type": "A", "ts": 1}, {"type": "A", "ts": 3}], "S1": [{"type": "A", "ts": 2}]}
    assert positions(weft.detect(sources, ceql)) == [(1, 2)]
    sources["S2"][0]["stream"] = "S1"
    assert positions(weft.detect(sources, ceql)) == [(0, 2), (1, 2)]


def test_unreadable_events_of_any_source():
    rejects: list[weft.Rejected] = []
    sources = {"Stock": iter([*STOCKS, 5, {"type": "Stock"}]), "News": [*NEWS, {"type": "News", "ts": "?"}]}
    assert weft.count(sources, STEP, rejects=rejects) == {"Moved": 3}
    assert sorted((item.row, item.reason[:10]) for item in rejects) == [
        (3, "'ts' is no"),
        (4, "not an eve"),
        (5, "no time: n"),
    ]


def test_absence_is_decided_by_a_heartbeat():
    """`@` ends when time has passed, though no event comes; the match is given while the sources are still open."""
    release = threading.Event()

    def alarms():
        yield {"type": "A", "ts": 10}
        yield weft.Heartbeat(100)
        assert release.wait(10)

    program = weft.compile("SELECT * FROM A a @ 50", "eql")
    found = weft.detect({"A": alarms(), "B": iter([weft.Heartbeat(1000)])}, program)
    match = next(found)
    release.set()
    assert (match.start, match.end) == (10, 60)
    assert list(found) == []


def test_an_idle_source_holds_nothing_back():
    silence = threading.Event()

    def silent():
        assert silence.wait(10)
        yield {"type": "A", "ts": 1}
        yield {"type": "A", "ts": 30}

    rejects: list[weft.Rejected] = []
    busy = [{"type": "B", "ts": 2}, {"type": "B", "ts": 5}]
    sources = {"A": silent(), "B": iter(busy)}
    found = weft.detect(sources, weft.compile("SELECT * FROM B b ; B c", "eql"), idle_after=0.05, rejects=rejects)
    assert next(found).positions == (0, 1)
    silence.set()
    assert list(found) == []
    assert [item.event["ts"] for item in rejects] == [1]


def test_a_source_with_a_declared_rate_is_idle_after_the_time_of_one_event(monkeypatch):
    monkeypatch.setattr("weft.runtime.reading.idleness.LEAST", 0.02)
    text = 'topology "T"\nexternal A(x: int) < "a" [100.0]\nexternal B(x: int) < "b" [1.0]\nq(b.x): B/b'
    program = weft.compile(text, "step")
    assert idle_seconds("rate", ["A", "B"], program.inputs) == {"A": 0.02, "B": 1.0}
    assert idle_seconds(2, ["A", "B"], program.inputs) == {"A": 2.0, "B": 2.0}
    assert idle_seconds(None, ["A"], program.inputs) == {}
    silence = threading.Event()

    def silent():
        assert silence.wait(10)
        yield {"x": 1, "ts": 100}

    found = weft.detect({"A": silent(), "B": iter([{"x": 1, "ts": 1}, {"x": 2, "ts": 2}])}, program)
    assert next(found).end == 1
    silence.set()
    assert [match.end for match in found] == [2]


def test_a_silent_source_that_others_wait_for_is_told_of_once(monkeypatch):
    monkeypatch.setattr("weft.runtime.reading.arrivals.REPORT_SILENCE_AFTER_S", 0.05)
    silence, told = threading.Event(), []
    monkeypatch.setattr("warnings.warn", lambda text, *_, **__: (told.append(text), silence.set()))

    def silent():
        yield {"type": "A", "ts": 1}
        assert silence.wait(10)
        time.sleep(0.2)
        yield {"type": "A", "ts": 9}

    sources = [NamedSource("A", items=silent()), NamedSource("B", items=iter([{"type": "B", "ts": 5}]))]
    assert [end for batch in LiveEvents(sources, Reading()) for end in batch.ends.tolist()] == [1, 5, 9]
    (text,) = told
    assert text.startswith("the source 'A' has sent nothing")
    assert "1 events of others wait for it: idle_after=SECONDS" in text


def test_a_fast_source_waits_for_a_slow_one(monkeypatch):
    """It is read no further than there is room, and is not taken for idle because of that."""
    monkeypatch.setattr("weft.runtime.reading.arrivals.ROOM", 4)
    monkeypatch.setattr("weft.runtime.reading.arrivals.AHEAD", 8)
    read = itertools.count()
    slow: queue.Queue[dict | None] = queue.Queue()

    def fast():
        for t in range(1000):
            next(read)
            yield {"type": "F", "ts": t}

    sources = [NamedSource("slow", items=iter(slow.get, None)), NamedSource("fast", items=fast())]
    events = LiveEvents(sources, Reading(), idle_after=60)
    batches = iter(events)
    slow.put({"type": "S", "ts": 5})
    ends: list[int] = []
    while len(ends) < 5:
        ends += next(batches).ends.tolist()
    assert ends == [0, 1, 2, 3, 4]
    assert next(read) < 40
    slow.put({"type": "S", "ts": 5000})
    slow.put(None)
    ends += [end for batch in batches for end in batch.ends.tolist()]
    assert ends == [*range(6), *range(5, 1000), 5000]
    assert events.counters == {"events": 1002, "rejected": 0}


def test_a_source_that_fails_is_not_hidden():
    def failing():
        yield {"type": "A", "ts": 1}
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        list(weft.detect({"A": failing(), "B": iter([])}, weft.compile("SELECT * FROM A a", "eql")))


def test_mistakes():
    with pytest.raises(weft.UsageError, match="are for live sources"):
        weft.detect(STOCKS, STEP, idle_after=1)
    with pytest.raises(weft.UsageError, match="sources are given by name"):
        weft.detect({}, STEP)
    with pytest.raises(weft.UsageError, match="events cannot be read from one dict"):
        list(weft.detect({"type": "A", "ts": 1}, STEP))
    with pytest.raises(weft.UsageError, match="make it a list"):
        weft.detect({"Stock": iter(STOCKS)}, STEP, engine="spark")
    with pytest.raises(weft.InputError, match="no such file"):
        weft.detect({"Stock": "nothing.jsonl"}, STEP)
    with pytest.raises(weft.UsageError, match="negative"):
        weft.detect({"Stock": iter(STOCKS)}, STEP, delay=-1)
