"""MATCH_RECOGNIZE with known answers: published cases, and our own, by weft.sql on each engine."""

from __future__ import annotations

import json
import warnings
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.harness import Case, load_own_vectors, load_vectors

import weft

CASES = [*load_vectors("match_recognize"), *load_own_vectors("match_recognize")]
ENGINES = ("meaning", "local")
MORE_TABLES = {"trino/TestRowPatternMatching/testMultipleMatchRecognize/1": {"t2": 1, "t3": 2}}  # first rows of t


def test_own_cases_are_found() -> None:
    assert len(load_own_vectors("match_recognize")) >= 30


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_case(case: Case, engine: str) -> None:
    tables = tables_of(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "error" in case:
            with pytest.raises(weft.InputError, match=str(case["error"])):
                weft.sql(str(case["sql"]), engine=engine, tables=tables)
            return
        table = weft.sql(str(case["sql"]), engine=engine, tables=tables)
    found = [list(row.values()) for row in _unique(table).to_pylist()]
    expected: list[Any] = case["expected"]["rows"]  # type: ignore[index,call-overload]
    if not case.get("ordered"):
        found, expected = sorted(found, key=_plain), sorted(expected, key=_plain)
    assert list(map(_plain, found)) == list(map(_plain, expected))


def tables_of(case: Case) -> dict[str, Any]:
    """The tables of a case, as rows."""
    given: Any = case["input"]
    types = given.get("types", {})

    def value(column: str, item: Any) -> Any:
        is_time = types.get(column) == "timestamp" and item is not None
        return datetime.fromisoformat(item) if is_time else item

    rows = [
        {name: value(name, item) for name, item in zip(given["columns"], row, strict=True)} for row in given["rows"]
    ]
    more = MORE_TABLES.get(str(case["id"]), {})
    return {given["name"]: rows, **{name: rows[:count] for name, count in more.items()}}


def _unique(table: Any) -> Any:
    return table.rename_columns([f"c{number}" for number in range(table.num_columns)])


def _plain(row: Any) -> str:
    return json.dumps(row, default=lambda value: float(value) if isinstance(value, Decimal) else str(value))
