"""Laws the definition of meaning must obey, checked on random patterns, queries and streams."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import (
    EventDict,
    Example,
    examples,
    names_in,
    patterns,
    predicates,
    queries,
    streams,
)

from weft.algebra.meaning import Match, matches
from weft.algebra.patterns import Event, Filter, Other, Pattern, Repeat, Sequence, Union
from weft.algebra.predicates import Always, And, Predicate
from weft.algebra.query import Consume, Program, Query, Strategy, Window

SOME = settings(max_examples=50, deadline=None)
small = patterns(depth=1)
medium = patterns(depth=2)

Shown = Counter[tuple[object, ...]]


def run(query: Query, events: list[EventDict]) -> list[Match]:
    return matches(Program("CEQL", (query,)), events)


def shown(found: list[Match]) -> Shown:
    """Matches as a multiset of what tells them apart, so that duplicates would be noticed."""
    return Counter((m.first, m.last, m.positions, tuple(sorted(m.bindings.items()))) for m in found)


def of(pattern: Pattern, events: list[EventDict]) -> Shown:
    return shown(run(Query("q", pattern), events))


def plain(query: Query) -> Query:
    """The query with all its matches, whatever the strategy, limit and consumption."""
    return replace(query, strategy=Strategy.ALL, limit=None, consume=Consume.NONE)


# ---------------------------------------------------------------- patterns


@SOME
@given(small, small, small, streams())
def test_or_is_a_union(p: Pattern, q: Pattern, r: Pattern, events: list[EventDict]) -> None:
    assert of(Union(p, q), events) == of(Union(q, p), events) == of(p, events) | of(q, events)
    assert of(Union(p, p), events) == of(p, events)
    assert of(Union(Union(p, q), r), events) == of(Union(p, Union(q, r)), events)


@SOME
@given(small, small, small, st.booleans(), st.booleans(), streams())
def test_sequence_is_associative(
    p: Pattern, q: Pattern, r: Pattern, first: bool, second: bool, events: list[EventDict]
) -> None:
    left = Sequence(Sequence(p, q, first), r, second)
    right = Sequence(p, Sequence(q, r, second), first)
    assert of(left, events) == of(right, events)


@SOME
@given(small, small, small, st.booleans(), streams())
def test_sequence_distributes_over_or(
    p: Pattern, q: Pattern, r: Pattern, contiguous: bool, events: list[EventDict]
) -> None:
    apart = Union(Sequence(p, q, contiguous), Sequence(p, r, contiguous))
    assert of(Sequence(p, Union(q, r), contiguous), events) == of(apart, events)


@SOME
@given(medium, st.booleans(), streams(max_size=6))
def test_repeat_is_once_or_once_and_repeat(p: Pattern, contiguous: bool, events: list[EventDict]) -> None:
    repeat = Repeat(p, contiguous)
    assert of(repeat, events) == of(Union(p, Sequence(p, repeat, contiguous)), events)
    assert of(repeat, events) == of(Union(p, Sequence(repeat, p, contiguous)), events)


@SOME
@given(streams())
def test_each_event_is_such_an_event_or_another(events: list[EventDict]) -> None:
    assert len(run(Query("q", Union(Event("A"), Other("A"))), events)) == len(events)
    assert not of(Event("A"), events) & of(Other("A"), events)


@SOME
@given(medium, predicates(), predicates(), streams(), st.data())
def test_filters(p: Pattern, one: Predicate, two: Predicate, events: list[EventDict], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names_in(p) or ["u"]))
    assert of(Filter(p, name, Always()), events) == of(p, events)
    both = of(Filter(p, name, And((one, two))), events)
    assert (
        both
        == of(Filter(Filter(p, name, one), name, two), events)
        == of(Filter(Filter(p, name, two), name, one), events)
    )
    assert of(Filter(p, name, one), events) <= of(p, events)


@SOME
@given(small, small, predicates(), streams())
def test_a_filter_goes_into_both_branches(p: Pattern, q: Pattern, where: Predicate, events: list[EventDict]) -> None:
    apart = Union(Filter(p, "u", where), Filter(q, "u", where))
    assert of(Filter(Union(p, q), "u", where), events) == of(apart, events)


# ---------------------------------------------------------------- queries


@SOME
@given(examples(), st.integers(0, 8))
def test_what_comes_later_changes_nothing(example: Example, cut: int) -> None:
    early = [m for m in matches(example.program, example.events) if m.last < cut]
    assert matches(example.program, example.events[:cut]) == early


@SOME
@given(examples())
def test_no_match_comes_out_twice(example: Example) -> None:
    for query in example.program.queries:
        assert set(shown(run(query, example.events)).values()) <= {1}


@SOME
@given(examples())
def test_start_and_end_are_those_of_the_first_and_last_event(example: Example) -> None:
    for m in matches(example.program, example.events):
        first, last = example.events[m.first], example.events[m.last]
        assert (m.start, m.end) == (first.get("start", first.get("ts")), last.get("end", last.get("ts")))
        assert all(m.first <= position <= m.last for position in m.positions)
        assert sorted({p for bound in m.bindings.values() for p in bound}) == list(m.positions)


@SOME
@given(queries(), st.sampled_from(["events", "time"]), st.integers(0, 8), st.integers(0, 8), streams())
def test_a_wider_window_loses_nothing(query: Query, unit: str, narrow: int, more: int, events: list[EventDict]) -> None:
    def within(amount: int) -> Shown:
        return shown(run(replace(plain(query), window=Window(unit, amount)), events))  # type: ignore[arg-type]

    assert within(narrow) <= within(narrow + more)


@SOME
@given(examples())
def test_strategies_choose_among_all(example: Example) -> None:
    query = plain(example.program.queries[0])
    everything = run(query, example.events)
    for strategy in Strategy:
        kept = run(replace(query, strategy=strategy), example.events)
        assert shown(kept) <= shown(everything)
        if strategy in (Strategy.NEXT, Strategy.LAST, Strategy.ANY):
            assert sorted(m.last for m in kept) == sorted({m.last for m in everything})
        if strategy is Strategy.MAX:
            assert {m.last for m in kept} == {m.last for m in everything}


@SOME
@given(medium, streams())
def test_strict_keeps_what_has_no_holes(p: Pattern, events: list[EventDict]) -> None:
    strict = shown(run(Query("q", p, strategy=Strategy.STRICT), events))
    whole = [m for m in run(Query("q", p), events) if list(m.positions) == list(range_of(m))]
    assert strict == shown(whole)


def range_of(match: Match) -> range:
    return range(match.positions[0], match.positions[-1] + 1) if match.positions else range(0)


@SOME
@given(queries(), streams())
def test_select_none_counts_intervals(query: Query, events: list[EventDict]) -> None:
    every = run(replace(plain(query), selected=None), events)
    none = run(replace(plain(query), selected=()), events)
    assert Counter((m.first, m.last) for m in none) == Counter({(m.first, m.last) for m in every})
    assert all(not m.positions and not m.bindings and not m.event for m in none)


@SOME
@given(queries(), st.integers(0, 4), streams())
def test_limit_keeps_at_most_so_many_per_event(query: Query, limit: int, events: list[EventDict]) -> None:
    free = run(replace(query, limit=None, consume=Consume.NONE), events)
    limited = run(replace(query, limit=limit, consume=Consume.NONE), events)
    assert shown(limited) <= shown(free)
    counts = Counter(m.last for m in free)
    assert Counter(m.last for m in limited) == Counter({last: min(n, limit) for last, n in counts.items()})


@SOME
@given(queries(), streams())
def test_consumption_only_takes_away(query: Query, events: list[EventDict]) -> None:
    kept = [shown(run(replace(plain(query), consume=consume), events)) for consume in Consume]
    none, partition, everything = kept
    assert everything <= none
    assert partition <= none


@SOME
@given(medium, streams())
def test_a_partition_is_an_equality_over_all_events(p: Pattern, events: list[EventDict]) -> None:
    # Where nothing between the marked events matters, the key only has to be the same for all of these.
    loose = p.transform(lambda n: replace(n, contiguous=False) if isinstance(n, Sequence | Repeat) else n)
    loose = loose.transform(lambda n: Event(n.type) if isinstance(n, Other) else n)
    assert isinstance(loose, Pattern)

    def one_key(match: Match) -> bool:
        keys = [events[position].get("g") for position in match.positions]
        return all(k is not None and k == k and (type(k), k) == (type(keys[0]), keys[0]) for k in keys)

    events = [event for event in events if not isinstance(event.get("g"), float)]
    together = shown([m for m in run(Query("q", loose), events) if one_key(m)])
    assert shown(run(Query("q", loose, partition=(("g",),)), events)) == together
