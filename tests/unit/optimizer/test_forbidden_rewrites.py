"""Rewrites that would change matches: for each a stream that shows it, and the optimiser that does not do it."""

from __future__ import annotations

import re
from itertools import product

import pytest

from weft.algebra.composites import Composite, CompositeEvent, CompositeQuery, Overlap
from weft.algebra.meaning import matches
from weft.algebra.predicates import Attribute, Comparison
from weft.algebra.query import Program
from weft.algebra.terms import Previous
from weft.languages import compile_text
from weft.optimizer.pipeline import trace
from weft.optimizer.rules.order_overlap import order_overlap
from weft.statistics import Statistics

LEFT, RIGHT = "(A a ; B b) ; C c", "A a ; (B b ; C c)"
FOUR, PAIRS = "((A a ; B b) ; C c) ; D d", "(A a ; B b) ; (C c ; D d)"
# What is written, what must not be made of it, and events on which both differ: type, time and the value of x and k.
REFUSED = {
    "Fbc": (LEFT, RIGHT, "FILTER(b.x = c.x)", "A2(2) B3(1) B4(2) C5(2)"),
    "Fac": (LEFT, RIGHT, "FILTER(a.x = c.x)", "A1(1) B2(1) C3(2) C4(1)"),
    "FWbc": (LEFT, RIGHT, "FILTER((b, c) OCCURS WITHIN 3)", "A2(1) B3(2) B5(1) C7(1)"),
    "Fcd": (FOUR, PAIRS, "FILTER(c.x = d.x)", "A1(0) B2(0) C3(1) C4(2) D5(2)"),
    "Fad": (FOUR, PAIRS, "FILTER(a.x = d.x)", "A1(1) B2(0) C3(0) D4(2) D5(1)"),
    "a condition on the right": (RIGHT, LEFT, "b.x = c.x", "A2(1) B3(2) B4(1) C6(1)"),
    "a key that only the last operator has": (LEFT, RIGHT, "FILTER(a.k = c.k, b.k = c.k)", "A1(2) B3(1) B4(2) C5(2)"),
}
# Here the condition must not go with the brackets: it is asked of the whole, and brackets change all the same.
LIFTED = {
    "Pb": (LEFT, RIGHT, "b.x = 1", "A2(2) B4(2) B6(1) C7(1)"),
    "Pc": (LEFT, RIGHT, "c.x = 1", "A1(1) B2(2) C4(2) B5(2) C6(1)"),
    "Pbc": (LEFT, RIGHT, "b.x = c.x", "A2(1) B3(2) B4(1) C6(1)"),
    "Wbc": (LEFT, RIGHT, "(b, c) OCCURS WITHIN 3", "A2(2) B3(1) B5(2) C7(1)"),
    "star": (
        FOUR,
        PAIRS,
        "FILTER(a.k = b.k), FILTER(a.k = c.k), FILTER(a.k = d.k)",
        "A1(1) B2(1) C3(1) D4(2) D5(1)",
    ),
}
RATES = [dict(zip("ABCD", rates, strict=True)) for rates in product((1, 100), repeat=4)]


def eql(pattern: str, condition: str) -> Program:
    return compile_text(f"SELECT * FROM {pattern} WHERE {condition.replace(', b.k', '), FILTER(b.k')}", language="eql")[
        0
    ]


def events_of(text: str) -> list[dict[str, object]]:
    found = re.findall(r"(\w)(\d+)\((\d)\)", text)
    return [{"type": type_, "ts": int(ts), "x": int(value), "k": int(value)} for type_, ts, value in found]


def bound(program: Program, events: list[dict[str, object]]) -> list[dict[str, tuple[int, ...]]]:
    return [match.bindings for match in matches(program, events)]


@pytest.mark.parametrize("name", [*REFUSED, *LIFTED])
def test_a_rewrite_that_takes_its_conditions_along_would_change_matches(name: str) -> None:
    written, other, condition, stream = {**REFUSED, **LIFTED}[name]
    assert bound(eql(written, condition), events_of(stream)) != bound(eql(other, condition), events_of(stream))


@pytest.mark.parametrize("name", [*REFUSED, *LIFTED])
@pytest.mark.parametrize("rates", RATES)
def test_the_optimiser_changes_no_match(name: str, rates: dict[str, float]) -> None:
    written, _, condition, stream = {**REFUSED, **LIFTED}[name]
    program, events = eql(written, condition), events_of(stream)
    assert bound(trace(program, Statistics(rates)).program, events) == bound(program, events)


