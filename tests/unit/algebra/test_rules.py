"""Rules in the algebra: what they refuse, what they depend on, how far they look back, which are of one shape."""

from __future__ import annotations

import pytest

from weft.algebra.analysis.rule_graph import histories_without_end, instant_cycles
from weft.algebra.analysis.rule_reach import joint_reach, reach_of
from weft.algebra.analysis.rule_shapes import rule_of, shape_of
from weft.algebra.meaning import matches
from weft.algebra.predicates import Attribute, Comparison, Literal, Predicate
from weft.algebra.query import Program
from weft.algebra.rules import (
    Absence,
    Between,
    DefinedField,
    Events,
    Extent,
    LookBack,
    Rule,
    Summary,
    Terminator,
    Within,
    mentioned,
)
from weft.algebra.text.program import to_text
from weft.languages import compile_text
from weft.schema import Kind

OWN = Attribute("v")
B_V = Attribute("v", "B")


def rules_of(text: str) -> list[Rule]:
    program, _ = compile_text(text, language="tesla")
    return [rule for rule in program.queries if isinstance(rule, Rule)]


def rule_of_text(text: str) -> Rule:
    (rule,) = rules_of(text)
    return rule


def look(
    variable: str = "A", *conditions: Predicate, anchor: str = "B", absences: tuple[Absence, ...] = ()
) -> LookBack:
    related = tuple(condition for condition in conditions if mentioned(condition))
    static = tuple(condition for condition in conditions if not mentioned(condition))
    return LookBack(variable, Events("A", static, related), Within(anchor, 5), "each", None, absences)


def rule(*lookbacks: LookBack, **rest: object) -> Rule:
    return Rule("X", Terminator("B", Events("B")), lookbacks, **rest)  # type: ignore[arg-type]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Within("B", -1), "not negative"),
        (lambda: Events("A", static=(Comparison("=", OWN, B_V),)), "static"),
        (lambda: Events("A", related=(Comparison("=", OWN, Literal(1)),)), "related"),
        (lambda: Summary("AVG", Events("A"), None, Within("B", 1)), "no attribute"),
        (lambda: LookBack("A", Events("A"), Within("B", 1), "each", 2), "takes all"),
        (lambda: LookBack("A", Events("A"), Within("B", 1), "last", 0), "at least one"),
        (lambda: rule(look("B")), "used twice: B"),
        (lambda: rule(look("A", anchor="C")), "not bound here: C"),
        (lambda: rule(look("A", anchor="A")), "not bound here: A"),
        (lambda: rule(look("A", Comparison("=", OWN, Attribute("v", "C")))), "not bound here: C"),
        (lambda: rule(look(), consumes=("B",)), "no look-back takes"),
        (lambda: rule(look(), consumes=("A", "A")), "used twice: A"),
        (lambda: rule(look("A", absences=(Absence(Events("N"), Within("B", 1)),))), "as early as it can"),
        (lambda: rule(look("A", absences=(Absence(Events("N"), Between("A", "C")),))), "not bound here: C"),
        (lambda: rule(conditions=(Comparison(">", OWN, Literal(1)),)), "no event is at hand"),
        (lambda: rule(fields=(DefinedField("f", Kind.INT, Attribute("v", "C")),)), "not bound here: C"),
        (lambda: rule(fields=(DefinedField("f", Kind.INT), DefinedField("f", Kind.INT))), "used twice: f"),
    ],
)
def test_a_wrong_node_refuses_to_exist(make: object, reason: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=reason):
        make()


def test_a_summary_does_not_select_events() -> None:
    summary = Summary("COUNT", Events("N"), None, Within("B", 1))
    with pytest.raises(ValueError, match="a summary selects no events"):
        Events("A", related=(Comparison("=", OWN, summary),))


def test_an_extent_or_other_node_of_no_kind_has_no_reach() -> None:
    with pytest.raises(TypeError, match="not an extent"):
        reach_of(
            rule(
                look("A", absences=(Absence(Events("N", (), (Comparison("=", OWN, Attribute("v", "A")),)), Extent()),))
            )
        )


# ---------------------------------------------------------------- what is known of a rule


def test_equalities_are_found() -> None:
    found = rule_of_text("define X() from B(k = $k, v = $v) and each A(k = $k, v > $v, B.w = w, v = 3) within 5 from B")
    events = found.lookbacks[0].events
    assert events.equalities == (("k", Attribute("k", "B")), ("w", Attribute("w", "B")))
    assert events.static == (Comparison("=", OWN, Literal(3)),)


def test_types_and_variables_are_in_order() -> None:
    found = rule_of_text(
        "define X(n: int) from C() and each A() as P within 5 from C and not N() between P and C "
        "where n = Count(D() within 1 from P)"
    )
    assert found.variables == ("C", "P")
    assert found.types == ("C", "A", "N", "D")


