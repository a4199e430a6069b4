"""Programs of several languages, with queries over what others define, give what is meant: in any batches and lanes,
after any restart, with the same ids and in the same order."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable

from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.driving import event_batches, run, run_in_lanes, run_with_restarts
from tests.harness import some
from tests.strategies_mixed import Mixed, mixed_examples

from weft import api
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.plan.planner import plan
from weft.runtime.data.matches import MatchBatch
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
    found = run_with_restarts(chosen, event_batches(example.batches, chosen), every)
    check(rows_of(found, example.program), example)


@SOME
@given(mixed_examples(), st.integers(2, 3))
def test_lanes(example: Mixed, lanes: int) -> None:
    chosen = plan(example.program)
    batches = event_batches([example.events], chosen) if example.events else []
    check(rows_of(run_in_lanes(chosen, batches, example.events, lanes), example.program), example)
