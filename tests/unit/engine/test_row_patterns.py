"""The in-process engine of row patterns: order, output modes, skips, steps, kinds of conditions."""

from __future__ import annotations

import warnings
from decimal import Decimal

import pyarrow as pa
import pytest

from weft.algebra.row_patterns import RowPattern
from weft.errors import DataWarning, InputError
from weft.languages.sql.clauses import whole_clause
from weft.languages.sql.lower import compile_clause
from weft.runtime.operators.row_patterns.engine import match_rows
from weft.source import SourceText

TICKS = pa.table(
    {
        "symbol": ["x", "y", "x", "y", "x", "y", "x"],
        "at": [1, 1, 2, 2, 3, 3, 4],
        "price": [9, 5, 7, 6, 8, 4, 10],
    }
)


def clause(text: str, table: pa.Table = TICKS) -> RowPattern:
    source = SourceText(text)
    return compile_clause(source, whole_clause(source), dict.fromkeys(table.column_names, ""))[0]


def rows(text: str, table: pa.Table = TICKS, **options: int) -> list[dict[str, object]]:
    return list(match_rows(table, clause(text, table), **options).to_pylist())


V_SHAPE = "PATTERN (S D+ U+) DEFINE D AS price < PREV(price), U AS price > PREV(price)"


def test_a_pattern_is_found_in_each_partition() -> None:
    found = rows(f"PARTITION BY symbol ORDER BY at MEASURES FIRST(price) AS top, LAST(D.price) AS low {V_SHAPE}")
    assert found == [{"symbol": "x", "top": 9, "low": 7}]


def test_rows_are_sorted_as_order_by_says() -> None:
    shuffled = TICKS.take([4, 6, 0, 3, 1, 5, 2])
    text = f"PARTITION BY symbol ORDER BY at MEASURES COUNT(*) AS n {V_SHAPE}"
    assert rows(text, shuffled) == rows(text)


@pytest.mark.parametrize(("nulls", "first"), [("", None), ("NULLS LAST", 1), ("DESC", 3), ("DESC NULLS FIRST", None)])
def test_nulls_in_order_by(nulls: str, first: int | None) -> None:
    table = pa.table({"k": [3, None, 1], "v": ["c", "n", "a"]})
    assert rows(f"ORDER BY k {nulls} MEASURES FIRST(k) AS first PATTERN (A+)", table) == [{"first": first}]


def test_rows_that_tie_stay_in_order() -> None:
    table = pa.table({"k": [2, 1, 2, 1], "v": [1, 2, 3, 4]})
    assert rows("ORDER BY k MEASURES array_agg(v) AS vs PATTERN (A+)", table) == [{"vs": [2, 4, 1, 3]}]


def test_without_order_by_there_is_a_warning() -> None:
    with pytest.warns(DataWarning, match="without ORDER BY"):
        rows("MEASURES COUNT(*) AS n PATTERN (A+)")


def test_within_leaves_out_the_row_at_its_end() -> None:
    table = pa.table({"at": pa.array([0, 5, 10], pa.timestamp("s")), "v": ["a", "x", "b"]})
    text = """ORDER BY at MEASURES COUNT(*) AS n PATTERN (A X* B) WITHIN INTERVAL '{}' SECOND
              DEFINE A AS v = 'a', B AS v = 'b'"""
    assert rows(text.format(10), table) == []
    assert rows(text.format(11), table) == [{"n": 3}]


def test_within_lets_a_shorter_match_through() -> None:
    table = pa.table({"at": pa.array([0, 5, 10], pa.timestamp("s"))})
    assert rows("ORDER BY at MEASURES COUNT(*) AS n PATTERN (A+) WITHIN INTERVAL '10' SECOND", table) == [
        {"n": 2},
        {"n": 1},
    ]


def test_unmatched_rows_with_empty_matches() -> None:
    table = pa.table({"at": [1, 2, 3, 4], "v": [0, 1, 1, 0]})
    text = """ORDER BY at MEASURES MATCH_NUMBER() AS m, CLASSIFIER() AS c ALL ROWS PER MATCH WITH UNMATCHED ROWS
              PATTERN ({}) DEFINE A AS v = 1"""
    assert [(row["at"], row["m"], row["c"]) for row in rows(text.format("A+"), table)] == [
        (1, None, None),
        (2, 1, "A"),
        (3, 1, "A"),
        (4, None, None),
    ]
    assert [(row["at"], row["m"], row["c"]) for row in rows(text.format("A*"), table)] == [
        (1, 1, None),
        (2, 2, "A"),
        (3, 2, "A"),
        (4, 3, None),
    ]


