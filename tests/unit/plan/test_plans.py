"""What is planned is what runs: the matcher holds the plan, and parts of a plan have what their queries need."""

from __future__ import annotations

import pytest

import weft
from weft.api import merge_programs
from weft.optimizer.pipeline import optimize
from weft.plan.operators import JoinOp, RuleOp
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher

PROGRAMS = {
    "regular": ["QUERY Q AS SELECT * WHERE A ; B WITHIN 5 EVENTS", "QUERY R AS SELECT * WHERE B : A WITHIN 5 EVENTS"],
    "network": ["pattern P sequence(A a, B b)\npattern Q any(P p, A a)"],
    "mixed": [
        "pattern P sequence(A a, B b) derive k = a.k",
        "define Q(k: int) from P(k = $k) and each A(k = $k) within 9 from P where k = A.k",
        "QUERY R AS SELECT q[k] WHERE Q AS q ; P AS p WITHIN 1 HOUR",
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_matcher_holds_the_plan(name: str) -> None:
    chosen = plan(merge_programs(PROGRAMS[name]))
    matcher = Matcher(chosen)
    assert matcher.plan is chosen
    assert [layer.node for layer in matcher.layers] == list(chosen.layers)
    emitted = sorted(number for layer in matcher.layers for number in layer.emitted_numbers)
    assert emitted == list(range(len(chosen.queries)))


def test_a_part_of_a_plan_has_what_its_queries_need() -> None:
    program = weft.compile("SELECT * FROM A a ; B b SELECT * FROM (A a ; B b) ; C c SELECT * FROM C c", language="eql")
    chosen = plan(program)
    (part,) = chosen.only([1]).operators
    assert isinstance(part, JoinOp)
    assert [output.query.name for output in part.graph.outputs] == ["q_2"]
    assert [node.operator for node in part.graph.nodes] == ["Sequence", "Event", "Sequence"]
    assert chosen.only(range(3)).layers == chosen.layers


def test_rules_before_and_after_another_language_run_twice_and_tell_once() -> None:
    texts = [
        "define X(v: int) from A() where v = A.v\ndefine Z(v: int) from Y() and each X() within 9 from Y where v = X.v",
        "QUERY Y AS SELECT x[v] WHERE X AS x ; B WITHIN 5 EVENTS",
    ]
    program = merge_programs(texts)
    first, between, last = plan(program).layers
    assert [len(layer.feeders) for layer in (first, between, last)] == [0, 1, 1]
    (rules,) = last.operators
    assert isinstance(rules, RuleOp)
    assert [rule.name for rule in rules.rules] == ["X", "Z"]
    assert rules.silent == {0}
    events = [{"type": type_, "ts": at, "v": at} for at, type_ in enumerate("AABCA")]
    found = list(weft.detect(events, program))
    assert found == list(weft.detect(events, program, engine="meaning"))
    assert [match.query for match in found].count("X") == 3
    assert weft.count(events, program) == {name: sum(m.query == name for m in found) for name in program.names}


CHAIN = "SELECT * FROM A a ; B b ; C c WHERE FILTER(a.k = b.k), FILTER(b.k = c.k)"


@pytest.mark.parametrize(("rates", "is_one"), [((32, 16, 32), True), ((64, 1, 8), False)])
def test_brackets_that_gain_little_leave_a_chain_in_one_operator(rates: tuple[float, ...], is_one: bool) -> None:
    known = weft.Statistics(dict(zip("ABC", rates, strict=True)))
    program = weft.compile(CHAIN, "eql")
    assert ("rebracket_next" in weft.explain(program, "optimized", statistics=known)) != is_one
    (graph,) = [op for op in plan(optimize(program, known), statistics=known).operators if isinstance(op, JoinOp)]
    assert any(node.chain is not None and len(node.chain.steps) == 3 for node in graph.graph.nodes) == is_one
