"""The engine of row patterns gives what `meaning` gives: labels, measures, skips, empty loops, nulls, WITHIN."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from tests.row_pattern_strategies import clauses, compiled, tables

from weft.algebra.meaning.row_patterns import evaluate_rows
from weft.algebra.row_patterns import RowPattern
from weft.errors import InputError
from weft.runtime.operators.row_patterns.engine import match_rows

SCHEMA = pa.schema(
    {"part": pa.string(), "ts": pa.timestamp("us"), "v": pa.int32(), "x": pa.float64(), "name": pa.string()}
)


BEYOND = "beyond 64 bits"


def timed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose numbers are times."""
    start = datetime(1970, 1, 1)
    return [{**row, "ts": None if row["ts"] is None else start + timedelta(seconds=row["ts"])} for row in rows]


def by_meaning(query: RowPattern, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]] | str:
    try:
        return evaluate_rows(query, rows)
    except InputError as error:
        return _kind(error)


def by_engine(query: RowPattern, rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> list[tuple[Any, ...]] | str:
    try:
        table = match_rows(pa.Table.from_pylist(rows, schema), query)
    except InputError as error:
        return _kind(error)
    assert tuple(table.column_names) == query.output_columns
    return [tuple(row.values()) for row in table.to_pylist()]


def _kind(error: InputError) -> str:
    known = ("no row of", "first row again", "division by zero", BEYOND)
    return next((kind for kind in known if kind in str(error)), str(error))


@settings(deadline=None, max_examples=60)
@given(clauses(), tables())
def test_the_engine_equals_meaning(text: str, rows: list[dict[str, Any]]) -> None:
    query, rows = compiled(text), timed(rows)
    wanted, found = by_meaning(query, rows), by_engine(query, rows)
    if isinstance(wanted, str) or isinstance(found, str):
        assert found == wanted
    else:
        assert sorted(found, key=repr) == sorted(wanted, key=repr)


@settings(deadline=None, max_examples=100)
@given(clauses(extreme=True), tables(extreme=True, largest=8))
def test_extreme_numbers_compare_by_value(text: str, rows: list[dict[str, Any]]) -> None:
    query, rows = compiled(text, extreme=True), timed(rows)
    found = by_engine(query, rows, SCHEMA.set(SCHEMA.get_field_index("v"), pa.field("v", pa.int64())))
    wanted = by_meaning(query, rows)
    if BEYOND in (found, wanted):  # what is never evaluated is no error: which rows are is not fixed
        assert any(abs(row["v"] or 0) >= 2**60 for row in rows)
    elif isinstance(wanted, str) or isinstance(found, str):
        assert found == wanted
    else:
        assert sorted(found, key=repr) == sorted(wanted, key=repr) or sorted(map(repr, found)) == sorted(
            map(repr, wanted)
        )
