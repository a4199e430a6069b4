"""Who feeds whom: types read and defined, depths, and cycles, whatever the languages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from weft.algebra.analysis.feeding import cycles_beyond_rules, depths, feeders
from weft.algebra.definition import Definition
from weft.languages import compile_text
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
