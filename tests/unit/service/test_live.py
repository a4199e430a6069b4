"""Live programs: deploying and removing while events come, subscriptions, and what is refused."""

from __future__ import annotations

import json
import queue
import threading
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft
from weft.algebra.query import Program

PAIR = "SELECT a[x], b[y] FROM S WHERE A AS a ; B AS b WITHIN 10 EVENTS"
FOLLOWED = "SELECT a.x FROM A a ; B b"
ABSENT = "pattern Silence absence(A a) context fixed 10"


def a(ts: int, x: int = 1) -> dict[str, object]:
    return {"type": "A", "ts": ts, "x": x}


def b(ts: int, y: str = "u") -> dict[str, object]:
    return {"type": "B", "ts": ts, "y": y}


def positions(found: weft.Matches) -> list[tuple[str, tuple[int, ...]]]:
    return [(match.query, match.positions) for match in found]


# ---------------------------------------------------------------- deploying and removing


def test_a_query_sees_the_events_after_its_deployment() -> None:
    running = weft.live()
    running.push([a(1)])
    running.deploy(PAIR, name="late")
    assert positions(running.push([b(2), a(3), b(4)])) == [("late", (2, 3))]


def test_a_removed_query_finds_nothing_more_and_the_others_go_on() -> None:
    running = weft.live()
    first = running.deploy(PAIR, name="one")
    running.deploy(PAIR, name="two")
    running.push([a(1)])
    running.remove(first)
    assert positions(running.push([b(2)])) == [("two", (0, 1))]
    running.remove("two")
    assert running.program.queries == ()
    assert len(running.push([b(3)])) == 0


@pytest.mark.parametrize("text", [f"QUERY one AS {PAIR}\nQUERY two AS {PAIR}", f"{FOLLOWED}\n{FOLLOWED}"])
def test_one_of_the_queries_of_a_program_can_be_removed(text: str) -> None:
    running = weft.live()
    one, two = running.deploy(text, language="ceql" if "QUERY" in text else "eql").names
    running.push([a(1)])
    running.remove(one)
    assert running.program.names == (two,)
    assert positions(running.push([b(2)])) + positions(running.finish()) == [(two, (0, 1))]


def test_programs_extend_and_reduce_as_values() -> None:
    pair = weft.compile(PAIR)
    silence = weft.compile(ABSENT)
    both = pair.extended(silence)
    assert both.names == ("q", "Silence")
    assert both.without("q").queries == silence.queries
    assert pair.names == ("q",)
    with pytest.raises(weft.UsageError, match="did you mean 'Silence'"):
        both.without("Silense")
    with pytest.raises(weft.UsageError, match="two programs have a query called 'q'"):
        both.extended(pair)


def test_a_refused_deployment_changes_nothing() -> None:
    running = weft.live(PAIR)
    before = running.program
    for wrong in (PAIR, "SELECT * FROM S WHERE A AS", ABSENT.replace("10", "'x'")):
        with pytest.raises(weft.WeftError):
            running.deploy(wrong)
    assert running.program is before
    assert positions(running.push([a(1), b(2)])) == [("q", (0, 1))]


def test_what_others_look_at_is_deployed_before_them_and_removed_with_them() -> None:
    running = weft.live("pattern Q any(P p)")
    with pytest.raises(weft.UsageError, match="'Q' is deployed already and looks at 'P'"):
        running.deploy("pattern P sequence(A a, B b) derive x = a.x")
    running.remove("Q")
    running.deploy("pattern P sequence(A a, B b) derive x = a.x\npattern Q any(P p)")
    with pytest.raises(weft.UsageError, match="remove 'Q' first, or both at once"):
        running.remove("P")
    assert {name for name, _ in positions(running.push([a(1), b(2), a(3)]))} == {"P", "Q"}
    running.remove("P", "Q")
    assert running.program.names == ()


def test_a_query_sees_what_a_running_one_of_another_language_defines_from_then_on() -> None:
    running = weft.live("pattern P sequence(A a, B b) derive x = a.x")
    running.push([a(1), b(2), a(3)])
    running.deploy("define Q(x: int) from P() where x = P.x")
    running.deploy("QUERY R AS SELECT q[x] WHERE Q AS q ; A WITHIN 9 EVENTS", name="R")
    found = [*running.push([b(4), a(5)]), *running.finish()]
    assert sorted((m.query, m.positions) for m in found) == [
        ("P", (0, 3)),
        ("P", (2, 3)),
        ("Q", (0, 3)),
        ("Q", (2, 3)),
        ("R", (0, 3)),
        ("R", (2, 3)),
    ]


