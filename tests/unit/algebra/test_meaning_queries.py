"""Small patterns and queries whose matches can be counted by hand, built in the algebra."""

from __future__ import annotations

from dataclasses import replace

from tests.harness import event, interval, stream

from weft.algebra.meaning import Match, matches
from weft.algebra.patterns import Bind, Correlate, Event, Filter, Other, Pattern, Repeat, Sequence, Union
from weft.algebra.predicates import Aggregate, Attribute, Comparison, Literal
from weft.algebra.query import Consume, Program, Query, Selected, Strategy, Window
from weft.schema import Catalog, EventType, Kind, Stream

A, B, C = Event("A"), Event("B"), Event("C")


def program(*queries: Query, catalog: Catalog = Catalog()) -> Program:
    return Program("CEQL", queries, catalog)


def positions(pattern: Pattern, events: list[dict[str, object]], **clauses: object) -> list[tuple[int, ...]]:
    query = Query("q", pattern, **clauses)  # type: ignore[arg-type]
    return [m.positions for m in matches(program(query), events)]


def test_a_match_has_times_and_positions() -> None:
    events = [event("A", 10), event("C", 20), event("B", 30)]
    (found,) = matches(program(Query("q", Sequence(A, Bind(B, "b")))), events)
    assert replace(found, id="") == Match("q", 10, 30, 0, 2, (0, 2), {"A": (0,), "b": (2,)}, {}, ends_apart=True)
    assert len(found.id) == 32


def test_sequence_with_and_without_gaps() -> None:
    assert positions(Sequence(A, B), stream("A", "C", "B", "B")) == [(0, 2), (0, 3)]
    assert positions(Sequence(A, B, contiguous=True), stream("A", "C", "B", "A", "B")) == [(3, 4)]


def test_repeat_is_a_least_fixed_point() -> None:
    assert positions(Repeat(A), stream("A", "B", "A", "A")) == [
        *[(0,), (0, 2), (2,)],
        *[(0, 2, 3), (0, 3), (2, 3), (3,)],
    ]
    assert positions(Repeat(A, contiguous=True), stream("A", "B", "A", "A")) == [(0,), (2,), (2, 3), (3,)]


def test_the_start_may_be_unmarked() -> None:
    [match] = matches(program(Query("q", Sequence(Other("A"), A, contiguous=True))), stream("B", "A"))
    assert (match.start, match.first, match.positions) == (0, 0, (1,))


def test_order_is_by_end_then_start_then_arrival() -> None:
    events = [interval("B", 3, 9), interval("A", 1, 9), event("C", 4), event("D", 4)]
    pattern = Repeat(Union(Union(A, B), Union(C, Event("D"))))
    longest = matches(program(Query("q", pattern, strategy=Strategy.MAX)), events)[-1]
    assert longest.bindings == {"C": (0,), "D": (1,), "A": (2,), "B": (3,)}


def test_unreadable_events_have_no_position() -> None:
    catalog = Catalog(streams=(Stream("S", (EventType("A", (("x", Kind.INT),)),)),))
    events = [{"type": "A"}, {"ts": 1}, event("A", 1, x="one"), interval("A", 5, 4), event("A", 2, x=1)]
    [match] = matches(program(Query("q", A), catalog=catalog), events)
    assert (match.positions, match.start) == ((0,), 2)


def test_interval_events_and_the_time_window() -> None:
    events = [interval("A", 0, 30), interval("B", 5, 40)]
    assert positions(Sequence(A, B), events, window=Window("time", 40)) == [(0, 1)]
    assert positions(Sequence(A, B), events, window=Window("time", 39)) == []


def test_a_long_event_inside_does_not_break_the_window() -> None:
    events = [event("A", 10), interval("B", 0, 11), event("C", 12)]
    assert positions(Sequence(A, Sequence(B, C)), events, window=Window("time", 2)) == [(0, 1, 2)]


