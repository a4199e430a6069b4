"""Programs of several languages, in which queries read what others define: what they mean, computed by hand."""

from __future__ import annotations

from tests.harness import event, interval

from weft.algebra.meaning import Match, matches
from weft.api import merge_programs


def found(programs: list[str], events: list[dict[str, object]], query: str) -> list[Match]:
    """The matches of one query of a program."""
    return [match for match in matches(merge_programs(programs), events) if match.query == query]


RISE = "QUERY Rise AS SELECT a[x], b[y] WHERE A AS a ; B AS b WITHIN 10 EVENTS"
HOT = "define Hot(v: int) from A(x > 5) where v = A.x"


def test_a_rule_sees_the_fields_of_a_query() -> None:
    rule = "define Both(sum: int) from C() and each Rise(x > 1) within 9 from C where sum = Rise.x + Rise.y"
    events = [event("A", 1, x=1), event("A", 2, x=2), event("B", 3, y=7), event("C", 5)]
    [both] = found([RISE, rule], events, "Both")
    assert both.event == {"sum": 9}
    assert (both.start, both.end, both.positions) == (2, 5, (1, 2, 3))
    assert both.bindings == {"C": (3,), "Rise": (1, 2)}


def test_a_query_sees_what_a_rule_defines_after_all_input_of_that_time() -> None:
    query = "QUERY Next AS SELECT * WHERE Hot : B WITHIN 9 EVENTS"
    events = [event("A", 1, x=9), event("C", 1), event("B", 2)]
    # The rule fires at time 1, at the A; its event stands after the C of the same time, right before the B.
    [match] = found([HOT, query], events, "Next")
    assert (match.start, match.end, match.positions) == (1, 2, (0, 2))
    assert found([HOT, "QUERY Next AS SELECT * WHERE Hot : C WITHIN 9 EVENTS"], events, "Next") == []


def test_derived_events_that_are_not_named_do_not_count_for_contiguity() -> None:
    query = "QUERY Next AS SELECT * WHERE A : B WITHIN 9 EVENTS"
    named = "QUERY Next AS SELECT * WHERE (A : B) OR Hot WITHIN 9 EVENTS"
    events = [event("A", 1, x=9), event("B", 2)]
    assert [match.positions for match in found([HOT, query], events, "Next")] == [(0, 1)]
    assert [match.positions for match in found([HOT, named], events, "Next")] == [(0,)]


def test_windows_of_events_count_input_only() -> None:
    query = "QUERY Far AS SELECT * WHERE Hot ; B WITHIN 1 EVENTS"
    events = [event("A", 1, x=9), event("A", 1, x=8), event("B", 2)]
    # Both events of the rule stand at position 1, the last input event of their time.
    assert [match.positions for match in found([HOT, query], events, "Far")] == [(0, 2), (1, 2)]


def test_other_languages_see_an_instant_where_rules_define_and_an_interval_elsewhere() -> None:
    rule = "define Late(n: int) from B() and each A() within 9 from B where n = 1"
    events = [event("A", 1), interval("B", 3, 5)]
    [late] = found([rule, "QUERY Q AS SELECT * WHERE Late WITHIN 9 EVENTS"], events, "Q")
    assert (late.start, late.end, late.positions) == (5, 5, (0, 1))
    pattern = "pattern P sequence(A a, B b)"
    [whole] = found([pattern, "QUERY Q AS SELECT * WHERE P WITHIN 9 EVENTS"], events, "Q")
    assert (whole.start, whole.end, whole.positions) == (1, 5, (0, 1))


def test_deeper_events_of_one_time_come_later() -> None:
    deeper = "QUERY Deep AS SELECT h[v] WHERE Hot AS h WITHIN 1 EVENTS"
    order = "QUERY Order AS SELECT * WHERE Hot ; Deep WITHIN 1 EVENTS"
    wrong = "QUERY Wrong AS SELECT * WHERE Deep ; Hot WITHIN 1 EVENTS"
    events = [event("A", 1, x=9)]
    # The order of the texts does not matter: who reads whom does.
    for programs in ([HOT, deeper, order, wrong], [wrong, order, deeper, HOT]):
        assert [match.positions for match in found(programs, events, "Order")] == [(0,)]
        assert found(programs, events, "Wrong") == []


def test_absences_are_events_without_positions() -> None:
    pattern = "pattern Quiet absence(B b) context fixed 10"
    query = "QUERY Q AS SELECT * WHERE Quiet AS q ; A AS a WITHIN 9 EVENTS"
    events = [event("A", 1), event("B", 12), event("A", 25)]
    [one] = found([pattern, query], events, "Q")
    assert (one.start, one.end, one.positions, one.bindings) == (0, 25, (2,), {"q": (), "a": (2,)})


def test_an_alarm_about_an_event_is_not_the_event() -> None:
    step = (
        'topology "t" external A(x: int) < "a.jsonl" [1.0] external B(y: int) < "b.jsonl" [1.0] '
        'external Hot(v: int) < "h.jsonl" [1.0] Q(A.x): A ; !Hot ; B'
    )
    events = [event("A", 1, x=9), event("A", 2, x=1), event("B", 3, y=1)]
    # The Hot made of the first A stands during (A ; B) and is no part of it, though it is made of that A alone.
    assert [match.event for match in found([HOT, step], events, "Q")] == [{"A.x": 1}]
