"""Engines equal the definition of situations: for all patterns, policies, contexts, streams, batches and restarts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.driving import event_batches
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import row_of, rows_of
from tests.strategies_epn import EventDict, Example, examples, streams

import weft
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.errors import InputError
from weft.languages import compile_text
from weft.plan.operators import Plan
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.local import LocalRun
from weft.runtime.reading.order import EventSource, Reading
from weft.runtime.writing.match_rows import rows_to_matches

SOME = some(30)
Row = tuple[object, ...]


@dataclass(frozen=True)
class Case:
    """A program, a stream, and the stream in parts."""

    program: Program
    events: list[EventDict]
    parts: list[list[EventDict]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A network, and a stream that is cut anywhere."""
    example: Example = draw(examples(most=3))
    program, _ = compile_text(example.text, language="epn")
    cuts = sorted(draw(st.sets(st.integers(0, len(example.events)), max_size=4)))
    edges = [0, *cuts, len(example.events)]
    parts = [example.events[a:b] for a, b in pairwise(edges) if a < b]
    return Case(program, example.events, parts)


def meant(case: Case) -> list[Row]:
    return sorted((*row[:-1], _filled(row[-1])) for row in map(row_of, matches(case.program, case.events)))


def _filled(bindings: Iterable[tuple[str, tuple[int, ...]]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Variables that are bound to positions: an absence has none."""
    return tuple((name, positions) for name, positions in bindings if positions)


def run(chosen: Plan, batches: Iterable[EventBatch], queries: tuple[int, ...] | None = None) -> list[MatchBatch]:
    """All matches. A long event that opens an absence in the past of a later pattern is refused, not guessed."""
    matcher = Matcher(chosen if queries is None else chosen.only(queries))
    try:
        found = [found for batch in batches for found in matcher.push(batch)]
    except InputError:
        assume(False)
    return [*found, *matcher.finish()]


@SOME
@given(cases())
def test_any_batches(case: Case) -> None:
    chosen = plan(case.program)
    assert rows_of(run(chosen, event_batches(case.parts, chosen))) == meant(case)


@SOME
@given(cases())
def test_one_event_at_a_time(case: Case) -> None:
    chosen = plan(case.program)
    assert rows_of(run(chosen, event_batches([[event] for event in case.events], chosen))) == meant(case)


@SOME
@given(cases())
def test_restarts(case: Case) -> None:
    """After each batch a new matcher goes on from the pages of the state."""
    chosen = plan(case.program)
    matcher = Matcher(chosen)
    pages: dict[str, bytes] = {}
    found: list[MatchBatch] = []
    for batch in event_batches(case.parts, chosen):
        try:
            found += matcher.push(batch)
        except InputError:
            assume(False)
        changes = matcher.snapshot()
        pages = {name: page for name, page in {**pages, **changes}.items() if page is not None}
        matcher = Matcher.restore(chosen, dict(pages))
    found += matcher.finish()
    assert rows_of(found) == meant(case)


@SOME
@given(cases(), st.integers(2, 3))
def test_lanes(case: Case, lanes: int) -> None:
    check_lanes(case, lanes)


def check_lanes(case: Case, lanes: int) -> None:
    """Groups of patterns run apart, and by key where they have one; each lane sees relevant events only."""
    chosen = plan(case.program)
    relevant = chosen.relevant_types
    found: list[MatchBatch] = []
    for group in chosen.lanes:
        shares = lanes if group.key else 1
        keys = [tuple(event.get(part[0]) for part in group.key) for event in case.events]
        distinct = list(dict.fromkeys(keys))
        for lane in range(shares):
            keep = [
                (relevant is None or event["type"] in relevant) and distinct.index(key) % shares == lane
                for event, key in zip(case.events, keys, strict=True)
            ]
            mine = [blocks.take(batch, np.flatnonzero(keep)) for batch in event_batches([case.events], chosen)]
            found += run(chosen, [batch for batch in mine if len(batch)], group.queries)
    assert rows_of(found) == meant(case)


LINKED = [
    """pattern P1 all(A a, B b) where a.k = b.k derive k = b.k, x = a.x
       pattern P2 sequence(P1 p, C c) where p.k = c.k and p.x <= c.x policies consumption consume""",
    """pattern P1 any(A a, B b) policies cardinality single context fixed 10 by k derive k = k
       pattern P2 all(P1 p, C c) policies evaluation deferred, repeated last context sliding 12 every 5 by k""",
]


@SOME
@given(st.sampled_from(LINKED), streams(), st.integers(2, 3))
def test_lanes_of_linked_patterns(text: str, events: list[EventDict], lanes: int) -> None:
    """Patterns that feed each other are split by the key that goes through all of them."""
    program, _ = compile_text(text, language="epn")
    (group,) = plan(program).lanes
    assert group.key == (("k",),)
    check_lanes(Case(program, events, [events]), lanes)


@SOME
@given(cases())
def test_match_order_over_batches(case: Case) -> None:
    """Matches of partitions that close late come in their place among the others."""
    chosen = plan(case.program)
    try:
        rows = list(LocalRun(chosen, _Parts(event_batches(case.parts, chosen))).rows())
    except InputError:
        assume(False)
    found = [(m.end, m.start, m.positions, m.query) for part in rows for m in rows_to_matches(part)]
    assert found == [(m.end, m.start, m.positions, m.query) for m in matches(case.program, case.events)]


class _Parts(EventSource):
    """Batches as they are."""

    def __init__(self, batches: list[EventBatch]) -> None:
        self.reading = Reading()
        self.rejected = []
        self.counters = {}
        self._batches = batches

    def __iter__(self) -> Iterator[EventBatch]:
        return iter(self._batches)


@SOME
@given(cases())
def test_public_functions(case: Case) -> None:
    expected = matches(case.program, case.events)
    try:
        found = list(weft.detect(case.events, case.program, engine="local"))
    except InputError:
        assume(False)
    shown = [(m.end, m.start, m.positions, m.query, _filled(sorted(m.bindings.items())), m.event) for m in expected]
    seen = [(m.end, m.start, m.positions, m.query, _filled(sorted(m.bindings.items())), m.event) for m in found]
    assert sorted(map(repr, map(_floats, seen))) == sorted(map(repr, map(_floats, shown)))
    assert [row[:4] for row in seen] == [row[:4] for row in shown]
    counts = weft.count(case.events, case.program, engine="local")
    assert counts == {q.name: sum(m.query == q.name for m in expected) for q in case.program.queries}


def _floats(row: Row) -> Row:
    """Numbers of the derived event as floats: a column with one float in it is one of floats."""
    event = row[-1]
    assert isinstance(event, dict)
    values = ((name, float(v) if isinstance(v, int) else v) for name, v in event.items())
    return (*row[:-1], sorted(values))