def test_events_out_of_order_by_the_window_attribute_do_not_exist() -> None:
    events = [event("A", 0, t=3), event("C", 1, t=2), event("B", 2, t=4)]
    assert positions(Sequence(A, B, contiguous=True), events, window=Window("attribute", 9, "t")) == [(0, 2)]
    events[1] = event("C", 1)
    assert positions(Sequence(A, B, contiguous=True), events, window=Window("attribute", 9, "t")) == []


def test_the_order_of_the_window_attribute_is_that_of_all_partitions() -> None:
    events = [event("C", 0, t=9), event("A", 1, g=2, t=4), event("A", 2, g=1, t=5), event("B", 3, g=2, t=4)]
    window = Window("attribute", 9, "t")
    assert positions(Sequence(A, B), events, window=window, partition=(("g",),)) == []
    events[3]["t"] = 5
    assert positions(Sequence(A, B), events, window=window, partition=(("g",),)) == [(1, 3)]


def test_partition_keys_are_equal_by_kind_and_value() -> None:
    events = [event("A", i, g=g) for i, g in enumerate([1, True, 1.0, "1", None, True])]
    pattern = Sequence(Bind(A, "x"), Bind(A, "y"))
    assert positions(pattern, events, partition=(("g",),)) == [(0, 2), (1, 5)]


def test_universe_decides_what_exists() -> None:
    events = [event("A", 0, stream="S"), event("A", 1, stream="T"), event("B", 2)]
    pattern = Sequence(A, B, contiguous=True)
    assert positions(pattern, events, universe=(("S", "A"), ("S", "B"))) == [(0, 2)]
    assert positions(pattern, events, universe=(("S", "B"), ("T", "A"))) == [(1, 2)]
    assert positions(pattern, events, universe=(("*", "A"), ("*", "B"))) == [(1, 2)]


def test_a_named_stream() -> None:
    events = [event("A", 0, stream="S"), event("A", 1, stream="T"), event("A", 2)]
    assert positions(Event("A", "S"), events) == [(0,), (2,)]
    assert positions(Other("A", "S"), events) == [()]
    [match] = matches(program(Query("q", Event("A", "S"), selected=(Selected("S>A"),))), events[:1])
    assert match.bindings == {"S>A": (0,)}


def test_filters_hold_where_they_stand() -> None:
    equal = Comparison("=", Attribute("x", "a"), Attribute("x", "b"))
    pair = Sequence(Bind(A, "a"), Bind(B, "b"))
    events = stream("A1", "B1", "A2", "B2")
    assert positions(Repeat(Correlate(pair, equal)), events) == [(0, 1), (0, 1, 2, 3), (2, 3)]
    assert positions(Correlate(Repeat(pair), equal), events) == [(0, 1), (2, 3)]


def test_a_condition_over_nothing() -> None:
    either = Union(Bind(A, "a"), Bind(B, "b"))
    events = stream("A1", "B1")

    def kept(function: str) -> list[tuple[int, ...]]:
        total = Aggregate(function, Attribute("x", "a"))  # type: ignore[arg-type]
        return positions(Correlate(either, Comparison(">", total, Literal(5))), events)

    assert kept("SUM") == [(1,)]
    assert kept("COUNT") == []
    none = Comparison("=", Aggregate("COUNT", Attribute("*", "a")), Literal(0))
    assert positions(Correlate(either, none), events) == [(1,)]
    assert positions(Correlate(either, Comparison("=", Attribute("x", "a"), Attribute("y", "b"))), events) == [
        (0,),
        (1,),
    ]


def test_where_holds_for_every_event_bound() -> None:
    above = Filter(Sequence(Repeat(A), B), "A", Comparison(">", Attribute("x"), Literal(1)))
    assert positions(above, stream("A1", "A2", "A3", "B")) == [(1, 2, 3), (1, 3), (2, 3)]


