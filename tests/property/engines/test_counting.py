"""Counting on the match graph gives as many matches as are meant: by paths, and under conditions in groups."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import event_batches, meant
from tests.strategies import Example, examples

import weft
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.automaton.counts import MatchCounts
from weft.runtime.operators.automaton.groups import GroupedCounts

pytestmark = pytest.mark.filterwarnings("ignore::weft.ProgramWarning", "ignore:no event has the type")
CONDITIONS = [
    "a[id] = b[id]",
    "a[x] < b[x]",
    "a[x] >= b[id]",
    "a[id] <> b[id]",
    "a[t] <= b[t]",
    "a[x] = b[t]",
    "INCREASING(a[x])",
    "DECREASING(b[id])",
    "COUNT(a) > 2",
    "COUNT(a) <= 2",
    "2 >= COUNT(b[x])",
    "COUNT(b) = 2",
    "COUNT(a) <> 2",
    "COUNT(a) < -1",
    "COUNT(a) < 2.5",
    "COUNT(a[x]) = COUNT(b[x])",
    "SUM(a[x]) > 4",
    "SUM(a[x]) = SUM(b[id])",
    "MIN(a[x]) = 1",
    "MAX(a[t]) > 'a'",
    "MAX(a[x]) < MIN(b[x])",
    "AVG(a[x]) > 1.5",
    "FIRST(a[x]) < LAST(a[x])",
    "LAST(b[t]) = 'b'",
    "MAX(a[x]) > b[x]",
    "b[id] <= SUM(a[x])",
    "COUNT(b) <> a[x]",
    "MIN(b[t]) = a[t]",
    "a[x] >= MIN(a[id])",
]


@pytest.fixture(autouse=True)
def _without_walking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(MatchCounts, "first_walked", 0)
    monkeypatch.setattr(MatchCounts, "most_walked", 0)
    return iter([None])


def counted(example: Example) -> dict[str, int]:
    chosen = plan(example.program)
    matcher = Matcher(chosen)
    totals = {query.name: 0 for query in example.program.queries}
    for batch in event_batches(example.batches, chosen):
        for name, number in matcher.count(batch).items():
            totals[name] += number
    for rest in matcher.finish():
        totals[rest.query] += len(rest)
    return totals


@some(30)
@given(examples())
def test_any_program(example: Example) -> None:
    rows = meant(example.program, example.events)
    totals = counted(example)
    assert totals == {name: sum(row[0] == name for row in rows) for name in totals}


values = st.sampled_from([1, 2, 3, 1.5, 2.0, None, "a", "b", True])
events = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from("AABC"), "id": st.integers(1, 2), "x": values, "t": st.sampled_from(["a", "b", None])}
    ),
    min_size=3,
    max_size=9,
)


@some(40)
@given(events, st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=2), st.sampled_from(["", "WITHIN 5 EVENTS"]))
def test_conditions(stream: list[dict[str, object]], conditions: list[str], window: str) -> None:
    program = weft.compile(
        f"SELECT * FROM S WHERE (A+ AS a ; B+ AS b) ; C FILTER {' AND '.join(conditions)} {window or 'WITHIN 1 DAY'}"
    )
    timed = [{**event, "ts": at} for at, event in enumerate([*stream, {"type": "C"}])]
    assert weft.count(timed, program) == {"q": len(meant(program, timed))}


def test_groups_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used: set[str] = set()
    condition = ""
    count = GroupedCounts.count
    monkeypatch.setattr(GroupedCounts, "count", lambda *given: used.add(condition) or count(*given))  # type: ignore[func-returns-value]
    stream = [
        {"type": name, "ts": at, "id": 5 + at % 2, "x": at, "t": "ab"[at % 2]} for at, name in enumerate("AAABBBC")
    ]
    for condition in CONDITIONS:
        program = f"SELECT * FROM S WHERE (A+ AS a ; B+ AS b) ; C FILTER {condition} WITHIN 1 DAY"
        assert weft.count(stream, program) == {"q": len(meant(weft.compile(program), stream))}
    assert len(used) >= 14, sorted(set(CONDITIONS) - used)
