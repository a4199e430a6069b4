"""Which patterns share what they begin with, what that costs, and that it saves work."""

from __future__ import annotations

from dataclasses import replace

from tests.driving import event_batches

from weft.algebra.analysis.beginnings import beginning
from weft.algebra.query import Program
from weft.algebra.situations import Situation, SituationQuery
from weft.languages import compile_text
from weft.optimizer.pipeline import trace
from weft.optimizer.prefixes import prefix_costs
from weft.optimizer.rules.share_prefix import prefixes_of, share_prefix
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.situations.operator import SituationOperator
from weft.statistics import Statistics

PAIR = """pattern {0} sequence(A {0}a, B {0}b, {1} {0}c, F {0}d) where {2} and {0}c.k = {0}d.k
policies repeated first, consumption consume context fixed 1000"""
RARE = "\n".join(PAIR.format(name, type_, f"{name}a.v > {name}b.w") for name, type_ in (("p", "C"), ("q", "D")))


def program_of(text: str) -> Program:
    return compile_text(text, language="epn")[0]


def situations(program: Program) -> list[Situation]:
    return [query.situation for query in program.queries if isinstance(query, SituationQuery)]


def test_beginnings_are_the_same_whatever_the_names_and_policies() -> None:
    texts = [
        "sequence(A a, B b, C c) where a.k = b.k and a.x > 1",
        "sequence(A x, B y, D z) where x.x > 1 and y.k = x.k policies repeated last, consumption consume",
        "sequence(A a, B b, C c) where a.k = b.k and a.x > 2",
        "sequence(A a, B b, C c) where a.k = b.k and a.x > 1 context fixed 10",
        "sequence(B b, A a, C c) where a.k = b.k and a.x > 1",
    ]
    one, same, *others = (beginning(situations(program_of(f"pattern P {text}"))[0], 2) for text in texts)
    assert one == same
    assert one not in others


def test_which_beginnings_there_are() -> None:
    def counts(text: str) -> tuple[int, ...]:
        return prefixes_of(situations(program_of(f"pattern P {text}"))[0])

    assert counts("sequence(A a, B b, C c, D d, E e) where a.k = b.k and c.k = d.k") == (4, 2)
    assert counts("sequence(A a, B b, C c) where b.k = c.k") == ()
    assert counts("sequence(A a, B b, C c, D d) where b.k = c.k") == (3,)
    assert counts("sequence(A a, B b, C c)") == ()
    assert counts("sequence(A a, B b, C c) where a.k = c.k") == ()
    assert counts("all(A a, B b, C c) where a.k = b.k") == ()
    whole = situations(program_of("pattern P all(A a, B b)"))[0]
    assert share_prefix(whole, 2) is whole


def test_costs_of_beginnings() -> None:
    situation = situations(program_of(RARE))[0]
    rates = {"A": 30.0, "B": 50.0}
    assert prefix_costs(situation, 2, 4, Statistics(rates)) == (100.0, (100 + 80) / 4 + 5)
    rare = Statistics(rates, selectivity={"A.v > B.w": 0.01})
    assert prefix_costs(situation, 2, 2, rare) == (1000.0, (1000 + 80) / 2 + 5)


def test_conditions_that_rarely_hold_make_it_worth_for_two() -> None:
    rates = dict.fromkeys("ABCDF", 50.0)
    assert {s.shared for s in situations(trace(program_of(RARE), Statistics(rates)).program)} == {0}
    rare = Statistics(rates, selectivity={"A.v > B.w": 0.01})
    assert {s.shared for s in situations(trace(program_of(RARE), rare).program)} == {2}


def test_fewer_events_are_looked_at() -> None:
    written = program_of(RARE)
    shared = replace(
        written,
        queries=tuple(
            replace(query, situation=share_prefix(query.situation, 2))
            for query in written.queries
            if isinstance(query, SituationQuery)
        ),
    )
    widths = [5 if n % 105 == 1 else 7 for n in range(900)]
    events = [{"type": "ABCDF"[n % 5], "ts": n, "k": 1, "v": n % 7, "w": widths[n]} for n in range(1, 900)]
    looked, found = [], []
    for program in (written, shared):
        chosen = plan(program)
        matcher = Matcher(chosen)
        count = sum(
            len(some) for batch in event_batches([events[:400], events[400:]], chosen) for some in matcher.push(batch)
        )
        found.append(count + sum(map(len, matcher.finish())))
        looked.append(sum(run.visited for run in matcher.operators if isinstance(run, SituationOperator)))
    assert found[0] == found[1] > 0
    assert looked[1] < looked[0]
