"""Composite patterns: what they refuse to be, their lengths, their canonical form, their text."""

from __future__ import annotations

import pytest

from weft.algebra.analysis.renaming import canonical, rename
from weft.algebra.composites import (
    After,
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Field,
    Lengths,
    Overlap,
    Without,
)
from weft.algebra.predicates import And, Attribute, Comparison, Literal
from weft.algebra.terms import Contains, Elapsed, Every, Previous, conjuncts, looks_back, mentioned
from weft.algebra.text.program import to_text

A, B, C = CompositeEvent("A", "a"), CompositeEvent("B", "b"), CompositeEvent("C", "c")
A_X, B_X, C_X = Attribute("x", "a"), Attribute("x", "b"), Attribute("x", "c")
SAME = Comparison("=", A_X, B_X)


def test_variables_are_those_of_the_matches() -> None:
    pattern = CompositeUnion(
        Without(CompositeSequence(A, B, "next"), C, "between"), CompositeRepeat(CompositeEvent("D", "d"), "each")
    )
    assert pattern.variables == ("a", "b", "d")


@pytest.mark.parametrize(
    "build",
    [
        lambda: CompositeSequence(A, A, "next"),
        lambda: CompositeUnion(A, A),
        lambda: Overlap(A, A),
        lambda: Without(A, A, "during"),
        lambda: CompositeSequence(A, B, "next", (Comparison("=", A_X, C_X),)),
        lambda: CompositeSequence(A, B, "first", among=(SAME,)),
        lambda: CompositeRepeat(A, "each", among=(Comparison("=", A_X, Literal(1)),)),
        lambda: CompositeRepeat(CompositeRepeat(A, "next"), "next", lengths=Lengths(2)),
        lambda: CompositeRepeat(A, "next", lengths=Lengths(2, 5, frozenset({3}))),
        lambda: CompositeEvent("A", "a", (SAME,)),
        lambda: CompositeFilter(A, (SAME,)),
        lambda: After(A, -1),
        lambda: Lengths(0),
        lambda: CompositeQuery("q", Without(A, B, "during"), (Field("b.x", B_X),)),
        lambda: CompositeQuery("q", A, (Field("x", A_X), Field("x", A_X))),
    ],
)
def test_wrong_patterns_do_not_exist(build: object) -> None:
    with pytest.raises(ValueError, match=r"used twice|not bound|pick|length|before the end|at least one"):
        build()  # type: ignore[operator]


def test_unwanted_variables_can_be_read_in_the_condition_alone() -> None:
    pattern = Without(A, B, "between", (SAME,))
    assert pattern.variables == ("a",)


def test_lengths() -> None:
    lengths = Lengths(2, 5, frozenset({4, 5}))
    assert [n for n in range(8) if lengths.allow(n)] == [2, 3]
    assert [n for n in range(8) if lengths.allow_above(n)] == [0, 1, 2]
    assert Lengths(3).allow_above(1000)
    assert not Lengths(4, 1).allow_above(0)


def test_terms_know_their_variables() -> None:
    condition = Comparison("<", Previous(A_X), Every(B_X))
    assert mentioned(condition) == {"a", "b"}
    assert looks_back(condition) == {"a", "b"}
    assert mentioned(Comparison("<=", Elapsed("a", "c"), Literal(5))) == {"a", "c"}
    assert looks_back(SAME) == frozenset()


def test_conjunctions_are_taken_apart() -> None:
    other = Contains(A_X, Literal("t"))
    assert conjuncts((And((SAME, And((other, SAME)))), other)) == (SAME, other, SAME, other)


def test_canonical_forms_are_equal_up_to_names_and_the_order_of_conditions() -> None:
    short = Comparison("<=", Elapsed("a", "b"), Literal(5))
    one = CompositeSequence(A, B, "next", (SAME, short))
    renamed = rename(one, {"a": "first", "b": "second"})
    turned = CompositeSequence(A, B, "next", (And((short, SAME)),))
    assert canonical(one)[0] == canonical(renamed)[0] == canonical(turned)[0]
    assert canonical(renamed)[1] == ("first", "second")
    assert canonical(one)[0] != canonical(CompositeSequence(A, B, "each", (SAME, short)))[0]
    assert canonical(one)[0] != canonical(CompositeSequence(A, CompositeEvent("A", "b"), "next", (SAME, short)))[0]


def test_canonical_form_covers_what_is_unwanted() -> None:
    one = Without(A, B, "during", (SAME,))
    other = rename(one, {"b": "z"})
    assert one != other
    assert canonical(one)[0] == canonical(other)[0]


def test_text() -> None:
    pattern = Without(
        CompositeRepeat(A, "longest", (Comparison("<", Previous(A_X), A_X),), lengths=Lengths(2, 4, frozenset({3}))),
        After(B, 5),
        "between",
        (Comparison(">", Elapsed(), Literal(3)),),
    )
    assert to_text(pattern) == (
        "without between where [ELAPSED() > 3]\n"
        "  repeat longest length 2 to 4 but not 3 where [PREVIOUS(a[x]) < a[x]]\n"
        "    event A a\n"
        "  after 5 ticks\n"
        "    event B b\n"
    )
