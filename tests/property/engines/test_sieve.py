"""Events that a plan cannot use change nothing when they are left out; rows that no match shows are not sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given
from tests.driving import event_batches, run
from tests.harness import some
from tests.property.engines.test_mixed_equals_meaning import rows_of
from tests.strategies import Example, examples
from tests.strategies_chains import chain_streams, chain_texts
from tests.strategies_mixed import EventDict, Mixed, mixed_examples

from weft.algebra.query import Program
from weft.languages import compile_text
from weft.plan.planner import plan
from weft.runtime.data.events import EventBatch
from weft.runtime.lanes.sieve import BOUND, Sieve
from weft.runtime.spark.packing.wire import narrow, pack_events, unpack_events

SOME = some(30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
KEYED = "SELECT * WHERE A AS a {} B AS b FILTER a[x > 8] AND b[x > 8] PARTITION BY [k] WITHIN 1 HOUR"


def check(program: Program, events: Sequence[EventDict]) -> None:
    chosen = plan(program)
    batches = event_batches([events], chosen)
    sieve = Sieve(chosen, share=1)
    assert rows_of(run(chosen, [sieve(batch) for batch in batches]), program) == rows_of(run(chosen, batches), program)


@SOME
@given(mixed_examples())
def test_programs_of_several_languages(example: Mixed) -> None:
    check(example.program, example.events)


@SOME
@given(examples())
def test_regular_patterns(example: Example) -> None:
    check(example.program, example.events)


@SOME
@given(chain_texts(), chain_streams())
def test_sequences(text: str, events: list[EventDict]) -> None:
    check(compile_text(text, language="eql")[0], events)


def generated(count: int = 200) -> EventBatch:
    """Events with rows, a tenth of which can be in a match."""
    numbers = np.random.default_rng(1).integers(0, (3, 10, 4), (count, 3)).tolist()
    events = [{"type": "ABC"[kind], "ts": ts, "x": x, "k": k} for ts, (kind, x, k) in enumerate(numbers)]
    batch = event_batches([events], plan(compile_text(KEYED.format(";"), language="ceql")[0]))[0]
    return replace(batch, rows=pa.RecordBatch.from_pylist([{**event, "text": "long" * 9} for event in events]))


def test_events_that_no_query_can_use_are_left_out() -> None:
    events = generated()
    sieved = Sieve(plan(compile_text(KEYED.format(";"), language="ceql")[0]))(events)
    fit = {row["ts"] for row in events.rows.to_pylist() if row["type"] != "C" and row["x"] > 8}
    assert sieved.positions.tolist() == sorted(fit)
    assert len(sieved) < len(events) / 4


def test_the_first_event_of_a_type_stays_where_none_of_it_can_be_used() -> None:
    events, text = generated(), KEYED.format(";").replace("b[x > 8]", "b[x > 9]")
    sieved = Sieve(plan(compile_text(text, language="ceql")[0]))(events)
    fit = {row["ts"] for row in events.rows.to_pylist() if row["type"] == "A" and row["x"] > 8}
    assert set(sieved.positions.tolist()) == fit | {events.types.to_pylist().index("B")}


def test_types_decide_alone_where_most_events_can_be_used() -> None:
    events = generated()
    sieved = Sieve(plan(compile_text(KEYED.format(";"), language="ceql")[0]), share=0)(events)
    assert sieved.types.to_pylist() == [name for name in events.types.to_pylist() if name != "C"]


def test_rows_of_events_that_stand_between_others_are_not_sent() -> None:
    events = generated()
    sieved = Sieve(plan(compile_text(KEYED.format(":"), language="ceql")[0]))(events)
    assert len(sieved) == len(events)
    fits = [row["type"] != "C" and row["x"] > 8 for row in events.rows.to_pylist()]
    assert sieved.columns[BOUND].booleans.to_pylist() == fits
    packed = pack_events(narrow(sieved))
    assert len(packed) < len(pack_events(narrow(events))) / 2
    received = unpack_events(packed, events.ends, events.starts)
    expected = [row if fit else dict.fromkeys(row) for row, fit in zip(events.rows.to_pylist(), fits, strict=True)]
    assert received.rows.to_pylist() == expected
    assert BOUND not in received.columns
    assert received.types.to_pylist() == events.types.to_pylist()
