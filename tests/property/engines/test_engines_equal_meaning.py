"""Every engine gives exactly the matches that are meant: for any program and stream, any batches, any restart."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches, run, run_in_lanes, run_with_restarts
from tests.harness import some
from tests.strategies import EventDict, Example, examples

from weft import DataWarning, api
from weft.algebra.meaning import Match, matches
from weft.algebra.query import Program
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher

SOME = some(30)

Row = tuple[object, ...]


# ---------------------------------------------------------------- both sides as rows


def meant(program: Program, events: list[EventDict]) -> list[Row]:
    return sorted(row_of(m) for m in matches(program, events))


def row_of(match: Match) -> Row:
    bound = tuple(sorted(match.bindings.items()))
    return match.query, match.start, match.end, match.first, match.last, bound


def rows_of(batches: Iterable[MatchBatch]) -> list[Row]:
    return sorted(row for batch in batches for row in _rows(batch))


def _rows(batch: MatchBatch) -> Iterator[Row]:
    for i in range(len(batch)):
        bound: dict[str, tuple[int, ...]] = {}
        for at in range(int(batch.offsets[i]), int(batch.offsets[i + 1])):
            for name in batch.names[batch.labels[at]]:
                bound[name] = (*bound.get(name, ()), int(batch.positions[at]))
        own = batch.positions[batch.offsets[i] : batch.offsets[i + 1]].tolist() or [
            int(batch.starts[i]),
            int(batch.ends[i]),
        ]
        first = own[0] if batch.firsts is None else int(batch.firsts[i])
        last = own[-1] if batch.lasts is None else int(batch.lasts[i])
        yield batch.query, int(batch.starts[i]), int(batch.ends[i]), first, last, tuple(sorted(bound.items()))


# ---------------------------------------------------------------- the matcher


@SOME
@given(examples())
def test_one_batch(example: Example) -> None:
    chosen = plan(example.program)
    found = run(chosen, event_batches([example.events], chosen))
    assert rows_of(found) == meant(example.program, example.events)


@SOME
@given(examples())
def test_any_batches(example: Example) -> None:
    chosen = plan(example.program)
    found = run(chosen, event_batches(example.batches, chosen))
    assert rows_of(found) == meant(example.program, example.events)


@SOME
@given(examples())
def test_one_event_at_a_time(example: Example) -> None:
    chosen = plan(example.program)
    found = run(chosen, event_batches([[event] for event in example.events], chosen))
    assert rows_of(found) == meant(example.program, example.events)


@SOME
@given(examples())
def test_counting(example: Example) -> None:
    chosen = plan(example.program)
    matcher = Matcher(chosen)
    totals = {query.name: 0 for query in example.program.queries}
    for batch in event_batches(example.batches, chosen):
        for name, number in matcher.count(batch).items():
            totals[name] += number
    for rest in matcher.finish():
        totals[rest.query] += len(rest)
    rows = meant(example.program, example.events)
    assert totals == {name: sum(row[0] == name for row in rows) for name in totals}


@SOME
@given(examples(), st.integers(1, 3))
def test_restarts(example: Example, every: int) -> None:
    chosen = plan(example.program)
    found = run_with_restarts(chosen, event_batches(example.batches, chosen), every)
    assert rows_of(found) == meant(example.program, example.events)


# ---------------------------------------------------------------- splitting the work


@SOME
@given(examples(), st.integers(2, 3))
def test_lanes_may_be_split_by_key(example: Example, lanes: int) -> None:
    chosen = plan(example.program)
    found = run_in_lanes(chosen, event_batches([example.events], chosen), example.events, lanes)
    assert rows_of(found) == meant(example.program, example.events)


@SOME
@given(examples())
def test_irrelevant_events_may_be_left_out(example: Example) -> None:
    chosen = plan(example.program)
    relevant = chosen.relevant_types
    batches = event_batches([example.events], chosen)
    if relevant is not None:
        keep = np.flatnonzero([event["type"] in relevant for event in example.events])
        batches = [blocks.take(batch, keep) for batch in batches]
    assert rows_of(run(chosen, [batch for batch in batches if len(batch)])) == meant(example.program, example.events)


# ---------------------------------------------------------------- the public functions


@SOME
@given(examples())
def test_detect_on_the_local_engine(example: Example) -> None:
    events = example.events
    expected = matches(example.program, events)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DataWarning)  # of types that no event has
        found = list(api.detect(events, example.program, engine="local"))
        counts = api.count(events, example.program, engine="local")
    assert sorted(map(_public, found), key=repr) == sorted(map(_public, expected), key=repr)
    assert list(map(_order, found)) == list(map(_order, expected))
    assert len({m.id for m in found}) == len(found)
    assert counts == {q.name: sum(m.query == q.name for m in expected) for q in example.program.queries}


def _public(match: object) -> Row:
    bound = sorted(match.bindings.items())  # type: ignore[attr-defined]
    return (*_order(match), bound, sorted(match.event.items()))  # type: ignore[attr-defined]


def _order(match: object) -> Row:
    """What match order looks at."""
    return match.end, match.start, match.positions, match.query  # type: ignore[attr-defined]