def test_skip_to_a_variable_that_is_not_there_names_the_place() -> None:
    text = "PARTITION BY symbol ORDER BY at MEASURES 1 AS one AFTER MATCH SKIP TO B PATTERN (A B?) DEFINE B AS false"
    with pytest.raises(InputError, match=r"the match has no row of B \(partition symbol = 'x', row 1, match 1\)"):
        rows(text)


def test_skip_to_the_first_row_again_is_an_error() -> None:
    with pytest.raises(InputError, match="would start at the match's first row again"):
        rows("ORDER BY at MEASURES 1 AS one AFTER MATCH SKIP TO A PATTERN (A)")


def test_many_states_and_bounds() -> None:
    table = pa.table({"at": list(range(250))})
    assert rows("ORDER BY at MEASURES COUNT(*) AS n PATTERN (A{100})", table) == [{"n": 100}, {"n": 100}]
    assert rows("ORDER BY at MEASURES COUNT(*) AS n PATTERN (A{70,} B{3})", table) == [{"n": 250}]


def test_a_condition_on_the_match_may_give_rows_back() -> None:
    table = pa.table({"at": [1, 2, 3, 4], "v": [1, 2, 3, 4]})
    text = "ORDER BY at MEASURES array_agg(A.v) AS a, B.v AS b PATTERN (A+ B) DEFINE B AS v = SUM(A.v)"
    assert rows(text, table) == [{"a": [1, 2], "b": 3}]


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.decimal128(9, 2)])
def test_running_aggregates_of_all_kinds_of_numbers(kind: pa.DataType) -> None:
    values = [Decimal(x) for x in ("1", "2", "4", "1")] if pa.types.is_decimal(kind) else [1, 2, 4, 1]
    table = pa.table({"at": [1, 2, 3, 4], "v": pa.array(values, kind)})
    text = "ORDER BY at MEASURES COUNT(*) AS n PATTERN (A+) DEFINE A AS SUM(A.v) <= 5 AND {}(A.v) < 3"
    for aggregate in ("MAX", "AVG", "MIN"):
        assert rows(text.format(aggregate), table)[0] == {"n": 2}


def test_too_many_steps_are_an_error_that_names_the_place() -> None:
    table = pa.table({"at": list(range(40)), "v": [1] * 40})
    text = "ORDER BY at MEASURES 1 AS one PATTERN ((A | B)* C) DEFINE C AS COUNT(A.*) * 7 = COUNT(B.*) * 11 + 1"
    with pytest.raises(InputError, match=r"took more than 1,000 steps.*row 1"):
        rows(text, table, max_steps=1000)


def test_nested_loops_that_cannot_end_take_linear_time() -> None:
    table = pa.table({"at": list(range(5000)), "v": ["a"] * 5000})
    assert rows("ORDER BY at MEASURES 1 AS x PATTERN ((A* A*)* B) DEFINE A AS v = 'a', B AS v = 'b'", table) == []
    depends = "ORDER BY at MEASURES 1 AS x PATTERN (^(A* A*)* B) DEFINE A AS v = 'a', B AS COUNT(A.*) < 0"
    assert rows(depends, table, max_steps=100_000) == []


def test_types_of_measures_are_those_of_spark() -> None:
    table = pa.table(
        {"at": pa.array([1, 2], pa.int32()), "d": pa.array([Decimal("1.50"), Decimal("2.25")], pa.decimal128(5, 2))}
    )
    text = """ORDER BY at MEASURES MATCH_NUMBER() AS m, CLASSIFIER() AS c, LAST(at) AS l, SUM(at) AS s, AVG(at) AS a,
              SUM(d) AS ds, AVG(d) AS da, COUNT(*) AS n, array_agg(at) AS xs PATTERN (A+)"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = match_rows(table, clause(text, table))
    assert [str(field.type) for field in found.schema] == [
        "int64",
        "string",
        "int32",
        "int64",
        "double",
        "decimal128(15, 2)",
        "decimal128(9, 6)",
        "int64",
        "list<item: int32>",
    ]
