"""Absences in windows over any gaps of time: runs of empty windows are closed in few steps, by every engine alike."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import row_of, rows_of

import weft
from weft.algebra.meaning import matches, partitions
from weft.errors import BudgetError
from weft.languages import compile_text
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.situations import memory

YEAR_9999 = 253_370_764_800_000
CONTEXTS = ("fixed 10", "fixed 1", "sliding 10 every 3", "sliding 3 every 7")
FORGETS = ["", " forget 2", " forget 30", " forget 10000"]
JUMPS = [1, 2, 5, 30, 200, 10_000, 2**40, 2**61]
steps = st.tuples(st.sampled_from("AAABC"), st.sampled_from(JUMPS), st.sampled_from([0, 0, 4, 50]), st.integers(0, 1))


@pytest.fixture(scope="module", autouse=True)
def _short_runs() -> Iterator[None]:
    """Runs are long already with four windows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "TOLD_SINGLY", 3)
        patch.setattr(partitions, "TOLD_SINGLY", 3)
        yield


def _events(drawn: list[tuple[str, int, int, int]]) -> list[dict[str, object]]:
    end, found = -5, []
    for type_, later, length, key in drawn:
        end += later
        if end < 2**62:
            found.append({"type": type_, "start": end - length, "end": end, "k": key})
    return found


@some(40)
@given(
    st.sampled_from(CONTEXTS),
    st.booleans(),
    st.lists(steps, min_size=1, max_size=8),
    st.booleans(),
    st.sampled_from(["absence(A a)", "absence(A a, B b)", "any(A a)", "all(A a, B b)"]),
    st.sampled_from(FORGETS),
)
def test_any_gaps_give_what_is_meant(
    context: str, keyed: bool, drawn: list[tuple[str, int, int, int]], restarts: bool, pattern: str, forget: str
) -> None:
    text = f"pattern P {pattern} context {context}" + (" by k" if keyed else "")
    text += forget if keyed and pattern.startswith("absence") else ""
    program, _ = compile_text(text, language="epn")
    events, chosen = _events(drawn), plan(program)
    matcher, pages, found = Matcher(chosen), {}, []
    for batch in event_batches([[event] for event in events], chosen):
        found += matcher.push(batch)
        if restarts:
            pages = {name: page for name, page in {**pages, **matcher.snapshot()}.items() if page is not None}
            matcher = Matcher.restore(chosen, dict(pages))
    found += matcher.finish()
    expected = sorted(row_of(match) for match in matches(program, events))
    assert [row[:3] for row in rows_of(found)] == [row[:3] for row in expected]


@some(30)
@given(st.sampled_from(CONTEXTS), st.lists(steps, min_size=2, max_size=8))
def test_a_pattern_over_absences_sees_them_in_order(context: str, drawn: list[tuple[str, int, int, int]]) -> None:
    text = f"pattern P absence(A a) context {context}\npattern Q sequence(P p, B b) context fixed 1000"
    program, _ = compile_text(text, language="epn")
    events, chosen = _events([(type_, later, 0, key) for type_, later, _, key in drawn]), plan(program)
    matcher = Matcher(chosen)
    found = [found for batch in event_batches([[event] for event in events], chosen) for found in matcher.push(batch)]
    found += matcher.finish()
    expected = sorted(row_of(match) for match in matches(program, events))
    assert [row[:3] for row in rows_of(found)] == [row[:3] for row in expected]


TEXT = "pattern Silent absence(A a) context fixed 1 min"


def test_an_event_of_the_year_9999_is_pushed() -> None:
    program = weft.live(max_jump=None)
    program.deploy(TEXT, language="epn")
    program.push([{"type": "A", "ts": 0}])
    found = program.push([{"type": "A", "ts": YEAR_9999}])
    assert 0 < len(found) < 100
    spans = sorted((match.start, match.end) for match in found)
    assert spans[0][0] == 60_000
    assert all(one[1] == other[0] for one, other in pairwise(spans))


def test_a_budget_holds_inside_a_run_of_empty_windows() -> None:
    program = weft.live(max_jump=None, budget=weft.Budget(matches_per_batch=5))
    program.deploy(TEXT, language="epn")
    program.push([{"type": "A", "ts": 0}])
    with pytest.raises(BudgetError):
        program.push([{"type": "A", "ts": YEAR_9999}])
