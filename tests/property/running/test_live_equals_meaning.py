"""Deployed and removed queries: each finds the matches of the part of the stream in which it is deployed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from tests import strategies, strategies_composite, strategies_epn, strategies_mixed, strategies_tesla
from tests.harness import as_record, some
from tests.property.engines.test_composites_equal_meaning import programs as composite_programs
from tests.property.running.test_sweeping import sweep_always

import weft
from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Field,
    Overlap,
    Without,
)
from weft.algebra.meaning import matches
from weft.algebra.predicates import Attribute, Comparison, Literal
from weft.algebra.query import Program
from weft.algebra.rules import DefinedField, Events, Rule
from weft.algebra.terms import Elapsed
from weft.errors import InputError, UsageError
from weft.languages import compile_text
from weft.runtime.operators.joins import operator as joins_run
from weft.schema import Catalog, Kind
from weft.tree import Node

SOME = some(20)

EventDict = dict[str, object]


@dataclass(frozen=True)
class Life:
    """A program, and the positions before which it is deployed and removed (None: it stays)."""

    program: Program
    since: int
    until: int | None


@dataclass(frozen=True)
class Story:
    """What is deployed when, over a stream that is pushed in pieces."""

    lives: tuple[Life, ...]
    events: list[EventDict]
    cuts: frozenset[int]
    way: str = "deploy"  # how queries come and go: one by one, or "change": by programs that take each other's place
    saves: frozenset[int] = frozenset()  # positions at which it is saved, and goes on from there
    lanes: int | None = None


@st.composite
def stories(
    draw: st.DrawFn, programs: st.SearchStrategy[Program], streams: st.SearchStrategy[list[EventDict]]
) -> Story:
    events = sorted(draw(streams), key=lambda e: (e.get("end", e.get("ts")), e.get("start", e.get("ts"))))
    places = st.integers(0, len(events))
    lives = []
    for number in range(draw(st.integers(1, 3))):
        program = draw(programs)
        queries = tuple(replace(query, name=f"{query.name}_{number}") for query in program.queries)
        since, until = sorted(draw(st.tuples(st.sampled_from([0, 0, *range(len(events) + 1)]), places)))
        gone = until if draw(st.booleans()) else None
        lives.append(Life(replace(program, queries=queries, catalog=Catalog(), inputs=()), since, gone))
    return draw(told_somehow(tuple(lives), events))


@st.composite
def told_somehow(draw: st.DrawFn, lives: tuple[Life, ...], events: list[EventDict]) -> Story:
    places = st.frozensets(st.integers(0, len(events)), max_size=3)
    way, lanes = draw(st.sampled_from(["deploy", "change"])), draw(st.sampled_from([None, None, 2, 3]))
    return Story(lives, events, draw(places), way, draw(places), lanes)


def told(story: Story, *, optimize: bool = True) -> dict[str, list[str]]:
    """What each query found."""
    changes = {place for life in story.lives for place in (life.since, life.until) if place is not None}
    edges = sorted({0, len(story.events), *changes, *story.cuts, *story.saves})
    found: list[weft.Match] = []
    running, running_now = weft.live(optimize=optimize, lanes=story.lanes, threads=1), list[Life]()
    for at, until in pairwise([*edges, edges[-1]]):
        before = list(running_now)
        running_now = [life for life in before if life.until != at]
        running_now += [life for life in story.lives if life.since == at and life.until != at and life not in before]
        if running_now != before:
            try:
                alter(running, before, running_now, story.way)
            except UsageError as error:
                assume("would tie queries together" not in str(error))
                raise
        if at in story.saves:
            running = again(running, optimize=optimize)
        found += running.push(story.events[at:until])
    found += running.finish()
    return {name: keys(match for match in found if match.query == name) for name in names_of(story)}


def alter(running: weft.LiveProgram, before: list[Life], now: list[Life], way: str) -> None:
    """Let those lives be at work that are now."""
    rules = any(query.is_rule for life in before for query in life.program.queries)  # which share their names
    if now and (way == "change" or rules):
        change = running.change([life.program for life in now])
        assume(not change.renamed)  # a query that another takes the place of would not begin anew
        assert len(change.stays) == sum(len(life.program.queries) for life in now if life in before)
        return
    gone = dict.fromkeys(name for life in before if life not in now for name in life.program.names)
    running.remove(*gone)
    for life in now:
        if life not in before:
            running.deploy(life.program)


def again(running: weft.LiveProgram, *, optimize: bool) -> weft.LiveProgram:
    """Another one, that goes on where this one is."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "saved"
        running.save(place)
        return weft.LiveProgram.load(place, optimize=optimize)


