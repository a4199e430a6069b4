"""The cost model on patterns and rates with known answers, and what statistics it takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import weft
from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Without,
)
from weft.algebra.predicates import Attribute, Comparison, Literal
from weft.errors import InputError, UsageError
from weft.optimizer.cost import Costs, cost_of, profile_of, resolve_statistics
from weft.spelling import written
from weft.statistics import Statistics

RATES = Statistics(rates={f"R{rate}": rate for rate in (1, 4, 8, 10, 16, 64)})
A, B = CompositeEvent("A", "a"), CompositeEvent("B", "b")


def leaf(rate: int, variable: str = "") -> CompositeEvent:
    return CompositeEvent(f"R{rate}", variable or f"r{rate}")


def next_(left: Composite, right: Composite, **conditions: object) -> CompositeSequence:
    return CompositeSequence(left, right, "next", **conditions)  # type: ignore[arg-type]


KEY = Comparison("=", Attribute("k", "a"), Attribute("k", "b"))
ABOVE = Comparison(">", Attribute("x", "a"), Literal(3))


class TestVectors:
    @pytest.mark.parametrize(
        ("pattern", "cost"),
        [
            (next_(next_(leaf(64), leaf(8)), leaf(1)), 248.8889),
            (next_(leaf(64), next_(leaf(8), leaf(1))), 656.0),
            (next_(next_(leaf(1), leaf(8)), leaf(64)), 73.8889),
            (next_(leaf(1), next_(leaf(8), leaf(64))), 81.125),
            (CompositeUnion(leaf(10), next_(leaf(64), leaf(8))), 202.0),
            (next_(leaf(10), leaf(1)), 20.0),
            (next_(leaf(1), leaf(10)), 11.0),
            (next_(next_(leaf(16), next_(leaf(4), leaf(4, "s"))), leaf(1)), 86.2222),
            (next_(next_(next_(leaf(16), leaf(4)), leaf(4, "s")), leaf(1)), 83.9111),
        ],
    )
    def test_costs(self, pattern: Composite, cost: float) -> None:
        assert cost_of(pattern, RATES) == pytest.approx(cost, abs=1e-4)

    def test_profile_of_a_chain(self) -> None:
        found = profile_of(next_(next_(leaf(64), leaf(8)), leaf(1)), RATES)
        assert found[:4] == pytest.approx((64, 1.140625, 64, 1))
        found = profile_of(next_(leaf(64), next_(leaf(8), leaf(1))), RATES)
        assert found[2:4] == pytest.approx((72, 0.888889), abs=1e-6)

    def test_profile_of_a_union(self) -> None:
        found = profile_of(CompositeUnion(leaf(10), next_(leaf(64), leaf(8))), RATES)
        assert found == pytest.approx((74, 1 / 18, 74 / 18, 18, 74))


class TestOperators:
    def test_each_has_its_own_work(self) -> None:
        assert profile_of(CompositeFilter(leaf(10), ()), RATES).work == 10
        assert profile_of(Without(leaf(10), leaf(4), "between"), RATES).work == 14
        assert profile_of(After(leaf(10), 500), RATES) == pytest.approx((10, 0.6, 1, 10, 10))

    def test_a_type_without_events_costs_next_to_nothing(self) -> None:
        assert cost_of(next_(CompositeEvent("Z", "z"), leaf(4)), Statistics({"Z": 0, "R4": 4})) == pytest.approx(
            4, abs=1e-6
        )

    def test_runs_are_as_long_as_their_condition_lets_them(self) -> None:
        run = CompositeRepeat(A, "next", (ABOVE,))
        assert profile_of(run, Statistics({"A": 2}, {"a.x > 3": 0.75})).rate == 8
        costs = Costs(Statistics({"A": 2}))
        assert costs.profile(run).rate == 128
        assert any("64 members" in remark for remark in costs.remarks)

    def test_selectivity_of_leaves_conditions_and_keys(self) -> None:
        known = Statistics({"A": 10, "B": 1}, {"A.x > 3": 0.5, "b.k = a.k": 0.1})
        assert profile_of(CompositeEvent("A", "a", (ABOVE,)), known).rate == 5
        assert profile_of(next_(A, B, where=(ABOVE,)), known).rate == 5
        assert profile_of(next_(A, B, among=(KEY,)), known).work == pytest.approx(10 + 10 / 10)

    def test_an_operator_that_queries_share_counts_once(self) -> None:
        shared = next_(A, B)
        renamed = next_(CompositeEvent("A", "x"), CompositeEvent("B", "y"))
        alone = cost_of(shared)
        assert cost_of([shared, renamed]) == alone
        program = weft.Program("eql", (CompositeQuery("p", shared), CompositeQuery("q", renamed)))
        assert cost_of(program) == alone

    def test_unknown_rates_are_assumed_and_said(self) -> None:
        assert cost_of(next_(A, B)) == 2
        shown = json.loads(weft.explain(weft.compile("SELECT * FROM A a ; B b", "eql"), "optimized", "json"))
        assert shown["remarks"] == [f"the rate of {name} is not known: 1 per second is assumed" for name in "AB"]
        assert shown["statistics"]["rates"]["A"] == {"value": 1.0, "origin": "default"}


class TestStatistics:
    def test_says_where_a_number_is_from(self) -> None:
        measured = Statistics({"A": 5}, {"a.x>3": 0.25}, origin="measured")
        both = measured.over(Statistics({"A": 1, "B": 2}))
        assert both.rate("A") == (5, "measured")
        assert both.rate("B") == (2, "declared")
        assert both.rate("C") == (1, "default")
        assert both.fraction("a[x] > 3") == (0.25, "measured")
        assert both.fraction("a[x] > 4") is None

    def test_spellings_of_one_condition(self) -> None:
        assert written("b.k==a.k") == written("a[k] = b[k]") == "a.k = b.k"
        assert written("a.s = 'x = y'") == "a.s = 'x = y'"
        assert written("a.x>=3") == written("3 <= a.x") == "a.x >= 3"
        assert written("3 = a.x") == "a.x = 3"
        assert written("b.x>a.x") == written("a.x < b.x")
        assert written("a.x > PREV(a.x)") == written("a[x] > prev(a.x)") == written("a[x] > PREVIOUS(a[x])")
        assert written("'b.x' = a.s") == "a.s = 'b.x'"

    def test_goes_through_a_file(self, tmp_path: Path) -> None:
        known = Statistics({"A": 5}, {"A.x > 3": 0.25}, {"A": 120}, ticks_per_second=1.0).over(
            Statistics({"B": 2}, origin="measured")
        )
        known.write(tmp_path / "s.json")
        found = Statistics.read(tmp_path / "s.json")
        assert found.to_json() == known.to_json()
        assert found.rate("B").origin == "measured"

    def test_a_file_may_hold_numbers_alone(self, tmp_path: Path) -> None:
        (tmp_path / "s.json").write_text(json.dumps({"rates": {"A": 64}, "origin": "measured"}))
        assert weft.Statistics.read(tmp_path / "s.json").rate("A") == (64, "measured")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", "is not JSON"),
            ("[]", "an object is expected"),
            ('{"rate": {}}', "did you mean 'rates'?"),
            ('{"rates": {"A": -1}}', "the rate of 'A' must be a number at least 0"),
            ('{"selectivity": {"A.x > 3": 2}}', "between 0 and 1"),
            ('{"rates": {"A": {"value": 1, "origin": "guess"}}}', "unknown origin 'guess'"),
            ('{"rates": 3}', "rates must be an object"),
            ('{"ticks_per_second": 0}', "above 0"),
        ],
    )
    def test_a_wrong_file_is_refused_with_its_place(self, tmp_path: Path, text: str, message: str) -> None:
        (tmp_path / "s.json").write_text(text)
        with pytest.raises(InputError, match=r"s\.json") as error:
            Statistics.read(tmp_path / "s.json")
        assert message in str(error.value)

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no such file of statistics"):
            Statistics.read(tmp_path / "none.json")

    def test_wrong_numbers_are_refused(self) -> None:
        with pytest.raises(UsageError, match="the rate of 'A'"):
            Statistics(rates={"A": float("nan")})


EQL = """
SOURCE A (x int) RATE 64
SOURCE B (x int) RATE 8
SELECT a.x FROM A a ; B b
"""


class TestWhatIsKnownOfAProgram:
    def test_what_is_given_goes_before_what_is_declared(self) -> None:
        known = resolve_statistics(weft.compile(EQL, "eql"), Statistics({"B": 2}, origin="measured"))
        assert known.rate("A") == (64, "declared")
        assert known.rate("B") == (2, "measured")
        assert known.rate("C") == (1, "default")

    def test_ticks_are_those_of_the_program(self) -> None:
        assert resolve_statistics(weft.compile(EQL, "eql", time_unit="s"), Statistics()).seconds(60) == 60
        assert resolve_statistics(weft.compile(EQL, "eql")).seconds(60) == 0.06

    def test_what_a_query_defines_comes_as_often_as_its_matches(self) -> None:
        reader = CompositeQuery("r", next_(CompositeEvent("q", "q"), CompositeEvent("B", "b")))
        program = weft.compile(EQL, "eql")
        both = weft.Program("eql", (reader, *program.queries), inputs=program.inputs)
        assert resolve_statistics(both).rate("q") == (64, "derived")