def test_reach_adds_up_along_chains() -> None:
    found = rule_of_text(
        "define X(n: int) from C() and each B() within 3 from C and each A() within 5 from B and "
        "not N() between A and B and not M() within 4 from B where n = Count(D() within 10 from A)"
    )
    assert reach_of(found) == {"B": 3, "A": 8, "N": 8, "M": 7, "D": 18}
    other = rule_of_text("define Y() from D() and last A() within 20 from D")
    assert joint_reach([reach_of(found), reach_of(other)])["A"] == 20


# ---------------------------------------------------------------- cycles


def test_cycles_of_distance_zero_are_named() -> None:
    terminators = [("X", "Y"), ("Y", "Z"), ("Z", "X"), ("V", "X"), ("W", "A")]
    found = [Rule(name, Terminator("T", Events(type_))) for name, type_ in terminators]
    assert instant_cycles(found) == [("X", "Y", "Z")]
    assert instant_cycles(found[:2]) == []


def test_a_type_may_depend_on_itself_at_a_distance() -> None:
    found = rules_of("define X() from A() define X() from B() and last X() within 5 from B define Y() from X()")
    assert instant_cycles(found) == []
    assert histories_without_end(found) == [("X",)]


def test_cycles_apart_are_both_found() -> None:
    found = [Rule(name, Terminator("T", Events(type_))) for name, type_ in ["XX", "YZ", "ZY"]]
    assert instant_cycles(found) == [("X",), ("Y", "Z")]


def test_long_chains_of_rules_are_no_cycle() -> None:
    found = [Rule(f"T{n + 1}", Terminator("T", Events(f"T{n}"))) for n in range(5000)]
    assert instant_cycles(found) == []


# ---------------------------------------------------------------- shapes

FIRE = (
    "define Fire{n}(area: string, temp: double) from Smoke{n}(area = $a) and "
    "last Temp{n}(area = $a and value > {t}) within {w} min from Smoke{n} "
    "where area = Smoke{n}.area, temp = Temp{n}.value"
)


def test_rules_that_differ_in_constants_and_types_have_one_shape() -> None:
    found = [rule_of_text(FIRE.format(n=n, t=t, w=w)) for n, t, w in [(1, 45, 5), (2, 46.5, 5), (1, 45, 6)]]
    shapes = {shape_of(one)[0] for one in found}
    assert len(shapes) == 1
    constants = [shape_of(one)[1] for one in found]
    assert [c.literals for c in constants] == [(45,), (46.5,), (45,)]
    assert [c.ticks for c in constants] == [(300000,), (300000,), (360000,)]
    assert [c.types for c in constants] == [("Smoke1", "Temp1"), ("Smoke2", "Temp2"), ("Smoke1", "Temp1")]
    assert [rule_of(shapes.copy().pop(), c) for c in constants] == found


@pytest.mark.parametrize(
    "other",
    [
        "define X() from B() and last A(v > 1) within 5 from B",
        "define X() from B() and each A(v >= 1) within 5 from B",
        "define X() from B() and each A(w > 1) within 5 from B",
        "define X() from B() and each A(v > 'p') within 5 from B",
        "define X() from B() and each A(v > true) within 5 from B",
        "define X() from B() and each B(v > 1) as A within 5 from B",
        "define X() from B() and each A(v > 1) within 5 from B consuming A",
        "define X(a: int) from B() and each A(v > 1) within 5 from B where a = B.a",
    ],
)
def test_rules_that_differ_otherwise_have_other_shapes(other: str) -> None:
    one = rule_of_text("define X() from B() and each A(v > 1) within 5 from B")
    assert shape_of(one)[0] != shape_of(rule_of_text(other))[0]


# ---------------------------------------------------------------- meaning and text


def test_sums_do_not_depend_on_how_they_are_added_up() -> None:
    text = (
        "define X(s: double, a: double) from B() where s = Sum(A().v within 99 from B), a = Avg(A().v within 99 from B)"
    )
    values = [0.1] * 10
    events: list[dict[str, object]] = [{"type": "A", "ts": n, "v": value} for n, value in enumerate(values)]
    program = Program("tesla", (rule_of_text(text),))
    (found,) = matches(program, [*events, {"type": "B", "ts": 50}])
    assert found.event == {"s": 1.0, "a": 0.1}


def test_sums_beyond_all_numbers_are_null() -> None:
    text = (
        "define X(s: double, a: double) from B() where s = Sum(A().v within 99 from B), a = Avg(A().v within 99 from B)"
    )
    events: list[dict[str, object]] = [{"type": "A", "ts": n, "v": 1e308} for n in range(3)]
    (found,) = matches(Program("tesla", (rule_of_text(text),)), [*events, {"type": "B", "ts": 50}])
    assert found.event == {"s": None, "a": None}


def test_parts_of_rules_are_shown_as_text() -> None:
    found = rule_of_text("define X(n: int) from B() where n = Count(A(k = 1) within 5 from B) + 1")
    assert found.fields[0].value is not None
    assert to_text(found.fields[0].value) == "COUNT(A[k = 1] within 5 from B) + 1"