def test_unknown_names_are_refused() -> None:
    running = weft.live(PAIR)
    deployment = running.deploy(ABSENT)
    running.remove(deployment)
    with pytest.raises(weft.UsageError, match="is removed already"):
        running.remove(deployment)
    with pytest.raises(weft.UsageError, match="no query called 'p'"):
        running.remove("p")


# ---------------------------------------------------------------- rules

PAIRED = "define Pair(x: int) from B() and last A() within 9 from B where x = A.x"
THRICE = "Rule again define Pair(x: int) from B() and each A(x > 5) within 9 from B where x = 3 * A.x"


def test_rules_see_what_rules_deployed_before_and_after_them_define() -> None:
    running = weft.live("define Second(x: int) from Pair() and each First() within 9 from Pair where x = Pair.x")
    running.deploy(PAIRED)
    running.push([a(1), b(2)])
    running.deploy("define First(x: int) from A(x > 1) where x = A.x")
    assert positions(running.push([a(3, x=2), b(4)])) == [("First", (2,)), ("Second", (2, 3)), ("Pair", (2, 3))]


def test_rules_of_one_type_are_removed_together_by_label_or_as_deployed() -> None:
    running = weft.live(PAIRED)
    both = running.deploy([THRICE])
    assert {match.event["x"] for match in running.push([a(1, x=7), b(2)])} == {7, 21}
    running.remove("again")
    assert [match.event for match in running.push([b(3)])] == [{"x": 7}]
    with pytest.raises(weft.UsageError, match="removed already"):
        running.remove(both)
    running.deploy(THRICE)
    with pytest.raises(weft.UsageError, match="two programs have a rule 'again'"):
        running.deploy(weft.compile(THRICE))
    running.remove("Pair")
    assert running.program.queries == ()
    assert len(running.push([b(4)])) == 0


def test_a_rule_deployed_again_begins_anew() -> None:
    running = weft.live(PAIRED)
    running.push([a(1)])
    running.remove("Pair")
    running.deploy(PAIRED)
    assert positions(running.push([b(2), a(3), b(4)])) == [("Pair", (2, 3))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define Start() from Pair()", "this fires for ever, at one instant: .*Pair"),
        ("define Other() from Pair(y > 1)", "event type 'Pair' has no attribute 'y'"),
        ("define Other() from Pair(x = 'a')", "a number never compares with a text"),
    ],
)
def test_rules_are_checked_together_with_those_that_run(text: str, message: str) -> None:
    running = weft.live("define Pair(x: int) from Start() where x = 1")
    before = running.program
    with pytest.raises(weft.ProgramError, match=message) as caught:
        running.deploy(text)
    assert "^" in str(caught.value)
    assert running.program is before
    assert positions(running.push([{"type": "Start", "ts": 1}])) == [("Pair", (0,))]


def test_compiled_rules_that_close_a_cycle_are_refused_by_name() -> None:
    running = weft.live("define Pair() from Start()")
    with pytest.raises(weft.UsageError, match=r"fire for ever, at one instant: (Pair <- Start|Start <- Pair)"):
        running.deploy(weft.compile("define Start() from Pair()"))
    assert running.program.names == ("Pair",)


def test_subscriptions_to_the_type_of_several_rules() -> None:
    got: list[object] = []
    running = weft.live([PAIRED, THRICE])
    running.deploy("define Other(x: double) from B() where x = 100.5")
    running.subscribe("Pair", lambda match: got.append(match.event["x"]), where="x > 10")
    running.subscribe("*", lambda match: got.append(match.query), where="x > 100 and type = 'Other'")
    running.push([a(1, x=7), b(2), a(3, x=20), b(4)])
    assert got == [21, 21, 60, 20, "Other", "Other"]  # the third and fourth differ in the rule, so by their ids


# ---------------------------------------------------------------- events


def test_time_passes_without_events() -> None:
    running = weft.live(ABSENT)
    running.push([a(1), b(25)])
    assert [match.start for match in running.advance(35)] == [20]
    assert [match.start for match in running.push([b(41)])] == [30]


def test_late_events_are_rejected_and_counted() -> None:
    rejects: list[weft.Rejected] = []
    running = weft.live(PAIR, rejects=rejects)
    running.push([a(5)])
    running.push([b(4), b(5)])
    running.advance(9)
    running.push([b(8), b(9)])
    assert [(event.row, event.reason.split(":")[0]) for event in rejects] == [(0, "late"), (0, "late")]
    assert running.counters["rejected"] == 2
    assert running.counters["events"] == 3
    running = weft.live(PAIR)
    running.push([a(5)])
    with pytest.warns(weft.RejectedWarning, match="late"):
        running.push([a(1)])


