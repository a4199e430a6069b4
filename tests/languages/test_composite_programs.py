"""EQL and Step programs as a whole: how they are recognised, what queries are called, what they declare."""

from __future__ import annotations

import pytest

from weft.algebra.endpoints import Input, Output
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.errors import ProgramError, UsageError
from weft.languages import compile_text, language_of, parse_syntax
from weft.languages.eql.printer import to_source as print_eql
from weft.languages.step.printer import to_source as print_step
from weft.plan.operators import JoinOp
from weft.plan.planner import plan
from weft.schema import Kind

STEP = """topology "Two types"
external A(x: int, s: string) < "a.jsonl" [10.0]
external B(x: real) < "b.jsonl" [2.5]
"""
EQL = """
-- credit cards
SOURCE card (acc int, amount float) FROM 'cards.jsonl' RATE 2100
SOURCE alarm (acc: int)
SINK out TO 'out.jsonl'
SELECT c.acc FROM card c ; alarm a WHERE FILTER(c.acc = a.acc) INTO out
"""


def compiled(text: str, language: str, **options: str) -> Program:
    return compile_text(text, language=language, **options)[0]  # type: ignore[arg-type]


def test_languages_are_recognised_by_ending_and_by_their_first_word() -> None:
    assert language_of("SELECT * FROM A a", name="fraud.eql").name == "eql"
    assert language_of("Q(*): A", name="spike.STEP").name == "step"
    assert language_of(STEP).name == "step"
    assert language_of(EQL).name == "eql"
    assert language_of("SELECT * FROM A a", language="EQL").name == "eql"


def test_eql_queries_are_called_after_the_file() -> None:
    assert [q.name for q in compiled("SELECT * FROM A a", "eql").queries] == ["q"]
    assert [q.name for q in compiled("SELECT * FROM A a", "eql", stem="fraud").queries] == ["fraud"]
    two = compiled("SELECT * FROM A a SELECT * FROM B b", "eql", stem="fraud")
    assert [q.name for q in two.queries] == ["fraud_1", "fraud_2"]


def test_step_queries_have_names() -> None:
    program = compiled(STEP + 'First(*): A\nSecond(*): B > "b"', "step", stem="file")
    assert [q.name for q in program.queries] == ["First", "Second"]


def test_step_keeps_sources_rates_and_sinks() -> None:
    program = compiled(STEP + 'Q(*): A ; B > "out.jsonl"\nR(*): A', "step")
    assert program.inputs == (Input("A", "a.jsonl", 10.0), Input("B", "b.jsonl", 2.5))
    assert program.outputs == (Output("Q", "out.jsonl"),)
    assert program.catalog.types[0].attributes == (("x", Kind.INT), ("s", Kind.TEXT))
    assert program.catalog.types[1].kind_of("x") is Kind.FLOAT


def test_eql_keeps_sources_rates_and_sinks() -> None:
    program = compiled(EQL, "eql")
    assert program.inputs == (Input("card", "cards.jsonl", 2100.0), Input("alarm"))
    assert program.outputs == (Output("q", "out.jsonl"),)
    assert [type_.name for type_ in program.catalog.types] == ["card", "alarm"]


@pytest.mark.parametrize(
    "text",
    [
        EQL,
        "SELECT a.x, `select`.y FROM A a | `select` @ 2 WHERE (a, a) OCCURS WITHIN 5",
        "SELECT a.x, -(a.x + 1) * 2 AS `select`, as.y / 2 AS as FROM A a ; B as",
        "SELECT * FROM A a{3} ; (B b{2,4} ; C c){1} @ 2 ; D d{2,}+",
    ],
)
def test_eql_round_trip(text: str) -> None:
    tree = parse_syntax(text, language="eql")
    assert parse_syntax(print_eql(tree), language="eql") == tree  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "query",
    [
        'Q(*): A[A.s = "say \\"hi\\" \\\\"] > "out"',
        "Q(A.x): !(A | B) ; (A/A1 , B/B1) ; !A/A2 ; ((A/A3 +) +?[len > 1])",
        "Q(*): A[(A.x > 1) = (A.x < 3) && -(-A.x) > 1 && !(A.x = 1 || A.x = 2)]",
        "^external(*): ^external",
        "Q(A.x, (A.x + B.x) * 2 AS total, dur AS ^external): A ; B",
        "Q(*): A{3} ; B{2,4}?[prev(B.x) < B.x] ; (C/C1[C1.x > 1]{2,} , !(A/A1{1}) ; C/C2{1,3})",
        "Q(*): A ; !B[B.x = A.x] ; !(A/A2 , B/B2)[A2.x = A.x && dur < 9] ; !(B/B3[B3.x > 1])[B3.x = A.x] ; C",
    ],
)
def test_step_round_trip(query: str) -> None:
    tree = parse_syntax(STEP + query, language="step")
    assert parse_syntax(print_step(tree), language="step") == tree  # type: ignore[arg-type]


def test_eql_checks_against_a_schema_given_beside_it() -> None:
    with pytest.raises(ProgramError, match="has no attribute 'prise'"):
        compile_text("SELECT * FROM Trade t WHERE t.prise > 3", language="eql", schema={"Trade": {"price": "int"}})


@pytest.mark.parametrize(("unit", "ticks"), [("ms", 90_000), ("s", 90), ("us", 90_000_000)])
def test_durations_are_in_ticks_of_the_input(unit: str, ticks: int) -> None:
    program = compiled("SELECT * FROM A a @ 1.5 min", "eql", time_unit=unit)
    assert program.time_unit == unit
    assert [m.end for m in matches(program, [{"type": "A", "ts": 1}])] == [1 + ticks]


def test_durations_need_a_known_time_unit() -> None:
    with pytest.raises(UsageError, match="no time unit 'weeks'"):
        compile_text("SELECT * FROM A a @ 1", language="eql", time_unit="weeks")


def test_events_of_the_wrong_kind_do_not_exist() -> None:
    program = compiled(STEP + "Q(*): A", "step")
    events = [{"type": "A", "ts": 1, "x": "one"}, {"type": "A", "ts": 2, "x": 1}]
    assert [m.positions for m in matches(program, events)] == [(0,)]


@pytest.mark.parametrize("program", [compiled(EQL, "eql"), compiled(STEP + "Q(*): A ; B", "step")])
def test_they_are_planned_as_one_graph(program: Program) -> None:
    (operator,) = plan(program).operators
    assert isinstance(operator, JoinOp)
    assert [output.query for output in operator.graph.outputs] == list(program.queries)


def test_deep_nesting_is_a_message() -> None:
    chain = " ; ".join(f"A a{number}" for number in range(3000))
    with pytest.raises(ProgramError, match="more than 200 operators are nested"):
        compile_text(f"SELECT * FROM {chain}", language="eql")


def test_parentheses_are_free() -> None:
    assert compiled("SELECT * FROM " + "(" * 3000 + "A" + ")" * 3000, "eql").queries
