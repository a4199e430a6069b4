"""Programs of several languages, with queries over what others define, give what is meant: in any batches and lanes,
after any restart, with the same ids and in the same order."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.harness import some
from tests.strategies_mixed import EventDict, Mixed, mixed_examples

from weft import api
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.plan.operators import Plan
from weft.plan.planner import plan
from weft.runtime import blocks
from weft.runtime.events import EventBatch
from weft.runtime.matcher import Matcher
from weft.runtime.matches import MatchBatch
from weft.runtime.reading.order import read_events
from weft.runtime.writing.match_rows import to_arrow

SOME = some(25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

Row = tuple[object, ...]


def meant(example: Mixed) -> list[Row]:
    """The matches as the definition gives them."""
    found = matches(example.program, example.events)
    return [
        (m.query, m.id, m.start, m.end, m.positions, bound(m.bindings.items()), json.dumps(m.event, sort_keys=True))
        for m in found
    ]


def bound(bindings: Iterable[tuple[str, Iterable[int]]]) -> Row:
    return tuple(sorted((name, tuple(positions)) for name, positions in bindings if positions))


def rows_of(batches: Iterable[MatchBatch], program: Program) -> list[Row]:
    """The matches of an engine, in match order."""
    return [
        (
            row["query"],
            row["id"],
            row["start"],
            row["end"],
            tuple(row["positions"]),
            bound(row["bindings"]),
            json.dumps(json.loads(row["event"]), sort_keys=True),
        )
        for row in to_arrow(batches, [query.name for query in program.queries]).to_pylist()
    ]


def check(found: list[Row], example: Mixed) -> None:
    """The same matches, and in match order: by end, start, positions and query."""
    expected = meant(example)
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert [(r[3], r[2], r[4], r[0]) for r in found] == [(r[3], r[2], r[4], r[0]) for r in expected]


def event_batches(parts: list[list[EventDict]], chosen: Plan) -> list[EventBatch]:
    """Each part read by itself, so that the kinds of a column may differ from batch to batch."""
    position = 0
    batches: list[EventBatch] = []
    for part in parts:
        read = read_events(part, columns=chosen.columns)
        batches += [replace(batch, positions=batch.positions + position) for batch in read]
        position += len(part)
    return batches


def run(chosen: Plan, batches: Iterable[EventBatch], queries: tuple[int, ...] | None = None) -> list[MatchBatch]:
    matcher = Matcher(chosen if queries is None else chosen.only(queries))
    found = [found for batch in batches for found in matcher.push(batch)]
    return [*found, *matcher.finish()]


@SOME
@given(mixed_examples())
def test_detect(example: Mixed) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(api.detect(example.events, example.program, rejects=[]))
        counts = api.count(example.events, example.program, rejects=[])
    check(
        [
            (m.query, m.id, m.start, m.end, m.positions, bound(m.bindings.items()), json.dumps(m.event, sort_keys=True))
            for m in found
        ],
        example,
    )
    assert counts == {name: sum(m.query == name for m in found) for name in example.program.names}


@SOME
@given(mixed_examples())
def test_any_batches(example: Mixed) -> None:
    chosen = plan(example.program)
    check(rows_of(run(chosen, event_batches(example.batches, chosen)), example.program), example)


@SOME
@given(mixed_examples(), st.integers(1, 3))
def test_restarts(example: Mixed, every: int) -> None:
    chosen = plan(example.program)
    matcher = Matcher(chosen)
    pages: dict[str, bytes] = {}
    found: list[MatchBatch] = []
    for number, batch in enumerate(event_batches(example.batches, chosen)):
        found += matcher.push(batch)
        for name, page in matcher.snapshot().items():
            if page is None:
                pages.pop(name, None)
            else:
                pages[name] = page
        if number % every == 0:
            matcher = Matcher.restore(chosen, dict(pages))
    check(rows_of([*found, *matcher.finish()], example.program), example)


@SOME
@given(mixed_examples(), st.integers(2, 3))
def test_lanes(example: Mixed, lanes: int) -> None:
    chosen = plan(example.program)
    batches = event_batches([example.events], chosen) if example.events else []
    found: list[MatchBatch] = []
    for group in chosen.lanes:
        keys = [tuple(event.get(name) for part in group.key for name in part) for event in example.events]
        known = list(dict.fromkeys(keys))
        lane_of = np.array([known.index(key) % lanes for key in keys])
        for lane in range(lanes):
            mine = [blocks.take(batch, np.flatnonzero(lane_of == lane)) for batch in batches]
            found += run(chosen, [batch for batch in mine if len(batch)], group.queries)
    check(rows_of(found, example.program), example)