def test_a_push_takes_what_detect_takes() -> None:
    events = [a(1) | {"y": None}, b(2)]
    for given in (events, pa.Table.from_pylist(events), iter(events), pa.Table.from_pylist(events).to_pandas()):
        found = weft.live(PAIR).push(given)
        assert repr(found) == "<1 match>"
        assert found.to_arrow().column("query").to_pylist() == ["q"]
        assert [match.event for match in found] == [{"x": 1, "y": "u"}]


def test_a_stream_that_has_ended_takes_nothing() -> None:
    with weft.live(PAIR) as running:
        running.push([a(1)])
    with pytest.raises(weft.UsageError, match="the stream has ended"):
        running.push([b(2)])


# ---------------------------------------------------------------- subscriptions


def test_a_function_gets_the_matches_it_wants() -> None:
    got: list[weft.Match] = []
    running = weft.live(PAIR)
    subscription = running.subscribe("q", got.append, where="x > 1 and not y contains 'z'")
    running.push([a(1), a(2, x=5), b(3), b(4, y="xyz")])
    assert [match.event for match in got] == [{"x": 5, "y": "u"}]
    assert subscription.delivered == 1
    subscription.cancel()
    running.push([b(5)])
    assert len(got) == 1
    assert repr(subscription) == "<Subscription to q: 1 delivered, 0 failed, cancelled>"


def test_matches_come_in_match_order_and_to_all_who_want_them() -> None:
    got: list[weft.Match] = []
    waiting: queue.Queue[weft.Match] = queue.Queue()
    running = weft.live(PAIR)
    running.deploy(PAIR, name="p")
    running.subscribe("*", got.append)
    running.subscribe("p", waiting)
    found = list(running.push([a(1), a(2), b(3)]))
    assert got == found
    assert [waiting.get_nowait() for _ in range(waiting.qsize())] == [match for match in found if match.query == "p"]


def test_files_grow_and_are_complete_at_the_end(tmp_path: Path) -> None:
    paths = [tmp_path / f"found.{ending}" for ending in ("jsonl", "csv", "parquet")]
    with weft.live(PAIR) as running:
        for path in paths:
            running.subscribe("q", path)
        (match,) = running.push([a(1), b(2)])
        assert json.loads(paths[0].read_text())["id"] == match.id
        running.push([b(3)])
    assert len(paths[0].read_text().splitlines()) == 2
    assert len(paths[1].read_text().splitlines()) == 3
    assert pq.read_table(paths[2]).column("query").to_pylist() == ["q", "q"]
    with pytest.raises(weft.UsageError, match="unknown format 'xls'"):
        weft.live(PAIR).subscribe("q", tmp_path / "found.xls")


def test_what_a_receiver_raises_stops_nobody() -> None:
    got: list[weft.Match] = []
    full: queue.Queue[weft.Match] = queue.Queue(maxsize=1)
    running = weft.live(PAIR)

    def fails(match: weft.Match) -> None:
        raise ValueError(match.positions)

    failing, filling = running.subscribe("q", fails), running.subscribe("q", full)
    running.subscribe("q", got.append)
    running.push([a(1), a(2), b(3)])
    assert len(got) == 2
    assert (failing.delivered, failing.failed) == (0, 2)
    assert [str(failure.error) for failure in failing.errors] == ["(0, 2)", "(1, 2)"]
    assert (filling.delivered, filling.failed) == (1, 1)
    assert isinstance(filling.errors[0].error, queue.Full)


def test_a_receiver_may_change_the_program_but_not_push() -> None:
    running = weft.live(PAIR)
    refused: list[Exception] = []

    def react(match: weft.Match) -> None:
        if "p" not in running.program.names:
            running.deploy(PAIR, name="p")
        try:
            running.push([a(9)])
        except weft.UsageError as error:
            refused.append(error)

    running.subscribe("q", react)
    running.push([a(1), b(2)])
    assert positions(running.push([a(3), b(4)])) == [("q", (0, 3)), ("q", (2, 3)), ("p", (2, 3))]
    assert "a receiver cannot push events" in str(refused[0])


def test_filters_are_checked_when_they_are_given() -> None:
    running = weft.live(PAIR)
    for wrong, message in (
        ("z > 1", "these events have no field 'z'"),
        ("x >", "the text ends too early"),
        ("x and 1 < 2 < 3", "comparisons cannot be chained"),
        ("type > 3", "a number never compares with a text|a text never compares with a number"),
        ("a.x = 1", "only the fields of one event"),
        ("x contains y", "a text in quotes"),
    ):
        with pytest.raises(weft.ProgramError, match=message) as caught:
            running.subscribe("q", print, where=wrong)
        assert "^" in str(caught.value)
    with pytest.raises(weft.UsageError, match="deploy it first; did you mean 'q'"):
        running.subscribe("Q", print)
    with pytest.raises(weft.UsageError, match="not to a int"):
        running.subscribe("q", 3)  # type: ignore[arg-type]


