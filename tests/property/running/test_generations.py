"""A run whose program changes at triggers: what stays finds what is meant, what begins sees what comes then."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st
from tests import strategies, strategies_composite, strategies_epn, strategies_tesla
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs as composite_programs
from tests.property.running.test_live_equals_meaning import Life, Story, keys, meant, stories
from tests.spark.pipeline import PageDict, Stream, matches_in

from weft.algebra.query import Program
from weft.errors import InputError
from weft.languages import compile_text
from weft.optimizer.pipeline import optimize
from weft.plan.operators import Plan
from weft.plan.planner import plan
from weft.runtime.reading.order import Reading
from weft.runtime.spark.jobs.generations import (
    Generation,
    first_generation,
    generation_from_plain,
    handed_over,
    succeeded,
)
from weft.runtime.spark.jobs.handover import Move
from weft.runtime.spark.jobs.job import job_of, successive_job
from weft.runtime.spark.runs.moving import moves_of
from weft.runtime.spark.runs.seeds import stand_of

SOME = some(15)
LANES = 2


class Changing:
    """A stream that goes on with other programs and lanes; what it knows goes through JSON, as in a checkpoint."""

    def __init__(self, strategy: str | None = None, lanes: int = LANES, *, positions: bool = False) -> None:
        self.positions = positions
        self.stream: Stream | None = None
        self.generations: tuple[Generation, ...] = ()
        self.strategy, self.lanes = strategy, lanes

    def planned(self, program: Program, first: int) -> Plan:
        return plan(program, first=first, strategy=self.strategy, lanes=self.lanes)

    def become(self, written: Program, strategy: str | None = None, lanes: int = LANES) -> tuple[Move, ...]:
        self.strategy, self.lanes = strategy, lanes
        reading = Reading(time_unit=written.time_unit)
        job = job_of(self.planned(written, 0), reading, lanes, streaming=True, positions=self.positions)
        if self.stream is None or not any(self.stream.pages.values()):
            self.generations = (first_generation(written.queries, job.plan, job.lanes),)
            self.stream = Stream(job, 0)
            return ()
        stored = json.loads(json.dumps([own.to_plain() for own in self.generations]))
        before = tuple(map(generation_from_plain, stored))
        assert [own.plan.layers for own in before] == [own.plan.layers for own in self.generations]
        stream = self.stream
        stand = stand_of({(lane, name): page for lane, pages in stream.pages.items() for name, page in pages.items()})
        before = handed_over(before, stand.gone)
        moves = moves_of(before, written.queries, job.plan, lanes)
        after = succeeded(before, written, self.planned, lanes, LANES, moves, stand.trigger)
        self.generations = after.generations
        stream.job = successive_job(job, written, self.generations, stand.seed)
        for lane in stream.job.lanes:
            stream.pages.setdefault(lane.id, PageDict())
        stream.forget()
        return moves


def found_by(story: Story, *, positions: bool) -> dict[str, list[str]]:
    """What each query finds, when the program is changed to those that live."""
    changes = {place for life in story.lives for place in (life.since, life.until) if place is not None}
    edges = sorted({0, len(story.events), *changes, *story.cuts})
    run = Changing(positions=positions)
    before: list[Life] = []
    for at, until in pairwise([*edges, edges[-1]]):
        now = [life for life in story.lives if life.since <= at and (life.until is None or at < life.until)]
        assume(now)  # a run has at least one query
        if now != before:
            queries = tuple(query for life in now for query in life.program.queries)
            run.become(replace(story.lives[0].program, queries=queries))
        before = now
        assert run.stream is not None
        if until > at:
            run.stream.trigger([story.events[at:until]])
    run.stream.end()
    found = matches_in(run.stream.table())
    return {name: keys(match for match in found if match.query == name) for name in names_of(story)}


def names_of(story: Story) -> list[str]:
    return [query.name for life in story.lives for query in life.program.queries]


def check(story: Story) -> None:
    assume(any(life.since == 0 for life in story.lives))
    positions = len(story.events) % 2 == 0  # the other half is matched as if nobody asked for them
    try:
        found = found_by(story, positions=positions)
    except InputError:  # an event longer than all before, which a stream refuses
        assume(False)
        return
    for life in story.lives:
        for name in (query.name for query in life.program.queries):
            expected = meant(life, story.events[life.since :], name)
            mine, wanted = (found[name], expected) if positions else (bare(found[name]), bare(expected))
            if life.until is None:
                assert mine == wanted
            else:
                assert set(mine) <= set(wanted)
                assert len(set(mine)) == len(mine)


def bare(keys: list[str]) -> list[str]:
    """What matches are known by without positions."""
    apart = ({k: v for k, v in json.loads(key).items() if k not in ("positions", "bindings")} for key in keys)
    return sorted(json.dumps(record, sort_keys=True) for record in apart)


def forced(story: Story) -> Story:
    """The same, where one query is there from the beginning to the end."""
    first, *others = story.lives
    return replace(story, lives=(replace(first, since=0, until=None), *others))


@SOME
@given(stories(strategies.programs(), strategies.streams(word=("A", "B", "C", "A"))).map(forced))
def test_regular_queries(story: Story) -> None:
    check(story)


@SOME
@given(stories(composite_programs.map(optimize), strategies_composite.composite_streams()).map(forced))
def test_composite_queries(story: Story) -> None:
    check(story)


@SOME
@given(
    stories(
        strategies_epn.examples(most=1).map(lambda example: compile_text(example.text, language="epn")[0]),
        strategies_epn.streams(),
    ).map(forced)
)
def test_situations(story: Story) -> None:
    check(story)


@SOME
@given(
    st.lists(strategies_tesla.texts(strategies_tesla.rule_sets(size=1)), min_size=1, max_size=3),
    strategies_tesla.rule_streams(),
    st.data(),
)
def test_rules(texts: list[str], events: list[dict[str, object]], data: st.DataObject) -> None:
    """Rules of which none reads what another defines; those that do begin with it, in lanes of their own."""
    lives = []
    for number, text in enumerate(texts):
        program = compile_text(text, language="tesla")[0]
        rules = tuple(replace(rule, name=f"{rule.name}_{number}") for rule in program.queries)
        since = 0 if number == 0 else data.draw(st.integers(0, len(events)))
        until = None if number == 0 or data.draw(st.booleans()) else data.draw(st.integers(since, len(events)))
        lives.append(Life(replace(program, queries=rules), since, until))
    check(Story(tuple(lives), events, data.draw(st.frozensets(st.integers(0, len(events)), max_size=2))))
