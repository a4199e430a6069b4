"""Feeding between queries of all languages: types read and defined, depths, and cycles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import pytest

import weft
from weft.algebra.analysis import feeding
from weft.algebra.analysis.feeding import cycles_beyond_rules, depths, feeders, mentioned_below
from weft.algebra.definition import Definition
from weft.algebra.query import Program
from weft.languages import compile_text
from weft.plan.layers import Layering
from weft.plan.operators import RuleOp, SituationOp
from weft.plan.planner import plan
from weft.schema import Kind


@dataclass(frozen=True)
class Plain(Definition):
    """A query that says no more than what it reads."""

    of: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return self.of


@dataclass(frozen=True)
class Recursive(Plain):
    """One that may be made of its own type."""

    is_rule: ClassVar[bool] = True


@pytest.mark.parametrize(
    ("text", "language", "defines", "reads", "fields"),
    [
        ("QUERY Q AS SELECT a[x, y] WHERE A AS a ; NOT(C) : B", "ceql", "Q", ["A", "B", "C"], {"x": None, "y": None}),
        ("SELECT a.x, b.x FROM A a ; (B b \\ C c)", "eql", "q", ["A", "B", "C"], {"a.x": None, "b.x": None}),
        (
            'topology "t" external A(x: int) < "a.jsonl" [1.0] external B(x: int) < "b.jsonl" [1.0] '
            "Q(A.x): A ; !B ; A/a2",
            "step",
            "Q",
            ["A", "B"],
            {"A.x": None},
        ),
        (
            "pattern Q all(A a, B b) context from O until C derive n = a.x",
            "epn",
            "Q",
            ["A", "B", "C", "O"],
            {"n": None},
        ),
        (
            "define Q(n: int, t: string) from A() and each B() within 5 from A "
            "and not C() within 5 from A where n = 1, t = 'x'",
            "tesla",
            "Q",
            ["A", "B", "C"],
            {"n": Kind.INT, "t": Kind.TEXT},
        ),
    ],
)
def test_every_query_says_what_it_reads_and_defines(
    text: str, language: str, defines: str, reads: list[str], fields: dict[str, Kind | None]
) -> None:
    query = compile_text(text, language=language)[0].queries[0]
    assert query.defines == defines
    assert sorted(query.reads) == reads
    assert query.field_kinds == fields


def test_feeders_stand_anywhere_in_the_program() -> None:
    assert feeders([Plain("A", ("B", "X")), Plain("B", ("C",)), Plain("C"), Recursive("C")]) == [(1,), (2, 3), (), ()]


@dataclass(frozen=True)
class Identified(Plain):
    """One whose matches are identified by an attribute that is called like its type."""

    @property
    def identity_attributes(self) -> frozenset[str]:
        return frozenset({self.name.lower()})


def test_attributes_are_those_of_all_queries_below_however_deep() -> None:
    chain = [Identified(f"Q{n}", (f"Q{n + 1}",)) for n in range(4)]
    circle = [Identified("R", ("S",)), Identified("S", ("T",)), Identified("T", ("R", "Q3"))]
    found = mentioned_below([*chain, *circle, Identified("Alone")])
    assert found[:4] == [("q0", "q1", "q2", "q3"), ("q1", "q2", "q3"), ("q2", "q3"), ("q3",)]
    assert found[4:] == [("q3", "r", "s", "t")] * 3 + [("alone",)]


def test_depth_is_one_more_than_the_deepest_read() -> None:
    queries = [Plain("D", ("A", "C")), Plain("A"), Plain("B", ("A", "X")), Plain("C", ("B",)), Recursive("A", ("B2",))]
    assert depths(queries) == [3, 0, 1, 2, 0]


def test_what_is_made_of_itself_is_as_deep_as_what_feeds_it() -> None:
    queries = [
        Plain("A"),
        Recursive("R", ("A",)),
        Recursive("R", ("S", "A")),
        Recursive("S", ("R",)),
        Plain("Q", ("S",)),
    ]
    assert depths(queries) == [0, 1, 1, 1, 2]


def test_a_chain_may_be_long() -> None:
    queries = [Plain(str(n), (str(n + 1),)) for n in range(5000)]
    assert depths(queries)[0] == 4999


def test_cycles_are_named_unless_rules_alone_make_them() -> None:
    assert cycles_beyond_rules([Recursive("R", ("R",)), Recursive("S", ("T",)), Recursive("T", ("S",))]) == []
    assert cycles_beyond_rules([Plain("A", ("A",))]) == [("A",)]
    found = cycles_beyond_rules([Recursive("R", ("R", "Q")), Plain("Q", ("P", "X")), Plain("P", ("R",))])
    assert found == [("Q", "P", "R")]


def test_a_chain_is_not_searched_for_circles_from_each_of_its_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in no circle is known by one pass: 5,000 patterns in a chain took 17 seconds."""
    searched: list[str] = []
    monkeypatch.setattr(feeding, "shortest_cycle", lambda start, edges: searched.append(start))
    chain = ["pattern P0 any(A a)", *(f"pattern P{n} any(P{n - 1} p)" for n in range(1, 40))]
    assert len(weft.compile("\n".join(chain)).queries) == 40
    assert searched == []


def test_rules_alone_are_not_asked_what_is_behind_each(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = ["define R0() from A()", *(f"define R{n}() from R{n - 1}()" for n in range(1, 40))]
    program = weft.compile("\n".join(rules))
    monkeypatch.setattr(Layering, "_behind", None)
    (layer,) = plan(program).layers
    assert [len(op.rules) for op in layer.operators if isinstance(op, RuleOp)] == [40]


def test_layers_come_in_rounds() -> None:
    """Each after those that feed it, whatever the order in which programs are given."""
    texts = ["pattern D all(B b, C c)", "pattern C any(B b)", "pattern E any(X x)", "pattern B any(E e)"]
    program = reduce(Program.extended, map(weft.compile, reversed(texts)))
    turned = replace(program, queries=program.queries[::-1])
    operators = [op for layer in plan(turned).layers for op in layer.operators]
    assert [op.query.name for op in operators if isinstance(op, SituationOp)] == ["E", "B", "C", "D"]
