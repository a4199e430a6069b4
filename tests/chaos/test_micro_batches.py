"""A process that ends at any step, or at several, loses nothing and doubles nothing.

The run without a fault is the expectation. WEFT_HISTORIES says how many are tried, WEFT_SEED with which streams;
`make chaos` tries 100,000.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from random import Random

import pytest
from tests.chaos import micro_batches
from tests.chaos.micro_batches import EventDict, Found, Lanes, history

import weft
from weft.optimizer.pipeline import optimize
from weft.plan.operators import Plan
from weft.plan.partitioning.by_slice import usual
from weft.plan.planner import plan
from weft.runtime.data.matches import MatchBatch

HISTORIES = int(os.environ.get("WEFT_HISTORIES", "1000"))
SEED = int(os.environ.get("WEFT_SEED", "0"))  # of the first stream
STEP = 'topology "t"\n' + "\n".join(f'external {name}(k: int, x: int) < "{name}.jsonl" [1.0]' for name in "ABC")
PROGRAMS = {
    "ceql": ("ceql", "SELECT * WHERE A AS a ; B+ AS b ; C PARTITION BY [k] WITHIN 30 MILLISECONDS"),
    "ceql last": ("ceql", "SELECT LAST * WHERE A AS a ; B AS b FILTER a[x] < b[x] WITHIN 6 EVENTS CONSUME BY ANY"),
    "ceql of ceql": (
        "ceql",
        "QUERY pair AS SELECT a[k] AS k WHERE A AS a ; B AS b WITHIN 5 MILLISECONDS\n"
        "QUERY again AS SELECT * WHERE pair AS p ; C AS c FILTER p[k] = c[k] WITHIN 9 MILLISECONDS",
    ),
    "ceql session": ("ceql", "SELECT * WHERE A ; B PARTITION BY [k] SESSION 3 MILLISECONDS"),
    "eql": ("eql", "SELECT a.x FROM A a ; B b WHERE FILTER(a.k = b.k) AND (a, b) OCCURS WITHIN 9 msec"),
    "eql absence": ("eql", "SELECT * FROM (A a @ 4 msec) \\ B b WHERE b.k = a.k"),
    "step": ("step", f"{STEP}\nQ(*): A ;?[A.k = B.k && dur < 9] B\nR(A.x): (A +?[prev(A.k) = A.k]) ;[dur < 9] C"),
    "tesla": ("tesla", "define X(v: int) from B() and each A(k = B.k) within 8 from B where v = A.x consuming A"),
    "tesla of tesla": (
        "tesla",
        "define X(v: int) from B() and last A() within 5 from B where v = A.x\n"
        "define Y() from X(v > 0) and not C() within 4 from X",
    ),
    "epn": ("epn", "pattern p sequence(A a, B b) where a.k = b.k context sliding 9 every 3"),
    "epn absence": ("epn", "pattern p absence(A a) context fixed 4 by k"),
    "epn forgetting": ("epn", "pattern p absence(A a) context fixed 3 by k forget 2"),
    "epn deferred": (
        "epn",
        "pattern p all(A a, C c) where a.x < c.x context from B for 6 policies evaluation deferred",
    ),
}
IN_LANES = [
    ("ceql", "key"),
    ("ceql", "rank"),
    ("ceql last", "one"),
    ("ceql of ceql", "query"),
    ("eql", "key"),
    ("eql", "slice"),
    ("eql", "replicate"),
    ("eql absence", "slice"),
    ("step", "slice"),
    ("tesla", "key"),
    ("epn", "key"),
    ("epn absence", "one"),
]
SHARE = HISTORIES // (len(PROGRAMS) + len(IN_LANES))


@cache
def chosen(name: str) -> Plan:
    language, text = PROGRAMS[name]
    return plan(optimize(weft.compile(text, language)))


def stream(seed: int) -> list[EventDict]:
    chance = Random(seed)
    time, events = 0, []
    for _ in range(12):
        time += chance.choice((0, 1, 1, 2, 5))
        events.append({"type": chance.choice("AABBC"), "ts": time, "k": chance.randrange(2), "x": chance.randrange(3)})
    return events


def tried(name: str, seed: int, most: int, split: Plan | None = None, lanes: Lanes = (None,)) -> int:
    """Try a fault at every step of a run, then pairs of them; how many histories that were."""
    events = stream(seed)
    expected, _ = history(chosen(name), events, seed)
    run = partial(history, split or chosen(name), events, seed, lanes=lanes)
    whole, steps = run()
    assert whole == expected, (name, seed, difference(whole, expected))
    chance = Random(seed)
    cases = [(at,) for at in range(1, steps + 1)]
    cases += [(at, at + chance.randint(1, steps)) for at in range(1, steps + 1)]
    for deaths in cases[:most]:
        found, _ = run(deaths=deaths)
        assert found == expected, (name, seed, deaths, difference(found, expected))
    return 2 + len(cases[:most])


def difference(found: Found, expected: Found) -> str:
    return f"lost {sorted((expected - found).elements())}, doubled or invented {sorted((found - expected).elements())}"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_lost_or_doubled_when_processes_die(name: str) -> None:
    done, seed = 0, SEED
    while done < SHARE:
        done += tried(name, seed, SHARE - done)
        seed += 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "strategy"), IN_LANES)
def test_nothing_is_lost_or_doubled_in_lanes(name: str, strategy: str) -> None:
    """However the work is shared out, the matches are those of one lane without a fault."""
    split = plan(chosen(name).program, strategy=strategy, lanes=3)
    lanes = [replace(lane, split=usual(lane.split)) for lane in split.lanes_for(3)]
    assert {lane.split.strategy for lane in lanes} == {strategy}
    done, seed = 0, SEED
    while done < SHARE:
        done += tried(name, seed, SHARE - done, split, lanes)
        seed += 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_simulator_notices_a_sink_that_is_written_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is written under another number when it is done again is there twice."""

    class Careless(micro_batches.Process):
        def _write(self, number: int, matches: Iterator[MatchBatch]) -> None:
            super()._write(number + 100 * self.steps, matches)

    name = "ceql of ceql"
    seed = next(seed for seed in range(20) if history(chosen(name), stream(seed), seed)[0])
    expected, steps = history(chosen(name), stream(seed), seed)
    monkeypatch.setattr(micro_batches, "Process", Careless)
    assert any(history(chosen(name), stream(seed), seed, (at,))[0] != expected for at in range(1, steps))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_streams_have_matches(name: str) -> None:
    assert any(history(chosen(name), stream(seed), seed)[0] for seed in range(8))
