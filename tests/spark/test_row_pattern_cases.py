"""MATCH_RECOGNIZE with known answers on Spark: every fourth case, or all of them if WEFT_EXAMPLES is set."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.harness import Case
from tests.languages.test_sql_vectors import CASES, _plain, tables_of

import weft

LOCAL_ONLY = ("own/ties-keep-the-order-of-the-input",)  # Spark orders ties by the other columns
CHOSEN = [case for case in (CASES if "WEFT_EXAMPLES" in os.environ else CASES[::4]) if case["id"] not in LOCAL_ONLY]
pytestmark = pytest.mark.spark


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: str(case["id"]))
def test_case(case: Case, spark: SparkSession) -> None:
    text = str(case["sql"])
    for name, rows in tables_of(case).items():
        if not rows:
            pytest.skip("a table without rows has no types")
        spark.createDataFrame(rows).createOrReplaceTempView(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "order by" not in text.lower() or "error" in case:
            with pytest.raises(Exception, match=str(case.get("error", "ORDER BY"))):
                weft.sql(text, spark=spark).collect()
            return
        found = [list(row) for row in weft.sql(text, spark=spark).collect()]
    expected: list[Any] = case["expected"]["rows"]  # type: ignore[index,call-overload]
    if not case.get("ordered"):
        found, expected = sorted(found, key=_plain), sorted(expected, key=_plain)
    assert list(map(_plain, found)) == list(map(_plain, expected))