def names_of(story: Story) -> list[str]:
    return [query.name for life in story.lives for query in life.program.queries]


def keys(found: object) -> list[str]:
    """Matches as texts that can be sorted; a number is written the same whatever its kind, and so are both zeros."""
    records = (json.dumps(as_record(match)) for match in found)  # type: ignore[attr-defined]
    alike = (json.loads(record, parse_int=float, parse_float=lambda text: float(text) + 0.0) for record in records)
    return sorted(json.dumps(record, sort_keys=True) for record in alike)


def meant(life: Life, events: Sequence[EventDict], name: str) -> list[str]:
    """The matches of one query over a part of the stream, at their places in the whole."""
    return keys(
        replace(
            match,
            positions=tuple(at + life.since for at in match.positions),
            bindings={name: tuple(at + life.since for at in places) for name, places in match.bindings.items()},
        )
        for match in matches(life.program, events)
        if match.query == name
    )


def check(story: Story, *, waits: bool, optimize: bool = True) -> None:
    """Compare; with `waits`, a match may be certain only later than its end, and a query be gone by then."""
    found = told(story, optimize=optimize)
    for life in story.lives:
        for name in (query.name for query in life.program.queries):
            if life.until is None:
                assert found[name] == meant(life, story.events[life.since :], name)
            elif waits:
                assert set(found[name]) <= set(meant(life, story.events[life.since :], name))
            else:
                assert found[name] == meant(life, story.events[life.since : life.until], name)


@SOME
@given(stories(strategies.programs(), strategies.streams(word=("A", "B", "C", "A"))))
def test_regular_queries(story: Story) -> None:
    check(story, waits=False)


@SOME
@given(stories(composite_programs, strategies_composite.composite_streams()))
def test_composite_queries(story: Story) -> None:
    check(story, waits=True)


# ---------------------------------------------------------------- composite queries that share operators


@st.composite
def relatives(draw: st.DrawFn, pattern: Composite) -> Composite:
    """A pattern that has a part in common with another: a part of it, itself, or something around one of these."""
    part = draw(st.sampled_from([pattern, pattern, *pattern.walk(Composite)]))
    assert isinstance(part, Composite)
    known = Attribute(draw(st.sampled_from(["x", "y", "k"])), draw(st.sampled_from(part.variables)))
    symbol = draw(st.sampled_from(["=", "<=", ">=", "<>"]))
    test = Comparison(symbol, known, Attribute(draw(st.sampled_from(["x", "k", "s"])), "new"))
    where = draw(st.sampled_from([(), (test,), (Comparison("<=", Elapsed(), Literal(draw(st.integers(2, 9)))),)]))
    other = CompositeEvent(draw(st.sampled_from("ABC")), "new")
    try:
        return draw(
            st.sampled_from(
                [
                    part,
                    CompositeSequence(part, other, "next", where),
                    CompositeSequence(part, other, "next", (), where),
                    CompositeSequence(part, other, "first", where),
                    CompositeSequence(other, part, "each", where),
                    Overlap(part, other, where),
                    CompositeUnion(part, other),
                    Without(part, other, "between", where[:1] if "new" in repr(where) else ()),
                    Without(part, other, "during"),
                    Without(part, other, "before"),
                    CompositeRepeat(part, "next"),
                    CompositeRepeat(part, "each"),
                    CompositeRepeat(part, "longest"),
                    After(part, 2),
                    CompositeFilter(part, (Comparison(symbol, known, Literal(1)),)),
                ]
            )
        )
    except ValueError:  # that may not be put around it
        return part


