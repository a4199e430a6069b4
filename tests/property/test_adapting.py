"""Queries that change their form while they run find what is meant, each match once, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.strategies_chains import RATES, TYPES, chain_texts

import weft
from weft.api import detect
from weft.engines import start
from weft.errors import ProgramError
from weft.languages import compile_text
from weft.live_program import live
from weft.optimizer.pipeline import Choices
from weft.runtime import adapting
from weft.runtime.writing.match_rows import rows_to_matches

pytestmark = [pytest.mark.filterwarnings("ignore::weft.DataWarning"), pytest.mark.xdist_group("adapting")]
SEEN: Counter[str] = Counter()
Events = list[dict[str, object]]


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """Say how often forms changed, and refuse a run in which none did."""
    yield
    print(f"\nchanges: {dict(SEEN)}")
    assert not SEEN["streams"] or (SEEN["changed"] and SEEN["with matches"]), dict(SEEN)


@st.composite
def streams(draw: st.DrawFn) -> Events:
    """A stream whose rates change in the middle: first some types are frequent, then others."""
    often = draw(st.permutations(TYPES))
    events: Events = []
    end = 0
    for kinds in (often[:2] * 3 + often[2:], often[2:] * 3 + often[:2]):
        for _ in range(draw(st.integers(24, 40))):
            end += draw(st.integers(0, 1))
            values = {"k": draw(st.sampled_from([0, 0, 1])), "x": draw(st.integers(0, 2))}
            events.append({"type": draw(st.sampled_from(kinds)), "ts": end, **values})
    return events


@some(60)
@given(chain_texts(3, 3), RATES, streams(), st.integers(2, 9))
def test_changes_lose_and_repeat_nothing(text: str, rates: dict[str, float], events: Events, size: int) -> None:
    bounded = f"{text}{', ' if 'WHERE' in text else ' WHERE '}(v0, v{max_variable(text)}) OCCURS WITHIN 30"
    try:
        program = replace(compile_text(bounded, language="eql")[0], inputs=())
    except ProgramError:
        return
    known = weft.Statistics(rates)
    meant = [match.id for match in detect(events, program, engine="meaning", rejects=[])]
    with (
        patch.multiple(adapting, FIRST_LOOK=1, ENOUGH=1, GAIN=1.0001),
        live(program, statistics=known, rejects=[]) as running,
    ):
        found = [match.id for at in range(0, len(events), size) for match in running.push(events[at : at + size])]
        found += [match.id for match in running.finish()]
        changes = running.counters.get("changes", 0)
    SEEN["streams"] += 1
    SEEN["changed"] += bool(changes)
    SEEN["with matches"] += bool(changes and meant)
    assert Counter(found) == Counter(meant)


def max_variable(text: str) -> int:
    return max(number for number in range(6) if f"v{number}" in text)


def test_a_query_that_changed_can_be_removed() -> None:
    text = "SELECT * FROM A a ; (B b | D d) ; C c WHERE (a, c) OCCURS WITHIN 50"
    events = [{"type": "C" if n % 9 == 0 else "B" if n % 70 == 1 else "A", "ts": n} for n in range(420)]
    known = weft.Statistics({"A": 1, "B": 50, "C": 50, "D": 1})
    with (
        patch.multiple(adapting, FIRST_LOOK=1, ENOUGH=1, GAIN=1.0001),
        live(statistics=known, rejects=[]) as running,
    ):
        running.deploy(weft.compile(text, "eql"))
        for at in range(0, len(events), 70):
            running.push(events[at : at + 70])
        assert running.counters["changes"] > 0
        running.remove("q")
        assert not list(running.push([{"type": name, "ts": 500 + n} for n, name in enumerate("ABC")]))


def test_one_matcher_over_a_table_changes_too() -> None:
    program = weft.compile("SELECT * FROM A a ; (B b ; C c) WHERE (a, c) OCCURS WITHIN 40", "eql")
    events = [{"type": "AAAABC"[n % 6], "ts": n} for n in range(300)]
    batches = pa.Table.from_pylist(events).to_batches(max_chunksize=64)
    meant = [match.id for match in detect(events, program, engine="meaning")]
    for known in (weft.Statistics({"A": 1, "B": 100, "C": 1}), weft.Statistics({"A": 100, "B": 1, "C": 100})):
        with patch.multiple(adapting, FIRST_LOOK=1, ENOUGH=1, GAIN=1.0001):
            run = start(iter(batches), program, "local", time="ts", type="type", choices=Choices(True, known))
            assert [match.id for rows in run.rows() for match in rows_to_matches(rows)] == meant
            SEEN["changed"] += run.counters.get("changes", 0)
