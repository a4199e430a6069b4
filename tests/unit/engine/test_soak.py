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
from weft.runtime.execution.matcher import Matcher
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
    "any of two": "SELECT * WHERE (A AS a OR B AS b) ; C AS c PARTITION BY [k] WITHIN 20 MILLISECONDS",
    "of matches": "QUERY q AS SELECT a[s] AS s WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 20 MILLISECONDS\n"
    "QUERY r AS SELECT * WHERE q AS x ; C AS y FILTER x[s] = y[s] WITHIN 30 MILLISECONDS",
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
    "runs": "(A a){2} ; B b WHERE (a, b) OCCURS WITHIN 20 msec",
    "three": "A a ; B b ; C c WHERE FILTER(a.s = b.s AND b.k = c.k) AND (a, c) OCCURS WITHIN 50 msec",
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
    "rules of rules": "define X(s: string) from B() and each A(k = B.k) within 50 from B where s = A.s\n"
    "define Y() from C() and last X(s = C.s) within 30 from C and not D(s = X.s) between X and C",
}
EPN = {
    **{
        f"{kind} {context}": f"{kind}(A a, B b) where a.{key} = b.{key} context {context}"
        for kind in ("sequence", "all")
        for key, context in (("k", "sliding 40 every 10"), ("s", "fixed 40"), ("k", "from C for 30 by k"))
    },
    **{
        f"{policy}": f"sequence(A a, B b, C c) where a.k = b.k context sliding 40 every 10 policies {policy}"
        for policy in (
            "evaluation deferred",
            "evaluation immediate, cardinality single, repeated first",
            "repeated last, consumption consume",
            "repeated override",
        )
    },
    "any": "any(A a, B b) where a.x > 3 context fixed 40 by k",
    "until": "sequence(A a, B b) where a.k = b.k context from C until D",
    "absence": "absence(A a) context sliding 40 every 10",
    "absence by a key that is forgotten": "absence(A a) context sliding 40 every 10 by k forget 50 derive k = k",
    "absence of an opener": "absence(A a) context from B for 30 by k",
    "patterns of patterns": "sequence(A a, B b) where a.k = b.k context sliding 40 every 10 derive k = a.k, s = a.s\n"
    "pattern Q sequence(P p, C c) where p.s = c.s context sliding 40 every 10",
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
    for name, text in EPN.items():
        yield f"epn {name}", "epn", f"pattern P {text}"


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


AB = weft.Pattern.begin("a").subtype("A").followed_by("b").subtype("B")
PATTERNS = {
    "next": AB,
    "any": weft.Pattern.begin("a").subtype("A").one_or_more().followed_by_any("b").subtype("B"),
    "greedy": AB.times_or_more(2).greedy().next("c").subtype("C"),
    "skip to next": AB.after_match(weft.AfterMatch.skip_to_next()),
    "skip past last": AB.one_or_more().after_match(weft.AfterMatch.skip_past_last_event()),
    "absent between": weft.Pattern.begin("a").subtype("A").not_followed_by("b").subtype("B").followed_by("c"),
    "absent": weft.Pattern.begin("a").subtype("A").not_followed_by("b").subtype("B"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("key", ["k", "s"])
@pytest.mark.parametrize("name", PATTERNS)
def test_memory_of_built_patterns_does_not_grow_with_the_stream(name: str, key: str) -> None:
    sizes = held(PATTERNS[name].by(key).within(30).program())
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
