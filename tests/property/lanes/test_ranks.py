"""Shares of the matches of an event: disjoint, complete, and of sizes that differ by one match at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import Row, event_batches, meant, rows_of
from tests.strategies import Example, examples

import weft
from weft.algebra.query import Program
from weft.errors import UsageError
from weft.plan.operators import Plan
from weft.plan.partitioning.splits import Lane
from weft.plan.planner import plan
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher

pytestmark = pytest.mark.filterwarnings("ignore::weft.ProgramWarning")


def ranked(program: Program) -> Plan:
    try:
        return plan(program, strategy="rank")
    except UsageError:
        assume(False)
        raise


def shares(chosen: Plan, batches: list[EventBatch], lanes: int) -> list[list[MatchBatch]]:
    """What each lane finds."""
    return [found(chosen, batches, lane) for lane in chosen.lanes_for(lanes)]


def found(chosen: Plan, batches: Iterable[EventBatch], lane: Lane) -> list[MatchBatch]:
    matcher = Matcher(chosen, lane)
    return [piece for batch in batches for piece in matcher.push(batch)]


def has_conditions(chosen: Plan) -> bool:
    return any(op.automaton.conditions for op in chosen.operators)  # type: ignore[union-attr]


def sizes_by_end(rows: Iterable[Row]) -> Counter[object]:
    """How many matches of each query end at each position."""
    return Counter((row[0], row[4]) for row in rows)


@some(25)
@given(examples(), st.integers(1, 9))
def test_shares_of_any_query(example: Example, lanes: int) -> None:
    program = replace(example.program, queries=example.program.queries[:1])
    chosen = ranked(program)
    parts = [rows_of(own) for own in shares(chosen, event_batches(example.batches, chosen), lanes)]
    assert sorted(row for part in parts for row in part) == meant(program, example.events)
    if not has_conditions(chosen):
        ends = sizes_by_end(row for part in parts for row in part)
        counts = [sizes_by_end(part) for part in parts]
        assert all(max(c[end] for c in counts) - min(c[end] for c in counts) <= 1 for end in ends)


QUERIES = ["A+ ; B", "A ; B ; C", "A+ ; (B OR C)", "(A ; B)+ ; C", "A ; B+ ; C"]
WINDOWS = ["1 DAY", "3 EVENTS", "9 EVENTS", "4 MILLISECONDS"]


@some(40)
@given(
    st.sampled_from(QUERIES),
    st.sampled_from(WINDOWS),
    st.lists(st.sampled_from("AABC"), min_size=4, max_size=16),
    st.integers(1, 9),
    st.sampled_from([1, 4, 100]),
)
def test_many_matches(pattern: str, window: str, types: list[str], lanes: int, size: int) -> None:
    program = weft.compile(f"SELECT * FROM S WHERE {pattern} WITHIN {window}")
    events = [{"type": name, "ts": at} for at, name in enumerate(types)]
    chosen = ranked(program)
    batches = event_batches([events[at : at + size] for at in range(0, len(events), size)], chosen)
    whole = rows_of(found(plan(program), batches, plan(program).lanes_for(1)[0]))
    parts = [rows_of(own) for own in shares(chosen, batches, lanes)]
    assert sorted(row for part in parts for row in part) == whole
    counts = [sizes_by_end(part) for part in parts]
    assert all(max(c[end] for c in counts) - min(c[end] for c in counts) <= 1 for end in sizes_by_end(whole))


def test_lanes_take_turns_with_single_matches() -> None:
    program = weft.compile("SELECT * FROM S WHERE A : B WITHIN 1 DAY")
    chosen = plan(program, strategy="rank")
    (batch,) = event_batches([[{"type": "AB"[at % 2], "ts": at} for at in range(80)]], chosen)
    assert [sum(map(len, own)) for own in shares(chosen, [batch], 8)] == [5] * 8


@pytest.mark.parametrize("number", [60, 70, 1500])
def test_counts_that_no_word_holds(number: int) -> None:
    """More paths than a float or a word can tell, of which the window leaves few; and conditions that leave few."""
    windowed = weft.compile("SELECT * FROM S WHERE A+ ; B WITHIN 8 EVENTS")
    filtered = weft.compile("SELECT * FROM S WHERE A+ AS a ; B FILTER INCREASING(a[x]) WITHIN 1 DAY")
    for program, many in ((windowed, 2**8 - 1), (filtered, 2**4 - 1 + number - 4)):
        falling = [{"type": "A", "ts": at, "x": -at if at < number - 4 else at} for at in range(number)]
        if program is filtered:  # rising only at the end
            falling = [{**event, "x": -at if at < number - 4 else at - 10**6} for at, event in enumerate(falling)]
        chosen = plan(program, strategy="rank")
        batches = event_batches([[*falling, {"type": "B", "ts": number}]], chosen)
        parts = [rows_of(own) for own in shares(chosen, batches, 5)]
        together = [row for part in parts for row in part]
        assert len(set(together)) == len(together) == many


def test_a_restart_keeps_the_turn() -> None:
    program = weft.compile("SELECT * FROM S WHERE A : B WITHIN 1 DAY")
    chosen = plan(program, strategy="rank")
    batches = event_batches(
        [[{"type": name, "ts": 2 * at + k} for k, name in enumerate("AB")] for at in range(9)], chosen
    )
    sizes = []
    for lane in chosen.lanes_for(4):
        matcher, pages, own = Matcher(chosen, lane), {}, 0
        for batch in batches:
            own += sum(map(len, matcher.push(batch)))
            pages |= {name: page for name, page in matcher.snapshot().items() if page is not None}
            matcher = Matcher.restore(chosen, pages, lane)
        sizes.append(own)
    assert sorted(sizes) == [2, 2, 2, 3]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT MAX * FROM S WHERE A+ ; B WITHIN 1 DAY", "keeps few matches of an event .MAX"),
        ("SELECT NEXT * FROM S WHERE A+ ; B WITHIN 1 DAY", "keeps few matches of an event .NEXT"),
        ("SELECT * FROM S WHERE A+ ; B WITHIN 1 DAY LIMIT 3", "keeps few matches of an event .LIMIT"),
        ("SELECT b FROM S WHERE A+ AS a ; B AS b FILTER a[x] = b[x] WITHIN 1 DAY", "omits variables that distinguish"),
        (
            "SELECT * FROM S WHERE A+ AS a ; B AS b FILTER a[x] = b[x] WITHIN 1 DAY CONSUME BY ANY",
            "does not know whether others keep one",
        ),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=f"the strategy 'rank' is not possible for q: .*{reason}"):
        plan(weft.compile(text), strategy="rank")