def test_consumption_drops_runs_that_began() -> None:
    pattern = Sequence(Bind(A, "x"), Bind(A, "y"))
    assert positions(pattern, stream("A", "A", "A", "A"), consume=Consume.ANY) == [(0, 1), (2, 3)]
    events = [event(t, i, g=g) for i, (t, g) in enumerate([("A", 1), ("A", 2), ("B", 1), ("B", 2)])]
    assert positions(Sequence(A, B), events, partition=(("g",),), consume=Consume.ANY) == [(0, 2)]
    assert positions(Sequence(A, B), events, partition=(("g",),), consume=Consume.PARTITION) == [(0, 2), (1, 3)]


def test_strategies() -> None:
    pattern, events = Sequence(Repeat(A), B), stream("A", "A", "B")
    assert positions(pattern, events, strategy=Strategy.NEXT) == [(0, 1, 2)]
    assert positions(pattern, events, strategy=Strategy.STRICT) == [(0, 1, 2), (1, 2)]
    assert positions(Sequence(A, B), events, strategy=Strategy.LAST) == [(1, 2)]
    assert positions(Sequence(A, B), events, strategy=Strategy.ANY) == [(0, 2)]
    assert positions(Sequence(A, B), events, strategy=Strategy.MAX) == [(0, 2), (1, 2)]


def test_ties_go_to_the_earliest_start_then_to_the_least_names() -> None:
    unmarked_first = Sequence(Other("B"), B)
    [match] = matches(program(Query("q", unmarked_first, strategy=Strategy.LAST)), stream("A", "A", "B"))
    assert (match.first, match.positions) == (0, (2,))
    labels = Union(Bind(A, "y"), Bind(A, "x"))
    [match] = matches(program(Query("q", labels, strategy=Strategy.NEXT)), stream("A"))
    assert match.bindings == {"x": (0,)}


def test_limit_takes_the_latest_start_first() -> None:
    assert positions(Sequence(A, B), stream("A", "A", "B"), limit=1) == [(1, 2)]
    pattern = Sequence(A, Sequence(Repeat(B), C))
    assert positions(pattern, stream("A", "B", "B", "C"), limit=2) == [(0, 1, 2, 3), (0, 1, 3)]


def test_select_lists() -> None:
    pattern = Sequence(Repeat(Bind(A, "x")), Bind(B, "b"))
    events = [event("A", 0, v=1), event("A", 1), event("B", 2, v=3, s="t")]
    query = Query("q", pattern, strategy=Strategy.MAX, selected=(Selected("x", ("v",)), Selected("b", ("v", "s"))))
    [match] = matches(program(query), events)
    assert match.event == {"x.v": [1, None], "b.v": 3, "s": "t"}
    assert positions(pattern, events, selected=()) == [(), ()]
    [match] = matches(program(Query("q", Bind(A, "x"), selected=(Selected("A"),))), events[:1])
    assert match.bindings == {"A": (0,)}


def test_a_field_is_a_list_only_if_there_can_be_several_values() -> None:
    def field(pattern: Pattern) -> object:
        query = Query("q", pattern, selected=(Selected("u", ("x",)),))
        return matches(program(query), stream("A1", "B2"))[-1].event["x"]

    assert field(Union(Bind(A, "u"), Bind(B, "u"))) == 2
    assert field(Sequence(Bind(A, "u"), Bind(B, "u"))) == [1, 2]
    assert field(Bind(Sequence(A, B), "u")) == [1, 2]
    assert field(Repeat(Bind(B, "u"))) == [2]
    assert field(Sequence(Union(Bind(A, "u"), C), B)) == 1
    assert field(Union(Bind(A, "u"), B)) is None


def test_queries_of_a_program_come_out_together_in_match_order() -> None:
    both = program(Query("second", Sequence(A, B)), Query("first", A))
    assert [(m.query, m.positions) for m in matches(both, stream("A", "B", "A"))] == [
        ("first", (0,)),
        ("second", (0, 1)),
        ("first", (2,)),
    ]
