"""Queries that come and go: each finds what is meant by the part of the stream that it lives through."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import assume, given
from hypothesis import strategies as st
from tests import strategies, strategies_composite, strategies_epn, strategies_tesla
from tests.harness import as_record, some
from tests.property.test_composites_equal_meaning import programs as composite_programs

import weft
from weft.algebra.meaning import matches
from weft.algebra.predicates import Attribute, Comparison, Literal
from weft.algebra.query import Program
from weft.algebra.rules import DefinedField, Events, Rule
from weft.errors import InputError
from weft.languages import compile_text
from weft.schema import Catalog, Kind
from weft.tree import Node

SOME = some(40)

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
    return Story(lives, events, draw(places), draw(st.sampled_from(["deploy", "change"])), draw(places))


def told(story: Story) -> dict[str, list[str]]:
    """What each query found."""
    changes = {place for life in story.lives for place in (life.since, life.until) if place is not None}
    edges = sorted({0, len(story.events), *changes, *story.cuts, *story.saves})
    found: list[weft.Match] = []
    running, running_now = weft.live(), list[Life]()
    for at, until in pairwise([*edges, edges[-1]]):
        before = list(running_now)
        running_now = [life for life in before if life.until != at]
        running_now += [life for life in story.lives if life.since == at and life.until != at and life not in before]
        if running_now != before:
            alter(running, before, running_now, story.way)
        if at in story.saves:
            running = again(running)
        found += running.push(story.events[at:until])
    found += running.finish()
    return {name: keys(match for match in found if match.query == name) for name in names_of(story)}


def alter(running: weft.LiveProgram, before: list[Life], now: list[Life], way: str) -> None:
    """Let those lives be at work that are now."""
    rules = any(query.is_rule for life in before for query in life.program.queries)  # which share their names
    if now and (way == "change" or rules):
        change = running.change([life.program for life in now])
        assert not change.renamed
        assert len(change.stays) == sum(len(life.program.queries) for life in now if life in before)
        return
    gone = dict.fromkeys(name for life in before if life not in now for name in life.program.names)
    running.remove(*gone)
    for life in now:
        if life not in before:
            running.deploy(life.program)


def again(running: weft.LiveProgram) -> weft.LiveProgram:
    """Another one, that goes on where this one is."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "saved"
        running.save(place)
        return weft.LiveProgram.load(place)


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


def check(story: Story, *, waits: bool) -> None:
    """Compare; with `waits`, a match may be certain only later than its end, and a query be gone by then."""
    found = told(story)
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