@pytest.mark.parametrize("name", REFUSED)
def test_it_says_which_condition_forbids_more(name: str) -> None:
    written, _, condition, _ = REFUSED[name]
    program = eql(written, condition)
    for rates in RATES:
        (query,) = trace(program, Statistics(rates)).queries
        brackets = [rewrite for rewrite in query.rewrites if rewrite.rule == "rebracket_next"]
        assert not brackets or len(program.queries[0].variables) == 4  # of four operands, the first three may move
        assert query.refusals
        span = query.span_of(query.refusals[0])
        assert span is not None
        assert program.text[span.start : span.end] in program.text.split("WHERE")[1]


@pytest.mark.parametrize("name", LIFTED)
def test_lifted_conditions_leave_brackets_free(name: str) -> None:
    written, _, condition, _ = LIFTED[name]
    rules = [{r.rule for r in trace(eql(written, condition), Statistics(rates)).rewrites} for rates in RATES]
    assert any("rebracket_next" in found for found in rules)
    lifts = {"lift_plain_conditions", "spread_key"}
    assert name in ("Pc", "Pbc", "Wbc") or any(lifts & found for found in rules)  # these three are at the root already


STEP = "".join(
    f'external {name}(x: int) < "{name}.jsonl" [{rate}.0]\n' for name, rate in zip("ABC", (1, 100, 1), strict=True)
)


def step(query: str) -> Program:
    return compile_text(f'topology "T"\n{STEP}{query}', language="step")[0]


def test_step_tells_branches_of_a_union_apart_by_their_order() -> None:
    events = [{"type": "A", "ts": 1}, {"type": "B", "ts": 2}]
    one, other = step("Q(*): A ; (B/b | B/c)"), step("Q(*): A ; (B/c | B/b)")
    assert bound(one, events) != bound(other, events)
    pattern = trace(step("Q(*): A ; ((B/b | C/c) | C/d)")).program.queries[0]
    assert isinstance(pattern, CompositeQuery)
    assert pattern.pattern.variables == ("A", "b", "c", "d")
    assert [r.rule for r in trace(step("Q(*): A ; ((B/b | C/c) | C/d)")).rewrites] == ["reorder_union"]


def test_step_unions_that_nobody_picks_from_are_free() -> None:
    assert trace(step("Q(*): (B/b | C/c) | A/d")).program.queries[0].pattern.variables != ("b", "c", "d")  # type: ignore[union-attr]


def test_greedy_next_of_step_keeps_its_brackets() -> None:
    found = trace(step("Q(*): B ; (A ; C)"))
    assert not list(found.rewrites)
    assert "processing order" in found.queries[0].refusals[0].reason


def test_conjunctions_are_not_associative() -> None:
    def overlap(left: Composite, right: Composite) -> Program:
        return Program("step", (CompositeQuery("q", Overlap(left, right)),))

    a, b, c = CompositeEvent("A", "a"), CompositeEvent("B", "b"), CompositeEvent("C", "c")
    times = {"A": (1, 10), "B": (2, 3), "C": (5, 6)}
    events = [{"type": name, "start": start, "end": end} for name, (start, end) in times.items()]
    events.sort(key=lambda event: int(str(event["end"])))
    left, right = overlap(Overlap(a, b), c), overlap(a, Overlap(b, c))
    assert bound(left, events) != bound(right, events)
    (query,) = trace(left).queries
    assert bound(Program("step", (query.query,)), events) == bound(left, events)  # type: ignore[arg-type]
    assert {rewrite.rule for rewrite in query.rewrites} <= {"order_overlap"}
    assert "not associative" in query.refusals[0].reason


def test_operands_at_one_time_stay_where_a_condition_speaks_of_what_came_before() -> None:
    before = Comparison("<", Previous(Attribute("x", "b")), Attribute("x", "b"))
    turned = Overlap(CompositeEvent("B", "b"), CompositeEvent("A", "a"), (before,))
    assert order_overlap(turned) is turned
    program = Program("step", (CompositeQuery("q", turned),))
    assert trace(program, Statistics({"A": 1, "B": 9})).program == program
