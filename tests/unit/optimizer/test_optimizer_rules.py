"""Each rule on small patterns, with the cases where it must do nothing."""

from __future__ import annotations

from weft.algebra.patterns import Bind, Correlate, Event, Filter, Other, Pattern, Repeat, Sequence, Union
from weft.algebra.predicates import Always, And, Attribute, Comparison, Literal, Not, Or, Predicate
from weft.algebra.query import Program, Query
from weft.optimizer.pipeline import optimize, trace
from weft.optimizer.rules.drop_always_where import drop_always_where
from weft.optimizer.rules.flatten_predicate import flatten_predicate
from weft.optimizer.rules.merge_where import merge_where
from weft.optimizer.rules.order_conditions import order_conditions
from weft.optimizer.rules.push_where_into_events import push_where_into_events
from weft.statistics import Statistics

A, B = Event("A"), Event("B")


def above(number: int) -> Predicate:
    return Comparison(">", Attribute("v"), Literal(number))


def program(pattern: Pattern) -> Program:
    return Program("ceql", (Query("q", pattern),))


class TestPushWhereIntoEvents:
    def test_reaches_the_bound_event_and_no_other(self) -> None:
        before = Filter(Sequence(Bind(A, "x"), B), "x", above(1))
        after = Sequence(Bind(Filter(A, "A", above(1)), "x"), B)
        assert push_where_into_events(before) == after

    def test_covers_every_event_below_a_binding(self) -> None:
        before = Filter(Bind(Sequence(Repeat(A), B, contiguous=True), "x"), "x", above(1))
        one, other = Filter(A, "A", above(1)), Filter(B, "B", above(1))
        assert push_where_into_events(before) == Bind(Sequence(Repeat(one), other, contiguous=True), "x")

    def test_goes_into_both_branches_and_through_other_filters(self) -> None:
        related = Comparison("=", Attribute("id", "x"), Attribute("id", "y"))
        before = Filter(Correlate(Union(Bind(A, "x"), Filter(Bind(B, "x"), "y", above(2))), related), "x", above(1))
        left = Bind(Filter(A, "A", above(1)), "x")
        right = Filter(Bind(Filter(B, "B", above(1)), "x"), "y", above(2))
        assert push_where_into_events(before) == Correlate(Union(left, right), related)

    def test_vanishes_where_the_variable_is_bound_to_nothing(self) -> None:
        assert push_where_into_events(Filter(Sequence(A, Other("B")), "x", above(1))) == Sequence(A, Other("B"))

    def test_noop_a_filter_on_the_event_itself_stays(self) -> None:
        assert push_where_into_events(Filter(A, "A", above(1))) == Filter(A, "A", above(1))

    def test_names_the_event_by_its_type(self) -> None:
        event = Event("A", "S")
        assert push_where_into_events(Filter(event, "S>A", above(1))) == Filter(event, "A", above(1))


class TestMergeWhere:
    def test_joins_filters_of_one_variable(self) -> None:
        before = Filter(Filter(A, "x", above(1)), "x", above(2))
        assert merge_where(before) == Filter(A, "x", And((above(1), above(2))))

    def test_noop_different_variables_stay_apart(self) -> None:
        before = Filter(Filter(A, "x", above(1)), "y", above(2))
        assert merge_where(before) == before


class TestFlattenPredicate:
    def test_flattens_conjunctions_and_drops_what_is_always_true(self) -> None:
        assert flatten_predicate(And((above(1), And((above(2), Always()))))) == And((above(1), above(2)))

    def test_drops_repeated_parts(self) -> None:
        assert flatten_predicate(Or((above(1), Or((above(1),))))) == above(1)

    def test_a_disjunction_with_a_true_part_is_true(self) -> None:
        assert flatten_predicate(Or((above(1), Always()))) == Always()

    def test_cancels_two_negations(self) -> None:
        assert flatten_predicate(Not(Not(above(1)))) == above(1)

    def test_noop_one_negation_stays(self) -> None:
        assert flatten_predicate(Not(above(1))) == Not(above(1))


class TestOrderConditions:
    LESS = Comparison("<", Attribute("v", "x"), Attribute("v", "y"))
    SAME = Comparison("=", Attribute("k", "x"), Attribute("k", "y"))
    PAIR = Sequence(Bind(A, "x"), Bind(B, "y"))

    def test_what_refuses_most_is_tested_first(self) -> None:
        before = Correlate(Correlate(self.PAIR, self.LESS), self.SAME)
        after = Correlate(Correlate(self.PAIR, self.SAME), self.LESS)
        assert optimize(program(before)).queries[0].pattern == after  # type: ignore[union-attr]
        assert [rewrite.rule for rewrite in trace(program(before)).rewrites] == ["order_conditions"]

    def test_what_is_known_goes_before_what_is_usual(self) -> None:
        known = Statistics(selectivity={"x.v < y.v": 0.01, "A.k = B.k": 0.9})
        before = Correlate(Correlate(self.PAIR, self.SAME), self.LESS)
        after = Correlate(Correlate(self.PAIR, self.LESS), self.SAME)
        assert optimize(program(before), known).queries[0].pattern == after  # type: ignore[union-attr]

    def test_noop_conditions_of_different_patterns_stay_apart(self) -> None:
        before = Correlate(Repeat(Correlate(self.PAIR, self.LESS)), self.SAME)
        assert order_conditions(before, lambda condition: condition == self.LESS) == before


def test_drop_always_where() -> None:
    assert drop_always_where(Filter(A, "x", Always())) == A
    assert drop_always_where(Filter(A, "x", above(1))) == Filter(A, "x", above(1))


def test_rules_work_together_and_leave_a_trace() -> None:
    before = Filter(Filter(Bind(A, "x"), "x", above(1)), "A", And((above(2), Always())))
    found = trace(program(before))
    after, steps = found.program, list(found.rewrites)
    assert after.queries[0].pattern == Bind(Filter(A, "A", And((above(1), above(2)))), "x")
    assert [step.rule for step in steps] == ["push_where_into_events", "merge_where", "flatten_predicate"]
    assert steps[0].before == before
    assert steps[-1].after == after.queries[0].pattern


def test_optimizing_twice_changes_nothing_more() -> None:
    once = optimize(program(Filter(Repeat(Bind(Union(A, B), "x")), "x", above(1))))
    assert optimize(once) == once
