"""What is given up was of no more use: sweeping as often as can be changes no match, in any language."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given
from tests.harness import some
from tests.property.engines.test_mixed_equals_meaning import check, event_batches, rows_of
from tests.strategies_mixed import Mixed, mixed_examples

from weft.languages import compile_text
from weft.plan.planner import plan
from weft.runtime.classify import layer_keys, texts
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution import layers
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.joins import operator as joins_run
from weft.runtime.operators.joins import sweep as joins_sweep
from weft.runtime.operators.situations import stage

SOME = some(25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
BOUNDS = [
    (layers, "LEAST_PLACES"),
    (texts, "LEAST_TEXTS"),
    (layer_keys, "LEAST_SLOTS"),
    (joins_run, "LEAST_ROWS"),
    (joins_sweep, "LEAST_ROWS"),
    (stage, "LEAST_EVENTS"),
]


@pytest.fixture(autouse=True, scope="module")
def sweeping_at_once() -> Iterator[None]:
    """Nothing is too little for a sweep."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in BOUNDS:
            patch.setattr(module, name, 0)
        patch.setattr(joins_run, "sweep_graph", sweep_always)
        yield


def sweep_always(run: joins_run.JoinOperator) -> None:
    """A sweep of the graph, however few rows it has gained since the last."""
    run.sweep_at = -1
    joins_sweep.sweep_graph(run)


@SOME
@given(mixed_examples())
def test_sweeping_after_every_event_changes_nothing(example: Mixed) -> None:
    chosen = plan(example.program)
    matcher = Matcher(chosen)
    batches = event_batches([[event] for event in example.events], chosen)
    found: list[MatchBatch] = [found for batch in batches for found in matcher.push(batch)]
    check(rows_of([*found, *matcher.finish()], example.program), example)


STEP = 'topology "t" external A(k: int) < "a" [1.0] external B(k: int) < "b" [1.0] external C(k: int) < "c" [1.0] '


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("step", STEP + "Q(*): A/a ;[dur <= 5] B/b"),
        ("step", STEP + "Q(*): A/a ;?[dur < 6] B/b"),
        ("step", STEP + "Q(*): A/a ; !C/c ;[dur <= 5] B/b"),
        ("eql", "SELECT * FROM A a ; B b WHERE FILTER((a, b) OCCURS WITHIN 5)"),
        ("eql", "SELECT * FROM A a ; B b WHERE (a, b) OCCURS WITHIN 5"),
        ("ceql", "SELECT * WHERE A AS a ; B AS b FILTER a[k] = b[k] PARTITION BY [k] WITHIN 5 MILLISECONDS"),
        ("epn", "pattern Q sequence(A a, B b) where a.k = b.k context sliding 6 every 1"),
        ("epn", "pattern Q all(A a, B b) context from A for 6"),
        ("tesla", "define Q(k: int) from B() and each A() within 5 from B where k = A.k"),
    ],
)
def test_what_may_still_take_part_at_the_last_moment_is_kept(language: str, text: str) -> None:
    """Between an event and its partner at the very end of the window, sweeps come at every moment."""
    program = compile_text(text, language=language)[0]
    events = [{"type": "A", "ts": 10, "k": 1}]
    events += [{"type": "X", "ts": ts, "k": 1} for ts in (12, 14, 15, 15)]
    events.append({"type": "B", "ts": 15, "k": 1})
    example = Mixed((), list(events))
    chosen = plan(program)
    matcher = Matcher(chosen)
    found: list[MatchBatch] = []
    for batch in event_batches([[event] for event in example.events], chosen):
        found += matcher.push(batch)
    found += matcher.finish()
    assert [tuple(batch.positions.tolist()) for batch in found if len(batch)] == [(0, 5)]


def test_what_waits_for_an_operator_that_lags_is_kept() -> None:
    """A greedy run is told when it is over, long after it ended: what began before it waits as long."""
    program = compile_text(STEP + "Q(*): A/a ;[dur <= 5] (B/b+[prev(b.k) = b.k])", language="step")[0]
    events = [("A", 10, 1), ("B", 12, 1), ("B", 14, 1), ("X", 20, 1), ("X", 30, 1), ("B", 40, 2), ("X", 50, 1)]
    chosen = plan(program)
    matcher = Matcher(chosen)
    batches = event_batches([[{"type": type_, "ts": ts, "k": k}] for type_, ts, k in events], chosen)
    found = [found for batch in batches for found in matcher.push(batch)]
    assert [tuple(batch.positions.tolist()) for batch in found if len(batch)] == [(0, 1, 2)]
