"""Heavy keys: they are found in a sample, lanes are more even with them, and nothing else changes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some

import weft
from weft.plan.partitioning.by_key import ByKey
from weft.plan.planner import plan
from weft.runtime.execution.threaded_matcher import ThreadedMatcher
from weft.runtime.lanes.heavy import SpaceSaving
from weft.runtime.reading.order import read_events

PROGRAM = "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 9 MILLISECONDS"


@some(30)
@given(st.lists(st.integers(0, 30), max_size=200), st.integers(1, 12))
def test_what_is_above_is_above(things: list[int], counters: int) -> None:
    counts = SpaceSaving(counters)
    for thing in things:
        counts.add(thing)
    true = Counter(things)
    assert all(true[thing] > 5 for thing in counts.above(5))
    # With enough counters none is missed that is so frequent.
    if counters >= 31:
        assert set(counts.above(5)) == {thing for thing, number in true.items() if number > 5}
    sure = {thing for thing, number in true.items() if number > 5 + 2 * len(things) / counters}
    assert sure <= set(counts.above(5))


def events(keys: list[Any]) -> list[dict[str, Any]]:
    return [{"type": "AB"[at % 2], "ts": at, "k": key} for at, key in enumerate(keys)]


def loads(keys: list[Any], lanes: int) -> tuple[list[int], ByKey]:
    chosen = plan(weft.compile(PROGRAM), strategy="key")
    crew = ThreadedMatcher(chosen, chosen.lanes_for(lanes))
    for batch in read_events(events(keys), columns=chosen.columns):
        list(crew.push(batch))
    split = crew.lanes[0].split
    assert isinstance(split, ByKey)
    return [member.counters["events"] for member in crew.members], split


def test_a_heavy_key_has_a_lane_of_its_own() -> None:
    dice = random.Random(1)
    keys = ["often" if dice.random() < 0.5 else f"k{dice.randrange(500)}" for _ in range(4000)]
    found, split = loads(keys, 8)
    assert split.own == 1
    assert found[0] == keys.count("often")
    assert max(found[1:]) < 1.6 * (len(keys) - found[0]) / 7


def test_few_keys_are_dealt_evenly() -> None:
    found, _ = loads([f"k{at % 16}" for at in range(4800)], 8)
    assert max(found) == min(found) == 600


def test_keys_that_are_alike_have_buckets() -> None:
    dice = random.Random(1)
    found, split = loads([dice.randrange(5000) for _ in range(8000)], 4)
    assert (split.own, split.placed) == (0, ())
    assert sum(found) == 8000


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_the_answer_is_the_same(lanes: int) -> None:
    dice = random.Random(lanes)
    drawn = [dice.choice([None, 1, 1.0, 1.5, "1", True, "x", 2, 3, "often", "often", "often"]) for _ in range(600)]
    given = [{name: value for name, value in event.items() if value is not None} for event in events(drawn)]
    shared = weft.detect(given, PROGRAM, strategy="key", lanes=lanes)
    assert list(shared) == list(weft.detect(given, PROGRAM, engine="meaning"))
