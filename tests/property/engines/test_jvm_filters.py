"""Conditions on one event that Spark evaluates hold for the events for which the classifier says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyspark.sql import functions as F
from tests.harness import some

from weft.algebra.predicates import And, Attribute, Comparison, In, IsNull, Literal, Not, Or, Predicate
from weft.plan.atoms import IsType
from weft.runtime.classify.classifier import Classifier
from weft.runtime.reading.order import read_events
from weft.runtime.spark.compat import to_arrow
from weft.runtime.spark.packing.filters import Conditions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
SCHEMA = (
    "type string, ts long, i int, n long, x double, f float, s string, b boolean, d decimal(20, 2), at timestamp, "
    "plain timestamp_ntz, X2 double, o struct<x: double, s: string>"
)
WHOLE = (None, 0, 1, -1, 2**31 - 1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1)
REAL = (None, 0.0, -0.0, 1.0, 1.5, math.nan, math.inf, -math.inf, 2.0**53, 1e300, 0.1)
TEXTS = (None, "", "a", "B", "ä", "z", "\U0001f600", "\uffff", "1", "a ")
CONSTANTS = (0, 1, -1, 1.5, 0.1, 2**53, 2**53 + 1, 2**63, 0.0, Decimal("1.25"), "", "a", "ä", "\uffff", True, False)
NAMES = ("i", "n", "x", "f", "s", "b", "d", "at", "plain", "X2", "x2", "o.x", "o.s", "o", "nothing", "o.nothing")
ROWS = [
    (
        "AB"[row % 2],
        row,
        (None, 0, 1, -1, 2**31 - 1)[row % 5],
        WHOLE[row % len(WHOLE)],
        REAL[row % len(REAL)],
        REAL[(row + 3) % 8],
        TEXTS[row % len(TEXTS)],
        (None, True, False)[row % 3],
        (None, Decimal("1.25"), Decimal(0))[row % 3],
        (None, datetime(1970, 1, 1), datetime(2024, 5, 1))[row % 3],
        (None, datetime(1970, 1, 1), datetime(2024, 5, 1))[row % 3],
        REAL[(row + 5) % len(REAL)],
        None if row % 7 == 0 else (REAL[(row + 1) % len(REAL)], TEXTS[(row + 1) % len(TEXTS)]),
    )
    for row in range(90)
]
ATTRIBUTES = st.sampled_from(NAMES).map(Attribute)
LITERALS = st.sampled_from(CONSTANTS).map(Literal)
OPERATORS = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))
SIMPLE = st.one_of(
    st.builds(Comparison, OPERATORS, ATTRIBUTES, LITERALS),
    st.builds(Comparison, OPERATORS, LITERALS, ATTRIBUTES),
    st.builds(Comparison, OPERATORS, ATTRIBUTES, ATTRIBUTES),
    st.builds(In, ATTRIBUTES, st.lists(st.sampled_from(CONSTANTS), min_size=1, max_size=3).map(tuple)),
    st.builds(IsNull, ATTRIBUTES),
    st.sampled_from(["A", "B", "C"]).map(IsType),
)
PREDICATES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, min_size=2, max_size=3).map(tuple).map(And),
        st.lists(inner, min_size=2, max_size=3).map(tuple).map(Or),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> tuple[DataFrame, pa.Table]:
    frame = spark.createDataFrame(ROWS, SCHEMA).repartition(1).cache()
    return frame, to_arrow(frame)


def truths(table: pa.Table, predicate: Predicate) -> list[bool]:
    (batch,) = read_events(table, batch_size=1 << 20)
    classifier = Classifier([[predicate]])
    held = [classifier.truths(0, letter)[0] for letter in classifier.letters(batch)[0]]
    return [value for _, value in sorted(zip(batch.ends.tolist(), held, strict=True))]


@some(6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(PREDICATES, min_size=30, max_size=30))
def test_spark_and_the_classifier_agree(events: tuple[DataFrame, pa.Table], predicates: Sequence[Predicate]) -> None:
    frame, table = events
    conditions = Conditions(frame.schema, "type")
    exact = {n: c for n, p in enumerate(predicates) if (c := conditions.exact(p)) is not None}
    implied = {n: c for n, p in enumerate(predicates) if (c := conditions.implied(p)) is not None}
    assert exact.keys() <= implied.keys()
    columns = [F.coalesce(c, F.lit(False)).alias(f"e{n}") for n, c in exact.items()]
    columns += [F.coalesce(c, F.lit(False)).alias(f"i{n}") for n, c in implied.items()]
    found = to_arrow(frame.select("ts", *columns)).sort_by("ts")
    for number, predicate in enumerate(predicates):
        expected = truths(table, predicate)
        if number in exact:
            assert found[f"e{number}"].to_pylist() == expected, predicate
        if number in implied:
            wider = found[f"i{number}"].to_pylist()
            assert all(held for held, needed in zip(wider, expected, strict=True) if needed), predicate


def test_plain_comparisons_are_left_to_spark(events: tuple[DataFrame, pa.Table]) -> None:
    conditions = Conditions(events[0].schema, "type")
    for name, value in (("i", 1), ("n", 2**53 + 1), ("x", 1.5), ("f", 1), ("s", "a"), ("b", True), ("o.x", 1.5)):
        assert conditions.exact(Comparison("=", Attribute(name), Literal(value))) is not None
    for name, value in (("d", 1), ("at", 1), ("x", 2**53 + 1), ("n", 1.5), ("x2", 1), ("s", 1), ("o", 1)):
        assert conditions.exact(Comparison("=", Attribute(name), Literal(value))) is None
