"""Laws that the meaning of situations must obey, checked on random patterns, policies, contexts and streams."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies_epn import EventDict, Example, examples, patterns, streams

from weft.algebra.analysis.normal_form import clauses
from weft.algebra.contexts import WHOLE, Context, FromFor, FromUntil, Whole, Windows
from weft.algebra.meaning import Match, matches
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.query import Program
from weft.algebra.situations import Kind, Situation, SituationQuery
from weft.languages import compile_text
from weft.languages.epn import syntax
from weft.languages.epn.printer import to_source

SOME = settings(max_examples=40, deadline=None)
FULL = ("sequence", "all")
WITH_MEMBERS = ("sequence", "sequence", "all", "any")
Shown = Counter[tuple[object, ...]]


def situations(*kinds: str) -> st.SearchStrategy[Situation]:
    """A situation of one of the kinds."""
    return patterns(kinds=kinds).map(lambda node: queries_of(to_source(syntax.Program((node,))))[0].situation)


def queries_of(text: str) -> list[SituationQuery]:
    program, _ = compile_text(text, language="epn")
    return [query for query in program.queries if isinstance(query, SituationQuery)]


def run(situation: Situation, events: list[EventDict]) -> list[Match]:
    return matches(Program("epn", (SituationQuery("P", situation),)), events)


def shown(found: list[Match]) -> Shown:
    """Matches as a multiset of what tells them apart, so that duplicates would be noticed."""
    return Counter((m.start, m.end, m.positions, tuple(sorted(m.bindings.items()))) for m in found)


def of(situation: Situation, events: list[EventDict]) -> Shown:
    return shown(run(situation, events))


def with_policies(
    situation: Situation, repeated: Repeated = Repeated.EVERY, consumption: Consumption = Consumption.REUSE
) -> Situation:
    """The situation with these policies for all its slots."""
    slots = tuple(replace(slot, repeated=repeated, consumption=consumption) for slot in situation.participants)
    return replace(situation, participants=slots)


def free(situation: Situation) -> Situation:
    """The situation with the default policies, under which every candidate is a match."""
    return replace(with_policies(situation), evaluation=Evaluation.IMMEDIATE, cardinality=Cardinality.UNRESTRICTED)


# ---------------------------------------------------------------- matches


@SOME
@given(situations(*WITH_MEMBERS), streams())
def test_no_match_comes_out_twice(situation: Situation, events: list[EventDict]) -> None:
    assert set(of(situation, events).values()) <= {1}


@SOME
@given(situations(*WITH_MEMBERS), streams())
def test_members_are_of_their_types_and_give_the_match_its_times(situation: Situation, events: list[EventDict]) -> None:
    types = {slot.variable: slot.type for slot in situation.participants}
    for m in run(situation, events):
        bound = {variable: events[positions[0]] for variable, positions in m.bindings.items()}
        assert {variable: event["type"] for variable, event in bound.items()} == {v: types[v] for v in bound}
        assert len(m.positions) == len(bound) == (1 if situation.kind == "any" else len(types))
        assert m.start == min(event.get("start", event.get("ts")) for event in bound.values())  # type: ignore[type-var]
        assert m.end == max(event.get("end", event.get("ts")) for event in bound.values())  # type: ignore[type-var]


@SOME
@given(situations(*WITH_MEMBERS), streams(), st.integers(0, 8))
def test_immediate_does_not_look_ahead(situation: Situation, events: list[EventDict], cut: int) -> None:
    now = replace(situation, evaluation=Evaluation.IMMEDIATE)
    early = [m for m in run(now, events) if m.last < cut]
    assert shown(run(now, events[:cut])) == shown(early)


# ---------------------------------------------------------------- policies


@SOME
@given(situations(*WITH_MEMBERS), streams())
def test_policies_choose_among_the_candidates(situation: Situation, events: list[EventDict]) -> None:
    assert of(situation, events) <= of(free(situation), events)


@SOME
@given(situations(*WITH_MEMBERS), streams())
def test_deferred_finds_all_where_nothing_is_lost(situation: Situation, events: list[EventDict]) -> None:
    everything = free(situation)
    later = of(replace(everything, evaluation=Evaluation.DEFERRED), events)
    now = of(everything, events)
    assert later <= now if isinstance(situation.context, FromUntil) else later == now


@SOME
@given(situations(*WITH_MEMBERS), streams(), st.sampled_from(Evaluation))
def test_single_first_is_the_smallest(situation: Situation, events: list[EventDict], when: Evaluation) -> None:
    single = replace(situation, cardinality=Cardinality.SINGLE, evaluation=when)
    assert of(with_policies(single, Repeated.FIRST), events) == of(with_policies(single, Repeated.EVERY), events)


@SOME
@given(situations(*WITH_MEMBERS), streams())
def test_single_gives_one_set_for_the_whole_stream(situation: Situation, events: list[EventDict]) -> None:
    single = replace(situation, cardinality=Cardinality.SINGLE, context=WHOLE)
    assert len(run(single, events)) <= 1
    unrestricted = replace(single, cardinality=Cardinality.UNRESTRICTED)
    assert bool(run(single, events)) == bool(run(unrestricted, events))


@SOME
@given(situations(*FULL), streams(), st.sampled_from([Repeated.FIRST, Repeated.LAST]), st.sampled_from(Evaluation))
def test_consumed_events_serve_once(
    situation: Situation, events: list[EventDict], repeated: Repeated, when: Evaluation
) -> None:
    whole = replace(with_policies(situation, repeated, Consumption.CONSUME), context=WHOLE, evaluation=when)
    unrestricted = replace(whole, cardinality=Cardinality.UNRESTRICTED)
    for one, other in combinations(run(unrestricted, events), 2):
        assert not set(one.positions) & set(other.positions)


@SOME
@given(situations(*FULL), streams(), st.sampled_from([Repeated.FIRST, Repeated.LAST]))
def test_at_most_one_set_per_arriving_event(situation: Situation, events: list[EventDict], repeated: Repeated) -> None:
    whole = replace(with_policies(situation, repeated), context=WHOLE, evaluation=Evaluation.IMMEDIATE)
    assert set(Counter(m.last for m in run(whole, events)).values()) <= {1}


# ---------------------------------------------------------------- kinds


@SOME
@given(situations("sequence"), streams())
def test_sequence_is_all_in_order(situation: Situation, events: list[EventDict]) -> None:
    def times(m: Match, variable: str) -> tuple[object, object]:
        event = events[m.bindings[variable][0]]
        return event.get("start", event.get("ts")), event.get("end", event.get("ts"))

    def is_in_order(m: Match) -> bool:
        spans = [times(m, variable) for variable in situation.variables]
        return all(one[1] < other[0] for one, other in pairwise(spans))  # type: ignore[operator]

    unordered = run(replace(free(situation), kind="all"), events)
    assert of(free(situation), events) == shown([m for m in unordered if is_in_order(m)])


@SOME
@given(situations("any"), streams())
def test_any_is_the_union_of_its_slots(situation: Situation, events: list[EventDict]) -> None:
    bare = replace(free(situation), assertion=())
    apart = [replace(bare, participants=(slot,)) for slot in bare.participants]
    assert of(bare, events) == sum((of(one, events) for one in apart), Counter())


@SOME
@given(situations("absence"), streams(), st.sampled_from([4, 7]))
def test_a_partition_has_an_absence_or_a_candidate(situation: Situation, events: list[EventDict], length: int) -> None:
    fixed = replace(free(situation), context=Windows(length, length))
    absent = [m.start // length for m in run(fixed, events)]
    present = {m.start // length for m in run(replace(fixed, kind="any"), events)}
    first = int(str(events[0].get("start", events[0].get("ts")))) // length
    last = max(int(str(event.get("end", event.get("ts")))) for event in events) // length
    assert sorted([*absent, *present]) == list(range(first, last + 1))


# ---------------------------------------------------------------- contexts


@SOME
@given(situations(*WITH_MEMBERS), streams())
def test_by_is_each_value_apart(situation: Situation, events: list[EventDict]) -> None:
    together = replace(situation, context=replace(situation.context, by=("k",)))
    expected: Shown = Counter()
    for value in {event["k"] for event in events if "k" in event}:
        places = [place for place, event in enumerate(events) if event.get("k") == value]
        apart = run(replace(situation, context=replace(situation.context, by=())), [events[p] for p in places])
        expected += shown([moved(m, places) for m in apart])
    assert of(together, events) == expected


def moved(m: Match, places: list[int]) -> Match:
    """A match of a part of a stream, with the positions of the whole."""
    bindings = {variable: tuple(places[p] for p in positions) for variable, positions in m.bindings.items()}
    return replace(m, positions=tuple(places[p] for p in m.positions), bindings=bindings)


@SOME
@given(situations("sequence", "all", "any", "absence"), streams(), st.integers(-2, 2))
def test_a_shift_by_whole_steps_changes_nothing_else(situation: Situation, events: list[EventDict], steps: int) -> None:
    shift = steps * (situation.context.step if isinstance(situation.context, Windows) else 1)
    later = [{k: v + shift if k in ("ts", "start", "end") else v for k, v in e.items()} for e in events]  # type: ignore[operator]
    back = [replace(m, start=m.start - shift, end=m.end - shift) for m in run(situation, later)]
    assert shown(back) == of(situation, events)


@SOME
@given(situations(*WITH_MEMBERS), streams(), st.integers(3, 8))
def test_more_time_loses_no_candidate(situation: Situation, events: list[EventDict], length: int) -> None:
    def lasting(ticks: int) -> Context:
        return FromFor("A", ticks)

    short, long = (replace(free(situation), context=lasting(ticks)) for ticks in (length, length + 3))
    assert of(short, events) <= of(long, events) <= of(replace(free(situation), context=Whole()), events)


# ---------------------------------------------------------------- assertions and networks


@SOME
@given(situations("sequence", "all", "any", "absence"), streams(), st.sampled_from([1, 4, 64]))
def test_normal_form_means_the_same(situation: Situation, events: list[EventDict], limit: int) -> None:
    assert of(replace(situation, assertion=clauses(situation.assertion, limit)), events) == of(situation, events)


@SOME
@given(examples(1))
def test_a_pattern_of_one_slot_passes_everything_on(example: Example) -> None:
    text = example.text + "\npattern Q any(P1 p) derive v = p.v"
    found = matches(compile_text(text, language="epn")[0], example.events)
    first, second = ([m for m in found if m.query == query] for query in ("P1", "Q"))
    assert [(m.start, m.end, m.positions, m.event) for m in first] == [
        (m.start, m.end, m.positions, m.event) for m in second
    ]


@SOME
@given(st.sampled_from(["sequence", "all"]), streams())
def test_every_and_reuse_can_be_split(kind: Kind, events: list[EventDict]) -> None:
    whole = compile_text(f"pattern P {kind}(A a, B b, C c) where a.k = b.k", language="epn")[0]
    split = compile_text(f"pattern D {kind}(A a, B b) where a.k = b.k\npattern P {kind}(D d, C c)", language="epn")[0]
    found = [[m.positions for m in matches(program, events) if m.query == "P"] for program in (whole, split)]
    assert found[0] == found[1]


@SOME
@given(examples(3), st.data())
def test_later_patterns_change_nothing_before_them(example: Example, data: st.DataObject) -> None:
    program, _ = compile_text(example.text, language="epn")
    kept = data.draw(st.integers(1, len(program.queries)))
    names = [query.name for query in program.queries[:kept]]
    alone = matches(replace(program, queries=program.queries[:kept]), example.events)
    assert alone == [m for m in matches(program, example.events) if m.query in names]
