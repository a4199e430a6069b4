"""Situations: what they refuse to be, their text, their network, and assertions in normal form."""

from __future__ import annotations

from itertools import product

import pytest

from weft.algebra.analysis.normal_form import NEVER, Equality, clauses, equality_of
from weft.algebra.composites import Field
from weft.algebra.contexts import FromFor, FromUntil, Whole, Windows
from weft.algebra.meaning.values import ValueScope, holds
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.predicates import Always, And, Attribute, Comparison, Literal, Not, Or, Predicate
from weft.algebra.situations import Participant, Situation, SituationQuery
from weft.algebra.text.network import NetworkLink, links, network_lines
from weft.algebra.text.program import to_text

A, B = Participant("A", "a"), Participant("B", "b")
A_X, B_X, C_X = Attribute("x", "a"), Attribute("x", "b"), Attribute("x", "c")
SAME = Comparison("=", A_X, B_X)
PAIR = Situation("sequence", (A, B))


@pytest.mark.parametrize(
    "build",
    [
        lambda: Situation("followed", (A,)),  # type: ignore[arg-type]
        lambda: Situation("all", ()),
        lambda: Situation("all", (A, Participant("B", "a"))),
        lambda: Situation("all", (A, B), (Comparison("=", A_X, C_X),)),
        lambda: Participant("A", "a", where=(SAME,)),
        lambda: Situation("all", (Participant("A", "a", Repeated.OVERRIDE), Participant("A", "b", Repeated.OVERRIDE))),
        lambda: Windows(0, 1),
        lambda: Windows(1, 0),
        lambda: FromFor("Open", -1),
        lambda: Whole(by=("k", "k")),
        lambda: SituationQuery("q", PAIR, (Field("x", A_X), Field("x", B_X))),
        lambda: SituationQuery("q", PAIR, (Field("x", C_X),)),
        lambda: SituationQuery("q", PAIR, (Field("x", Attribute("k")),)),
        lambda: SituationQuery("q", Situation("absence", (A,)), (Field("x", A_X),)),
    ],
)
def test_wrong_situations_do_not_exist(build: object) -> None:
    expected = r"not a kind|at least one|used twice|not bound|under override|an attribute twice|divided by"
    with pytest.raises(ValueError, match=expected):
        build()  # type: ignore[operator]


def test_one_of_two_slots_of_a_type_may_be_under_override() -> None:
    situation = Situation("all", (Participant("A", "a", Repeated.OVERRIDE), Participant("A", "b")))
    assert situation.variables == ("a", "b")


def test_types_are_those_of_slots_and_of_the_context() -> None:
    assert Situation("all", (A, B), context=FromUntil("Open", "Close")).types == {"A", "B", "Open", "Close"}
    assert Situation("all", (A, B), context=FromFor("Open", 3)).types == {"A", "B", "Open"}


def test_text() -> None:
    slots = (Participant("A", "a", Repeated.LAST, Consumption.CONSUME, (Comparison(">", A_X, Literal(3)),)), B)
    situation = Situation("all", slots, (SAME,), Evaluation.DEFERRED, Cardinality.SINGLE, Windows(10, 5, by=("k", "l")))
    assert to_text(SituationQuery("q", situation, (Field("k", Attribute("k")),))).splitlines() == [
        "query q",
        "  fields k = k",
        "  situation all, deferred, single",
        "    slot A a, last, consume where [a[x] > 3]",
        "    slot B b, every, reuse",
        "    where a[x] = b[x]",
        "    partitions of 10 ticks every 5 by k, l",
    ]
    assert to_text(PAIR).startswith("situation sequence, immediate, unrestricted\n")


# ---------------------------------------------------------------- networks


def test_links_go_from_what_is_derived_before() -> None:
    first = SituationQuery("D", PAIR)
    second = SituationQuery("E", Situation("all", (Participant("D", "d"), A), context=FromFor("Open", 3)))
    early = SituationQuery("F", Situation("any", (Participant("E", "e"),)))
    assert links([early, first, second]) == (
        NetworkLink(None, "E", 0),
        NetworkLink(None, "A", 1),
        NetworkLink(None, "B", 1),
        NetworkLink(None, "A", 2),
        NetworkLink(1, "D", 2),
        NetworkLink(None, "Open", 2),
    )


def test_picture_of_a_network() -> None:
    slot = Participant("D", "d", where=(Comparison(">", Attribute("x", "d"), Literal('say "3"')),))
    second = SituationQuery("E", Situation("any", (slot,), context=FromUntil("Open", "Close")))
    picture = list(network_lines([SituationQuery("D", PAIR), second]))
    assert '  s0 [shape=box, label="D\\nsequence(A a, B b)\\nimmediate, unrestricted\\nwhole stream"]' in picture
    assert '  s0 -> s1 [label="d[x] > \'say \\"3\\"\'"]' in picture
    assert '  "input Open" -> s1 [style=dashed]' in picture


# ---------------------------------------------------------------- normal form

P, Q, R = (Comparison(">", attribute, Literal(0)) for attribute in (A_X, B_X, C_X))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (P, (P,)),
        (And((P, And((Q, R)))), (P, Q, R)),
        (And((P, P)), (P,)),
        (Or((P, And((Q, R)))), (Or((P, Q)), Or((P, R)))),
        (Not(And((P, Q))), (Or((Not(P), Not(Q))),)),
        (Not(Or((P, Not(Q)))), (Not(P), Q)),
        (Not(Not(P)), (P,)),
        (Or((P, P)), (P,)),
        (Always(), ()),
        (Or((P, Always())), ()),
        (And(()), ()),
        (Or(()), (NEVER,)),
        (Not(Always()), (NEVER,)),
        (Or((P, Not(Always()))), (P,)),
    ],
)
def test_clauses(condition: Predicate, expected: tuple[Predicate, ...]) -> None:
    assert clauses([condition]) == expected


def test_example_2_of_the_document() -> None:
    d, e, f = Attribute("key", "d"), Attribute("key", "e"), Attribute("key", "f")
    rising, same = Comparison(">", d, e), Comparison("=", e, f)
    lucky = Comparison("=", Attribute("key", "c"), Literal(77))
    assert clauses([And((rising, Not(And((same, lucky)))))]) == (rising, Or((Not(same), Not(lucky))))


def test_what_would_grow_too_much_stays_whole() -> None:
    wide = Or(tuple(And((P, Comparison("=", B_X, Literal(number)))) for number in range(10)))
    assert clauses([wide, Q], limit=64) == (wide, Q)
    assert clauses([And((P, Q, R))], limit=2) == (And((P, Q, R)),)


@pytest.mark.parametrize(
    "condition",
    [
        Or((And((P, Q)), And((Not(P), R)))),
        Not(Or((And((P, Not(Q))), R))),
        And((Or((P, Q)), Not(And((Q, R))))),
        Not(And((Or((P, Not(R))), Or((Q, R))))),
    ],
)
def test_normal_form_has_the_same_truth(condition: Predicate) -> None:
    for values in product([{"x": 1}, {"x": 0}, {}], repeat=3):
        scope = ValueScope(dict(zip("abc", values, strict=True)))
        assert all(holds(clause, scope) for clause in clauses([condition])) == holds(condition, scope)


def test_equalities_are_recognised() -> None:
    assert equality_of(SAME) == Equality(A_X, B_X)
    for other in (P, Not(SAME), Or((SAME, P)), Comparison("=", A_X, A_X), Comparison("=", A_X, Literal(1))):
        assert equality_of(other) is None
    assert equality_of(Comparison("=", A_X, Attribute("x"))) is None
