"""Memory that stands still: what a pattern's bound says can no longer matter is given up, keys and texts included.

Each program sees hundreds of thousands of events, with keys and texts that never come again, and the bytes it holds are
counted. `make soak` does so for longer (WEFT_SOAK=20).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import weft
from weft.optimizer.pipeline import optimize
from weft.plan.planner import plan
from weft.runtime.matcher import Matcher
from weft.runtime.reading.order import read_events

ROUNDS, EVENTS = 16, 8_000 * int(os.environ.get("WEFT_SOAK", "1"))
STEP = 'topology "t"\n' + "\n".join(
    f'external {name}(k: int, s: string, x: int) < "{name}.jsonl" [1.0]' for name in "ABCD"
)
STRATEGIES = ("ALL", "ANY", "LAST", "MAX", "NEXT", "STRICT")
CEQL = {
    **{
        f"{strategy} keyed": f"SELECT {strategy} * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 40 EVENTS"
        for strategy in STRATEGIES
    },
    **{
        f"{strategy} texts": f"SELECT {strategy} * WHERE A AS a : B AS b PARTITION BY [s]"
        for strategy in ("ALL", "NEXT")
    },
    "in time": "SELECT * WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 40 MILLISECONDS",
    "runs": "SELECT NEXT * WHERE A ; B+ ; C PARTITION BY [k] WITHIN 30 MILLISECONDS",
    "conditions": "SELECT LAST * WHERE A AS a ; B AS b FILTER a[x] < b[x] AND a[s] <> b[s] WITHIN 20 MILLISECONDS",
    "session": "SELECT * WHERE A ; B PARTITION BY [k] SESSION 20 MILLISECONDS",
    "consumed": "SELECT LAST * WHERE A ; B WITHIN 20 EVENTS CONSUME BY ANY",
    "absent": "SELECT LAST * WHERE A AS a ; NOT(B) ; C AS c PARTITION BY [k] WITHIN 20 MILLISECONDS",
}
EQL = {
    "next": "A a ; B b WHERE FILTER(a.k = b.k) AND (a, b) OCCURS WITHIN 50 msec",
    "texts": "A a ; B b WHERE FILTER(a.s = b.s) AND (a, b) OCCURS WITHIN 50 msec",
    "exception": "(A a ; C c) \\ B b WHERE b.k = a.k AND (a, c) OCCURS WITHIN 50 msec",
    "exception in time": "(A a @ 50 msec) \\ B b WHERE b.k = a.k",
    "exception of two": "(A a @ 50 msec) \\ (B b ; C c) WHERE b.k = a.k",
    "exception of one of two": "((A a | D d) @ 50 msec) \\ B b WHERE b.x = 1",
    "exception without key": "(A a @ 50 msec) \\ B b",
    "after": "(A a @ 20 msec) ; B b WHERE FILTER(a.k = b.k) AND (a, b) OCCURS WITHIN 50 msec",
    "either": "(A a | B b) ; C c",
}
STEPS = {
    "each": "A ;?[A.k = B.k && dur < 50] B",
    "first": "A ;[A.k = B.k && dur < 50] B",
    "both": "A ,[A.k = B.k && dur < 50] B",
    "runs": "(A +?[prev(A.k) = A.k]) ;[dur < 30] B",
    "longest": "(A +[A.x > 1]) ;[dur < 30] B",
    "without": "A ; !B[B.k = A.k] ;[dur < 50] C",
    "texts": "A ;?[A.s = B.s && dur < 50] B",
}
TESLA = {
    "each": "define X() from B() and each A(k = B.k) within 50 from B",
    "last": "define X(s: string) from B() and last A(k = B.k) within 50 from B where s = A.s",
    "first": "define X() from C() and first B(x > 1) within 50 from C and each A() within 20 from B",
    "not": "define X() from C() and last A() within 50 from C and not B(k = A.k) between A and C",
    "sum": "define X(n: double) from C() and last A() within 50 from C where n = SUM(B(k = C.k).x within 50 from C)",
    "consuming": "define X() from B() and last A(k = B.k) within 50 from B consuming A",
    "texts": "define X() from B() and each A(s = B.s) within 50 from B",
}


def programs() -> Iterator[tuple[str, str, str]]:
    for name, text in CEQL.items():
        yield f"ceql {name}", "ceql", text
    for name, text in EQL.items():
        yield f"eql {name}", "eql", f"SELECT * FROM {text}"
    for name, text in STEPS.items():
        yield f"step {name}", "step", f"{STEP}\nQ(*): {text}"
    for name, text in TESLA.items():
        yield f"tesla {name}", "tesla", text


PROGRAMS = {name: (language, text) for name, language, text in programs()}


def batches(rounds: int) -> Iterator[pa.RecordBatch]:
    """Events of four types, a tick each; every key and every text comes a few times, and then no more."""
    for number in range(rounds):
        places = np.arange(number * EVENTS, (number + 1) * EVENTS)
        mixed = places * 2654435761 % 4294967296 >> 7
        keys = places // 12
        yield pa.record_batch(
            {
                "type": pa.array(np.array(list("ABCD"))[mixed % 4]),
                "ts": pa.array(places),
                "k": pa.array(keys),
                "s": pa.array([f"text {key}" for key in keys]),
                "x": pa.array(mixed % 5),
            }
        )


def held(program: weft.Program, given: Iterator[pa.RecordBatch] | None = None) -> list[int]:
    """The bytes that are held after each round."""
    matcher = Matcher(plan(optimize(program)))
    found = []
    for batch in read_events(given or batches(ROUNDS), ordered=True, batch_size=EVENTS):
        for _ in matcher.push(batch):
            pass
        found.append(matcher.state_bytes)
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_does_not_grow_with_the_stream(name: str) -> None:
    language, text = PROGRAMS[name]
    sizes = held(weft.compile(text, language))
    early, late = max(sizes[: ROUNDS // 2]), max(sizes[ROUNDS // 2 :])
    assert late <= 1.25 * early, sizes


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sessions_that_ended_without_a_match_are_given_up() -> None:
    """Each key has one event, which begins a match that no later one of its session can complete."""
    program = weft.compile("SELECT * WHERE A ; B PARTITION BY [k] SESSION 9 MILLISECONDS")
    rounds = (batch.set_column(0, "type", pa.array(["A"] * len(batch))) for batch in batches(ROUNDS))
    alone = (batch.set_column(2, "k", batch["ts"]) for batch in rounds)
    sizes = held(program, alone)
    assert max(sizes[ROUNDS // 2 :]) <= 1.25 * max(sizes[: ROUNDS // 2]), sizes


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_count_grows_where_nothing_bounds_a_pattern() -> None:
    sizes = held(weft.compile("SELECT * WHERE A AS a ; B AS b PARTITION BY [s]"))
    assert sizes[-1] > 1.4 * sizes[ROUNDS // 2 - 1]
