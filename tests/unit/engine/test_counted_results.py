"""Queries whose matches are counted without being emitted: how far partial matches come, without Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import weft
from weft.algebra.prefixes import funnels_of, is_step, prefixes, step_names, with_steps
from weft.inputs import open_input
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.runtime.results.results import Results
from weft.runtime.spark.jobs.generations import first_generation
from weft.runtime.spark.lanes.emission import EmissionFilter

TEXT = """QUERY fire AS SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a[x] = b[x] WITHIN 20 EVENTS
QUERY runs AS SELECT * WHERE A AS a ; B+ AS b ; C AS c WITHIN 3 EVENTS"""
EVENTS = [{"type": "ABC"[n * 5 % 7 % 3], "ts": n, "x": n % 4} for n in range(60)]


def test_steps_are_counted_and_matches_are_told_under_the_names_of_now() -> None:
    program = weft.compile(TEXT)
    widened, steps = with_steps(program)
    assert {name: [step for step, _ in own] for name, own in steps.items()} == {"fire": ["a", "b"], "runs": ["a"]}
    chosen = plan(widened)
    names = {"fire": "blaze", "fire/1": "blaze/1"}
    counted = step_names(steps) - {"fire/1"} | {"blaze/1"}
    telling = EmissionFilter(replace(first_generation(widened.queries, chosen, ()), names=names), {})
    told = Results(Matcher(chosen), [query.name for query in widened.queries], None, told=telling, counted=counted)
    found: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for batch in open_input(EVENTS, widened, time="ts", type="type", shown=None):
        for rows in told.push(batch):
            found.update(rows["query"].to_pylist())
        counts.update(told.newly_counted())
    assert told.newly_counted() == {}
    expected = {name: dict(own) for name, own in weft.funnel(EVENTS, program).items()}
    assert found == {"blaze": expected["fire"]["match"], "runs": expected["runs"]["match"]}
    assert counts == {
        "blaze/1": expected["fire"]["a"],
        "fire/2": expected["fire"]["b"],
        "runs/1": expected["runs"]["a"],
    }
    back = {**counts, "fire/1": counts["blaze/1"], "fire": found["blaze"], "runs": found["runs"]}
    assert funnels_of(steps, back)["fire"] == weft.funnel(EVENTS, program)["fire"]


def test_steps_are_known_by_their_names() -> None:
    (query, _) = weft.compile(TEXT).queries
    names = [part.name for _, part in prefixes(query)]
    assert all(is_step(name, {"fire"}) for name in names)
    assert not any(is_step(name, {"other"}) for name in (*names, "fire", "other"))
    assert not is_step("other/x", {"other"})
    assert replace(query, name="fire") == query
