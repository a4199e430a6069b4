"""Sessions, the best of each span, counts and computed fields: the engine gives the matches that are meant."""

from __future__ import annotations

import random
import warnings

from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches, run
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import meant, rows_of
from tests.property.running.test_time_passes import with_time
from tests.strategies_chain import EventDict, streams

import weft
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.languages import compile_text
from weft.plan.planner import plan
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher

SOME = some(50)
FORMULAS = (
    *("A:+ AS a", "(A OR B):+ AS a", "A AS a ; B", "A AS a ; B? ; C", "A{2} AS a ; C", "A:{1,2} AS a : B"),
    *("A{2,} AS a", "(A ; B){1,2} AS a", "A? ; B+ AS a", "B AS a FILTER a[x BETWEEN 0 AND 1]"),
    *("A+ AS a FILTER a[x IS NOT NULL]", "(A OR B) AS a FILTER a[ABS(x - 1) = 1 OR LENGTH(UPPER(k)) = 2]"),
)
FORMULAS += (
    "A AS a ; B AS b FILTER ABS(a[x] - b[x]) <= 1 AND UPPER(a[k]) = UPPER(b[k])",
    "(A OR C)+ AS a ; B AS b FILTER COALESCE(a[x], 5) > ABS(b[x] - 2) + LENGTH(b[k])",
)
VALUES = ("COUNT(a)", "SUM(a[x]) + 1", "MAX(a[x]) - MIN(a[x])", "AVG(a[x])", "COALESCE(FIRST(a[x]), -1)", "LAST(a[k])")


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A query with some of the clauses."""
    fields = draw(st.lists(st.sampled_from(VALUES), max_size=3, unique=True))
    plain = draw(st.sampled_from(["*", "a"]))
    selected = ", ".join(f"{value} AS f{number}" for number, value in enumerate(fields)) or plain
    text = f"SELECT {selected} WHERE {draw(st.sampled_from(FORMULAS))}"
    text += draw(st.sampled_from(["", " PARTITION BY [k]"]))
    session = draw(st.sampled_from(["", "", " SESSION 1 MILLISECOND", " SESSION 3 MILLISECONDS"]))
    top = f" ORDER BY {draw(st.sampled_from(VALUES))} {draw(st.sampled_from(['', 'ASC', 'DESC']))} LIMIT 2 EVERY "
    text += session + draw(st.sampled_from(["", top + "4 MILLISECONDS"])) + " WITHIN 9 MILLISECONDS"
    return compile_text(text, language="ceql")[0]


@SOME
@given(programs(), streams(), st.randoms(use_true_random=False))
def test_any_batches_and_times(program: Program, events: list[EventDict], rng: random.Random) -> None:
    chosen = plan(program)
    expected = meant(program, events)
    assert rows_of(run(chosen, event_batches([events[:3], events[3:5], events[5:]], chosen))) == expected
    assert rows_of(with_time(chosen, events, rng)) == expected


@SOME
@given(programs(), streams())
def test_restarts(program: Program, events: list[EventDict]) -> None:
    chosen = plan(program)
    matcher = Matcher(chosen)
    pages: dict[str, bytes] = {}
    found: list[MatchBatch] = []
    for batch in event_batches([[event] for event in events], chosen):
        found += matcher.push(batch)
        for name, page in matcher.snapshot().items():
            pages.pop(name, None) if page is None else pages.update({name: page})
        matcher = Matcher.restore(chosen, dict(pages))
    found += matcher.finish()
    assert rows_of(found) == meant(program, events)


@SOME
@given(programs(), streams())
def test_fields(program: Program, events: list[EventDict]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of types that no event has
        found = [(m.positions, m.bindings, m.event) for m in weft.detect(events, program)]
    assert found == [(m.positions, m.bindings, m.event) for m in matches(program, events)]
