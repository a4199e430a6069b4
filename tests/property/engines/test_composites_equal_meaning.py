"""The graph of composite patterns gives exactly the matches that are meant: any program, stream, batches, restart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.driving import run, run_in_lanes, run_with_restarts
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import row_of, rows_of
from tests.strategies_composite import EventDict, composite_streams, eql_programs, step_programs

from weft import api
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.errors import ProgramError
from weft.languages import compile_text
from weft.plan.operators import Plan
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.joins.operator import JoinOperator
from weft.runtime.reading.order import read_events
from weft.runtime.store import pages

SOME = some(30)


def compiled(text: str, language: str) -> Program | None:
    """The program without an order of sources, since the streams here come in their own; None: it is wrong."""
    try:
        return replace(compile_text(text, language=language)[0], inputs=())
    except ProgramError:
        return None


programs = st.one_of(
    eql_programs().map(lambda text: compiled(text, "eql")), step_programs().map(lambda text: compiled(text, "step"))
).filter(lambda program: program is not None)
# Several queries whose patterns have parts in common.
together = st.lists(programs, min_size=1, max_size=3).map(
    lambda found: replace(
        found[0], queries=tuple(replace(p.queries[0], name=f"q{n}") for n, p in enumerate([*found, found[0]]))
    )
)
streams = composite_streams()


def meant(program: Program, events: list[EventDict]) -> list[tuple[object, ...]]:
    return sorted(row_of(m) for m in matches(program, events))


def batches_of(events: list[EventDict], chosen: Plan, sizes: Iterable[int] = ()) -> list[EventBatch]:
    """The events as batches of these sizes, and the rest as one."""
    whole = list(read_events(events, columns=chosen.columns))
    if not whole:
        return []
    batch, at, parts = whole[0], 0, []
    for size in [*sizes, len(events)]:
        parts.append(blocks.slice(batch, min(at, len(batch)), size))
        at += size
    return [part for part in parts if len(part)]


sizes = st.lists(st.integers(1, 4), max_size=6)


@SOME
@given(programs, streams, sizes)
def test_any_batches(program: Program, events: list[EventDict], parts: list[int]) -> None:
    chosen = plan(program)
    assert rows_of(run(chosen, batches_of(events, chosen, parts))) == meant(program, events)


@SOME
@given(together, streams, sizes)
def test_queries_that_share_operators(program: Program, events: list[EventDict], parts: list[int]) -> None:
    chosen = plan(program)
    assert rows_of(run(chosen, batches_of(events, chosen, parts))) == meant(program, events)


@patch.object(pages, "ITEMS", 4)  # so that there are several pages
@SOME
@given(programs, streams, sizes, st.integers(1, 3), st.booleans())
def test_restarts_and_sweeps(
    program: Program, events: list[EventDict], parts: list[int], every: int, sweeps: bool
) -> None:
    chosen = plan(program)
    batches = batches_of(events, chosen, parts)
    found = run_with_restarts(chosen, batches, every, sweep if sweeps else id)
    assert rows_of(found) == meant(program, events)


def sweep(matcher: Matcher) -> None:
    """Give up all that can be given up, though there is little."""
    (graph,) = matcher.operators
    assert isinstance(graph, JoinOperator)
    graph.sweep_at = 0
    graph.sweep()


@SOME
@given(programs, streams, st.integers(2, 3))
def test_lanes_may_be_split_by_key(program: Program, events: list[EventDict], lanes: int) -> None:
    chosen = plan(program)
    found = run_in_lanes(chosen, batches_of(events, chosen), events, lanes)
    assert rows_of(found) == meant(program, events)


@SOME
@given(programs, streams)
def test_irrelevant_events_may_be_left_out(program: Program, events: list[EventDict]) -> None:
    chosen = plan(program)
    assert chosen.relevant_types is not None
    keep = np.flatnonzero([event["type"] in chosen.relevant_types for event in events])
    batches = [blocks.take(batch, keep) for batch in batches_of(events, chosen)]
    assert rows_of(run(chosen, [batch for batch in batches if len(batch)])) == meant(program, events)


@SOME
@given(together, streams)
def test_detect_and_count_on_the_local_engine(program: Program, events: list[EventDict]) -> None:
    expected = matches(program, events)
    found = list(api.detect(events, program, engine="local"))
    assert sorted(map(_public, found)) == sorted(map(_public, expected))
    assert list(map(_order, found)) == list(map(_order, expected))
    counts = api.count(events, program, engine="local")
    assert counts == {q.name: sum(m.query == q.name for m in expected) for q in program.queries}


def _public(match: object) -> str:
    bound = sorted(match.bindings.items())  # type: ignore[attr-defined]
    return repr((*_order(match), bound, sorted(match.event.items())))  # type: ignore[attr-defined]


def _order(match: object) -> tuple[object, ...]:
    return match.end, match.start, match.positions, match.query  # type: ignore[attr-defined]