@st.composite
def related_programs(draw: st.DrawFn) -> tuple[Program, ...]:
    """A program, and some whose patterns have parts in common with it, or with one another."""
    first = draw(composite_programs)
    patterns = [first.queries[0].pattern]
    for _ in range(draw(st.integers(1, 3))):
        patterns.append(draw(relatives(draw(st.sampled_from(patterns)))))
    shown = [sorted(pattern.variables)[0] for pattern in patterns]
    queries = [
        CompositeQuery(f"q{number}", pattern, (Field("v", Attribute(draw(st.sampled_from(["x", "y"])), variable)),))
        for number, (pattern, variable) in enumerate(zip(patterns, shown, strict=True))
    ]
    return tuple(replace(first, queries=(query,), catalog=Catalog(), inputs=()) for query in queries)


@st.composite
def related_stories(draw: st.DrawFn) -> Story:
    """Related programs that come and go one after the other."""
    streams = strategies_composite.composite_streams()
    events = sorted(draw(streams), key=lambda e: (e.get("end", e.get("ts")), e.get("start", e.get("ts"))))
    places = st.integers(0, len(events))
    lives = []
    for program in draw(related_programs()):
        since, until = sorted(draw(st.tuples(places, places)))
        lives.append(Life(program, since, until if draw(st.sampled_from([True, False, False])) else None))
    # An equal query that comes when another goes would be the same under another name, if the program were changed.
    return replace(draw(told_somehow(tuple(lives), events)), way="deploy")


@SOME
@given(related_stories(), st.booleans())
def test_composite_queries_that_share_operators(story: Story, swept: bool) -> None:
    with patch.object(joins_run, "sweep_graph", sweep_always if swept else joins_run.sweep_graph):
        check(story, waits=True, optimize=False)


# ---------------------------------------------------------------- composite queries over what another query defines

MADE = "M"  # what the query defines that runs all the time
NAMES = (
    "x",
    "y",
    "k",
    "s",
    "n",
    "e",
)  # the last two: the place of an event, and its end; of a match, of its last event
CEQL_DEFINER = "SELECT a[x], b[y], b[k], b[s], b[n], b[e] WHERE (A AS a ; B AS b) WITHIN 6 EVENTS"


def definers() -> list[Program]:
    """A query whose matches are told with their last event, and one that tells them when later events have come."""
    regular, _ = compile_text(CEQL_DEFINER, language="ceql")
    fields = tuple(Field(name, Attribute(name, "b")) for name in NAMES)
    pairs = CompositeQuery(MADE, CompositeSequence(CompositeEvent("A", "a"), CompositeEvent("B", "b"), "each"), fields)
    return [
        replace(regular, queries=(replace(regular.queries[0], name=MADE),), catalog=Catalog()),
        Program("eql", (pairs,)),
    ]


@st.composite
def derived_stories(draw: st.DrawFn) -> Story:
    """Related programs that see derived events, too, and that come and go one after the other."""
    story = draw(related_stories())
    swapped = draw(st.sampled_from(["A", "B", "C"]))

    def derived(node: Node) -> Node:
        return replace(node, type=MADE) if isinstance(node, CompositeEvent) and node.type == swapped else node

    lives = [
        replace(life, program=replace(life.program, queries=(life.program.queries[0].transform(derived),)))
        for life in story.lives
    ]
    definer = Life(draw(st.sampled_from(definers())), 0, None)
    events = [{**event, "n": place, "e": end_of(event)} for place, event in enumerate(story.events)]
    return replace(story, lives=(definer, *lives), events=events)


def end_of(event: EventDict) -> int:
    found = event.get("end", event.get("ts"))
    assert isinstance(found, int)
    return found


def seen_since(life: Life, definer: Life, events: list[EventDict]) -> CompositeQuery:
    """The query as one that is there all the time, and asks each event whether it was told before the query came."""
    (query,) = life.program.queries
    waits = isinstance(definer.program.queries[0], CompositeQuery)

    def later(node: Node) -> Node:
        if not isinstance(node, CompositeEvent):
            return node
        known, least = "n", life.since
        if node.type == MADE and waits:
            known, least = "e", end_of(events[life.since - 1]) if life.since else -9
        return replace(node, where=(*node.where, Comparison(">=", Attribute(known, node.variable), Literal(least))))

    found = query.transform(later)
    assert isinstance(found, CompositeQuery)
    return found


