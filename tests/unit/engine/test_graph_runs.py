"""The graph of composite queries: what it keeps, what its conditions can ask, what its fields can say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.harness import interval, run_program

import weft
from weft.algebra.composites import (
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Field,
    Overlap,
    Without,
)
from weft.algebra.predicates import And, Attribute, Comparison, Like, Literal, Not, RegexMatch
from weft.algebra.query import Program
from weft.algebra.terms import Elapsed, Previous
from weft.kernels.joins import buckets, joining
from weft.plan.graph import build_graph
from weft.plan.planner import plan
from weft.plan.spans import greatest_spans, useful_spans
from weft.runtime.classify import texts
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.joins import sweep
from weft.runtime.operators.joins.joining import SequencesOperator
from weft.runtime.operators.joins.operator import JoinOperator
from weft.runtime.reading.order import read_events
from weft.runtime.store import event_buffer

EXTERNALS = 'topology "T"\n' + "".join(
    f'external {name}(x: int, s: string) < "{name}.jsonl" [1.0]\n' for name in ("A", "B", "C")
)
STEP = {
    "greedy next with a key": "A/P ;[P.s = R.s && dur < 50] B/R",
    "any next": "A/P ;?[P.x < R.x && dur < 50] B/R",
    "next without rights": "A/P ;[dur < 50] C/R",
    "conjunction": "A/P ,[P.x = R.x && dur < 50] B/R",
    "exception during": "A/P ; !B/Q ;[P.x = R.x && dur < 50] A/R",
    "exception during, hardly anything to except": "A/P[P.x > 99] ; !B/Q ;[dur < 50] A/R",
    "exception before": "!C ; A",
    "any iteration below a bound": "(A/P +? [prev(P.x) <= P.x && len < 4]) ;[P.x = R.x && dur < 50] B/R",
    "greedy iteration": "A/P +[prev(P.x) <= P.x]",
    "union": "(A/P | B/Q) ;[dur < 50] A/R",
}
EQL = {
    "immediate successor": "FROM A a ; B b WHERE FILTER(a.s = b.s), (a, b) OCCURS WITHIN 50",
    "runs below a bound": "FROM A a+ ; B b WHERE FILTER(PREV(a.x) < a.x), (a, b) OCCURS WITHIN 50",
    "exception between": "FROM (A a ; B b) \\ C c WHERE a.x = c.x, (a, b) OCCURS WITHIN 50",
    "time": "FROM A a @ 30 msec",
}


def stored(graph: JoinOperator) -> int:
    """Everything that is kept, counted."""
    sizes = [graph.row_store.row_count, graph.row_store.event_count, len(graph.row_store.texts)]
    sizes.append(len(graph.kept))
    for operator in graph.operators:
        sizes.append(int(operator.control[joining.OUT]))
        sizes += (int(store.control[buckets.KEYS]) + len(store.live()) for store in operator.stores)
        sizes += (len(store.entries) // buckets.ENTRY for store in operator.stores)
        if isinstance(operator, SequencesOperator):
            sizes.append(len(operator.members) + len(operator.reach))
    return sum(sizes)


@pytest.mark.parametrize("name", [*STEP, *EQL])
def test_a_bound_of_time_bounds_what_is_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "LEAST_ROWS", 64)
    monkeypatch.setattr(event_buffer, "LEAST", 64)
    monkeypatch.setattr(texts, "LEAST_TEXTS", 64)
    text = f"{EXTERNALS}Q(*): {STEP[name]}" if name in STEP else f"SELECT * {EQL[name]}"
    matcher = Matcher(plan(weft.compile(text, language="step" if name in STEP else "eql")))
    (graph,) = matcher.operators
    assert isinstance(graph, JoinOperator)
    graph.sweep_at = 64
    random, sizes = np.random.default_rng(3), []
    for number in range(40):
        times = range(number * 300, number * 300 + 300, 3)
        events = [
            {"type": "AB"[int(random.integers(2))], "ts": ts, "x": int(random.integers(5)), "s": f"text {ts}"}
            for ts in times
        ]
        (batch,) = read_events(events, columns=matcher.plan.columns)
        batch.positions[:] += 100 * number
        for _ in matcher.push(batch):
            pass
        sizes.append(stored(graph))
    assert max(sizes[20:]) <= 1.5 * max(sizes[5:20]) + 100


def program(pattern: Any, *fields: Field) -> Program:
    return Program("step", (CompositeQuery("q", pattern, fields),))


A, B, C = CompositeEvent("A", "a"), CompositeEvent("B", "b"), CompositeEvent("C", "c")
A_S, B_S = Attribute("s", "a"), Attribute("s", "b")


@pytest.mark.parametrize(
    "pattern",
    [
        CompositeSequence(A, B, "each", (Not(And((Like(A_S, "a%"), RegexMatch(B_S, "^b")))),)),
        CompositeSequence(A, B, "next", (Like(B_S, "_b"),), (RegexMatch(A_S, "a|c"),)),
        Overlap(A, B, (Comparison("<", A_S, B_S), Like(A_S, "%"))),
        Without(CompositeSequence(A, B, "first"), C, "during", (Like(Attribute("s", "c"), "%b%"),)),
        CompositeRepeat(A, "each", (Like(Previous(A_S), "a%"), RegexMatch(A_S, "b"))),
        CompositeRepeat(A, "longest", (RegexMatch(A_S, "b"),)),
        CompositeFilter(CompositeUnion(A, B), (Not(Like(A_S, "a")),)),
        CompositeEvent("A", "a", (Like(A_S, "a%"),)),
    ],
)
def test_texts_can_be_tested_over_several_events(pattern: Any) -> None:
    texts = ("a", "ab", "b", "abc", None, "cb", "ab", "b")
    events = [{"type": "ABC"[(n * 7) % 3], "start": n - n % 3, "end": n, "s": texts[(n * 5) % 8]} for n in range(24)]
    found = run_program("local", program(pattern), events)
    assert found == run_program("meaning", program(pattern), events)
    assert found


def test_times_between_variables_can_be_fields() -> None:
    terms = (Elapsed(), Elapsed("a", "b"), Elapsed("b", "b"), Elapsed("c", "b"), Elapsed(None, "a"), Elapsed("b"))
    fields = [Field(f"f{number}", term) for number, term in enumerate(terms)]
    pattern = CompositeUnion(CompositeSequence(CompositeRepeat(A, "next"), B, "each"), C)
    events = [interval("A", 0, 2), interval("A", 3, 3), interval("B", 5, 9), interval("C", 10, 11)]
    found = run_program("local", program(pattern, *fields), events)
    assert found == run_program("meaning", program(pattern, *fields), events)
    whole = next(match for match in found if match["positions"] == [0, 1, 2])
    assert whole["event"] == {"f0": 9, "f1": 9, "f2": 4, "f3": None, "f4": 3, "f5": 4}


def positions(text: str, events: Sequence[dict[str, object]]) -> list[object]:
    compiled = weft.compile(f"{EXTERNALS}Q(*): {text}", language="step")
    found = run_program("local", compiled, events)
    assert found == run_program("meaning", compiled, events)
    return [match["positions"] for match in found]


def test_only_what_is_all_its_own_is_exempt_from_an_exception() -> None:
    events: list[dict[str, object]] = [{"type": kind, "ts": ts} for ts, kind in enumerate("AAB")]
    # Each match is made of one A and the B; the other A, where it is inside, is not the match's own.
    assert positions("A/P ; !A/Q ; B/R", events) == [[1, 2]]
    # The unwanted sequence of the second A and the B is the later match itself; to the earlier one it is foreign.
    assert positions("A/P ; !(A/Q ; B/S) ; B/R", events) == [[1, 2]]


def test_spans_reach_into_operands() -> None:
    short = Comparison("<=", Elapsed(), Literal(9))
    runs = CompositeRepeat(A, "each")
    graph = build_graph([CompositeQuery("q", CompositeSequence(runs, B, "first", (short,)))])
    kinds = {type(node.pattern).__name__: number for number, node in enumerate(graph.nodes)}
    assert greatest_spans(graph)[kinds["CompositeSequence"]] == 9
    assert greatest_spans(graph)[kinds["CompositeRepeat"]] is None
    assert useful_spans(graph)[kinds["CompositeRepeat"]] == 9
    both = build_graph([CompositeQuery("q", CompositeSequence(runs, B, "first", (short,))), CompositeQuery("r", runs)])
    assert set(useful_spans(both)) == {9, None}
    assert useful_spans(both)[both.outputs[1].node] is None
    named = (Comparison("<", Elapsed("a", "b"), Literal(9)),)
    graph = build_graph([CompositeQuery("q", CompositeSequence(A, B, "next", named))])
    assert useful_spans(graph) == [8, 8, 8]


def test_a_plan_says_who_shares_what() -> None:
    queries = "\n".join(f"Q{n}(*): (A/P{n} ; B/R{n}) ;[dur < {n}] C/S{n}" for n in range(1, 101))
    shown = weft.explain(weft.compile(EXTERNALS + queries, language="step"), stage="plan")
    lines = shown.splitlines()
    assert "      n2: sequence first   from n0, n1   (shared by Q1, Q2, Q3 and 97 more)" in lines
    assert sum(line.startswith("    graph ") for line in lines) == 1
    assert max(map(len, lines)) <= 120
    twice = weft.explain(weft.compile(f"{EXTERNALS}Q(*): A/P ; A/R", language="step"), stage="plan")
    assert "      n0: event A 0   (used 2 times)" in twice.splitlines()


def test_one_event_may_end_any_number_of_matches_of_a_chain() -> None:
    events = [*({"type": "A", "ts": n} for n in range(5000)), {"type": "B", "ts": 5000}, {"type": "C", "ts": 5001}]
    program = weft.compile("SELECT * FROM A a ; B b ; C c", "eql")
    assert weft.count([*events, {"type": "D", "ts": 5002}], program) == {"q": 5000}