def test_every_kind_of_match_can_be_filtered() -> None:
    running = weft.live()
    running.deploy(FOLLOWED, name="followed", language="eql")
    running.deploy("pattern P sequence(A a, B b) derive x = a.x")
    got: list[str] = []
    for name, field in (("followed", "a.x"), ("P", "x")):
        where = f"({field} = 2 or {field} = 3) and ts < 4 and end > 1"
        running.subscribe(name, lambda match: got.append(match.query), where)
    running.push([a(1), a(2, x=2), b(3)])
    running.push([a(4, x=2), b(5)])
    running.finish()
    assert sorted(got) == ["P", "followed"]


def test_warnings_of_a_deployed_program_are_shown() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        weft.live().deploy("SELECT * FROM S WHERE A AS a ; B AS b")
    assert [warning.category for warning in caught] == [weft.ProgramWarning]
    assert isinstance(weft.live().program, Program)


def test_nothing_is_removed_by_no_name() -> None:
    running = weft.live("define X() from A()")
    with pytest.raises(weft.UsageError, match="no query called None; known here: X"):
        running.remove(None)  # type: ignore[arg-type]
    assert running.program.names == ("X",)


def test_order_and_key_as_in_detect() -> None:
    """Columns decide between equal times, and ids are those that `detect` gives, whatever is pushed together."""
    rows = [{"type": kind, "ts": 5, "n": n, "id": f"e{n}"} for n, kind in ((2, "B"), (1, "A"), (3, "B"))]
    program = "SELECT * WHERE A AS a ; B AS b WITHIN 10 EVENTS"
    expected = list(weft.detect(rows, program, order="n", key="id"))
    told: list[weft.Match] = []
    with weft.live(program, order="n", key="id") as live:
        live.subscribe("q", told.append)
        before = live.push([{"type": "X", "ts": 1, "n": 0, "id": "x"}])
        found = live.push(rows)
    assert len(before) == 0
    assert [match.id for match in found] == [match.id for match in told] == [match.id for match in expected]
    assert len(expected) == 2


# ---------------------------------------------------------------- queues


def test_a_queue_gives_all_matches_to_subscribers() -> None:
    found: list[weft.Match] = []
    with weft.live("SELECT * FROM S WHERE (A AS a ; B AS b) WITHIN 5 EVENTS", queue=3) as running:
        running.subscribe("*", found.append)
        for at in range(40):
            assert len(running.push({"type": "AB"[at % 2], "ts": at})) == 0
        running.join()
        assert running.queued == running.counters["queued"] == 0
    expected = weft.detect([{"type": "AB"[at % 2], "ts": at} for at in range(40)], running.program)
    assert [match.id for match in found] == [match.id for match in expected] != []


class Slow:
    """A receiver that keeps the thread of the queue at its first match until it may go on."""

    def __init__(self) -> None:
        self.at_work, self.go_on = threading.Event(), threading.Event()
        self.found: list[weft.Match] = []

    def __call__(self, match: weft.Match) -> None:
        self.found.append(match)
        self.at_work.set()
        assert self.go_on.wait(60)


@pytest.mark.parametrize("as_arrow", [False, True])
def test_a_full_queue_that_drops_never_makes_wait(as_arrow: bool) -> None:
    """A hundred times its room is pushed while nothing is matched: no more waits than there is room for."""
    program = "SELECT * FROM S WHERE (A AS a ; B AS b) WITHIN 5 EVENTS"
    events = [{"type": "AB"[at % 2], "ts": at} for at in range(1002)]
    slow = Slow()
    with weft.live(program, queue=10, when_full="drop") as running:
        running.subscribe("*", slow)
        running.push(events[:2])
        assert slow.at_work.wait(60)
        for at in range(2, 1002, 4):
            piece = events[at : at + 4]
            running.push(pa.Table.from_pylist(piece) if as_arrow else piece)
            assert running.queued <= 2 + 10
        slow.go_on.set()
        running.join()
        counters = running.counters
    assert {match.id for match in slow.found} < {match.id for match in weft.detect(events, program)}
    assert max(match.positions[-1] for match in slow.found) == 1001  # numbered as in the whole stream
    assert counters["shed"] == counters["shed unread"] == 992
    assert counters["events"] == 1002