@SOME
@given(derived_stories(), st.booleans())
def test_composite_queries_that_share_operators_over_derived_events(story: Story, swept: bool) -> None:
    definer, *readers = story.lives
    with patch.object(joins_run, "sweep_graph", sweep_always if swept else joins_run.sweep_graph):
        found = told(story, optimize=False)
    for life in readers:
        program = replace(definer.program, queries=(*definer.program.queries, seen_since(life, definer, story.events)))
        (name,) = (query.name for query in life.program.queries)
        expected = keys(match for match in matches(program, story.events) if match.query == name)
        if life.until is None:
            assert found[name] == expected
        else:
            assert set(found[name]) <= set(expected)


@SOME
@given(
    stories(
        strategies_epn.examples(most=1).map(lambda example: compile_text(example.text, language="epn")[0]),
        strategies_epn.streams(),
    )
)
def test_situations(story: Story) -> None:
    try:
        check(story, waits=True)
    except InputError:
        assume(False)


# ---------------------------------------------------------------- programs of several languages


@st.composite
def mixed_stories(draw: st.DrawFn) -> Story:
    """Programs whose queries read each other's events, each program with a life of its own."""
    example = draw(strategies_mixed.mixed_examples())
    events, places = example.events, st.integers(0, len(example.events))
    lives = []
    for number, texts in enumerate([example.texts, *draw(st.lists(strategies_mixed.mixed_texts(), max_size=1))]):
        own = (replace(t, name=f"L{number}{t.name}", text=re.sub(r"\bQ\d", rf"L{number}\g<0>", t.text)) for t in texts)
        program = strategies_mixed.Mixed(tuple(own)).program
        since, until = sorted(draw(st.tuples(st.sampled_from([0, 0, *range(len(events) + 1)]), places)))
        gone = until if draw(st.booleans()) else None
        lives.append(Life(replace(program, catalog=Catalog(), inputs=()), since, gone))
    return replace(draw(told_somehow(tuple(lives), events)), way="deploy")


@some(25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mixed_stories())
def test_mixed_programs(story: Story) -> None:
    try:
        check(story, waits=True)
    except InputError:
        assume(False)


# ---------------------------------------------------------------- rules, which see what other rules define


@st.composite
def rule_stories(draw: st.DrawFn) -> Story:
    """Rules that feed each other, each with a life of its own."""
    program, _ = compile_text(draw(strategies_tesla.texts(strategies_tesla.rule_sets())), language="tesla")
    events = draw(strategies_tesla.rule_streams())
    places = st.integers(0, len(events))
    lives = []
    for rule in program.queries:
        since, until = sorted(draw(st.tuples(st.sampled_from([0, 0, *range(len(events) + 1)]), places)))
        lives.append(Life(replace(program, queries=(rule,)), since, until if draw(st.booleans()) else None))
    return draw(told_somehow(tuple(lives), events))


def bounded(life: Life) -> Rule:
    """The rule as one that lives for ever and asks each event for its place: `n`, which defined events hand on."""
    (rule,) = life.program.queries
    assert isinstance(rule, Rule)

    def later(node: Node) -> Node:
        if not isinstance(node, Events):
            return node
        return replace(node, static=(*node.static, Comparison(">=", Attribute("n"), Literal(life.since))))

    lived = rule.transform(later)
    assert isinstance(lived, Rule)
    handed_on = DefinedField("n", Kind.INT, Attribute("n", rule.terminator.variable))
    terminator = lived.terminator
    if life.until is not None:
        earlier = Comparison("<", Attribute("n"), Literal(life.until))
        terminator = replace(terminator, events=replace(terminator.events, static=(*terminator.events.static, earlier)))
    return replace(lived, terminator=terminator, fields=(*lived.fields, handed_on))


@SOME
@given(rule_stories())
def test_rules(story: Story) -> None:
    by_deployment = sorted(story.lives, key=lambda life: life.since)
    program = replace(story.lives[0].program, queries=tuple(map(bounded, by_deployment)))
    placed = [{**event, "n": place} for place, event in enumerate(story.events)]
    expected = [
        replace(match, event={name: value for name, value in match.event.items() if name != "n"})
        for match in matches(program, placed)
    ]
    found = told(story)
    assert sorted(key for name in set(names_of(story)) for key in found[name]) == keys(expected)