def test_events_that_must_not_be_lost_stay_in_a_full_queue() -> None:
    program = "define Y() from C() and each A() within 9000 from C and not B() between A and C"
    events = [{"type": "AAAAAAAB"[at % 8], "ts": at} for at in range(800)]
    slow = Slow()
    with weft.live(program, queue=150, when_full="drop") as running:
        running.subscribe("*", slow)
        running.push([{"type": "A", "ts": -2}, {"type": "C", "ts": -1}])
        assert slow.at_work.wait(60)
        for at in range(0, 800, 20):
            running.push(events[at : at + 20])
        slow.go_on.set()
        running.push({"type": "C", "ts": 800})
    assert len(slow.found) == 1  # after the last A there is a B, and it was not dropped
    assert running.counters["shed unread"] > 500


@pytest.mark.parametrize("as_arrow", [False, True])
def test_a_full_queue_refuses_events_of_any_program_and_counts_them(as_arrow: bool) -> None:
    program = "define Y() from C() and last A() within 9000 from C and not B() between A and C"
    events = [{"type": "ABC"[at % 3], "ts": at} for at in range(40)]
    slow = Slow()
    with weft.live(program, queue=10, when_full="refuse") as running:
        running.subscribe("*", slow)
        running.push([{"type": "A", "ts": -2}, {"type": "C", "ts": -1}])
        assert slow.at_work.wait(60)
        for at in range(0, 40, 4):
            running.push(pa.Table.from_pylist(events[at : at + 4]) if as_arrow else events[at : at + 4])
        taken = running.queued
        slow.go_on.set()
        running.join()
        running.push({"type": "C", "ts": 50})
        running.join()
        counters = running.counters
    assert taken == 10
    assert (counters["refused"], counters["held"], counters["events"]) == (32, 0, 11)
    assert [match.positions for match in slow.found] == [(0, 1)]  # the last C has a B since the last A that was taken


def test_new_queries_begin_where_nothing_was_left_out_for_the_old_ones() -> None:
    events = [{"type": "AAAAAAAB"[at % 8], "ts": at} for at in range(80)]
    slow, found = Slow(), list[weft.Match]()
    with weft.live("SELECT * FROM S WHERE (C AS c ; D AS d)", queue=10, when_full="drop") as running:
        running.subscribe("*", slow)
        running.push([{"type": "C", "ts": -2}, {"type": "D", "ts": -1}])
        assert slow.at_work.wait(60)
        for event in events:
            running.push(event)
        threading.Timer(0.05, slow.go_on.set).start()
        running.deploy("define Y() from C() and each A() within 9000 from C and not B() between A and C")
        running.subscribe("Y", found.append)
        running.push([{"type": "B", "ts": 90}, {"type": "C", "ts": 100}])
    assert not found


def test_a_receiver_cannot_deploy_while_its_queue_drops() -> None:
    running = weft.live("SELECT * FROM S WHERE (A AS a)", queue=10, when_full="drop")
    told = running.subscribe("*", lambda _: running.deploy("SELECT * FROM S WHERE (B AS b)", name="r"))
    running.push({"type": "A", "ts": 1})
    running.join()
    assert "another thread" in str(told.errors[0].error)


def test_what_must_not_be_lost_waits_in_a_full_queue() -> None:
    program = "SELECT NEXT * FROM S WHERE (A AS a ; B AS b) WITHIN 5 EVENTS"
    events = [{"type": "AB"[at % 2], "ts": at} for at in range(60)]
    found: list[weft.Match] = []
    with weft.live(program, queue=4, when_full="drop") as running:
        running.subscribe("*", found.append)
        for at in range(0, 60, 3):
            running.push(events[at : at + 3])
    assert [match.id for match in found] == [match.id for match in weft.detect(events, program)]
    assert "shed" not in running.counters


def test_an_error_in_the_thread_is_raised_where_events_are_pushed() -> None:
    running = weft.live("SELECT * FROM S WHERE (A+ AS a ; B AS b)", queue=100, budget=weft.Budget(matches_per_event=2))
    running.push([{"type": "AB"[at == 9], "ts": at} for at in range(10)])
    with pytest.raises(weft.BudgetError):
        running.join()
    with pytest.raises(weft.BudgetError):
        running.push({"type": "A", "ts": 100})


def test_a_queue_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(weft.UsageError, match="at least 1"):
        weft.live(queue=0)
    with pytest.raises(weft.UsageError, match="'wait' or 'drop'"):
        weft.live(queue=5, when_full="panic")  # type: ignore[arg-type]
