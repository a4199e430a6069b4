"""Conditions on one event that Spark evaluates hold for the events for which the classifier says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from weft.algebra.predicates import (
    And,
    Attribute,
    Comparison,
    ComparisonOperator,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
)
from weft.plan.atoms import IsType
from weft.runtime.classify.classifier import Classifier
from weft.runtime.data.events import EventBatch
from weft.runtime.reading.order import read_events
from weft.runtime.spark.compat import to_arrow
from weft.runtime.spark.packing.filters import Conditions
from weft.runtime.spark.packing.letters import Coding, coded_column, constant_test

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

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
OPERATORS: tuple[ComparisonOperator, ...] = ("=", "<>", "<", "<=", ">", ">=")


def simple() -> list[Predicate]:
    """Return all comparisons of a column with a constant, and some others, that Spark may be asked."""
    pairs = [(Attribute(name), Literal(value)) for name in NAMES for value in CONSTANTS]
    found: list[Predicate] = [Comparison(symbol, *pair) for pair in pairs for symbol in OPERATORS]
    found += [Comparison("<=", value, attribute) for attribute, value in pairs[::5]]
    found += [In(Attribute(name), values) for name in NAMES for values in ((1, 1.5), ("a", "ä"), (True,), (0, "a"))]
    found += [IsNull(Attribute(name)) for name in NAMES]
    return [*found, *map(IsType, "ABC"), Comparison("<", Attribute("i"), Attribute("n"))]


def combined(parts: Sequence[Predicate], count: int) -> list[Predicate]:
    """Return some Boolean combinations of predicates."""
    random = Random(7)
    made: list[Predicate] = []
    for _ in range(count):
        one, other, third = random.sample([*parts, *made], 3)
        made.append(random.choice([Not(one), And((one, other)), Or((one, other)), And((Not(one), Or((other, third))))]))
    return made


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> tuple[DataFrame, pa.Table]:
    frame = spark.createDataFrame(ROWS, SCHEMA).repartition(1).cache()
    return frame, to_arrow(frame)


def truths(batch: EventBatch, predicate: Predicate) -> list[bool]:
    """Return for each event whether the classifier says that it satisfies a predicate."""
    classifier = Classifier([[predicate]])
    letters = classifier.letters(batch)[0]
    return [classifier.truths(0, letter)[0] for letter in letters]


def test_spark_and_the_classifier_agree(events: tuple[DataFrame, pa.Table]) -> None:
    frame, table = events
    conditions = Conditions(frame.schema, "type")
    exact = {p: c for p in simple() if (c := conditions.exact(p)) is not None}
    known = {**exact, **{p: c for p in combined(list(exact), 60) if (c := conditions.exact(p)) is not None}}
    wider = {p: c for p in combined(simple(), 120) if (c := conditions.implied(p)) is not None}
    columns = [F.coalesce(c, F.lit(False)).alias(f"c{n}") for n, c in enumerate([*known.values(), *wider.values()])]
    found = to_arrow(frame.select("ts", *columns)).sort_by("ts")
    (batch,) = read_events(table, batch_size=1 << 20, columns=NAMES)
    assert batch.ends.tolist() == found["ts"].to_pylist()
    for number, predicate in enumerate([*known, *wider]):
        held, expected = found[f"c{number}"].to_pylist(), truths(batch, predicate)
        if number < len(known):
            assert held == expected, predicate
        else:
            assert all(own for own, needed in zip(held, expected, strict=True) if needed), predicate
    assert len(exact) > 200
    assert len(wider) > 20


def letter(conditions: Conditions, name: str, predicates: Sequence[Predicate]) -> tuple[Column, Coding] | None:
    """Return the classes of a column's values that some predicates on it tell apart, if Spark can."""
    found = [test for predicate in predicates if (test := constant_test(predicate)) is not None]
    if len(found) < len(predicates) or {own for own, _ in found} != {name}:
        return None
    return coded_column(conditions, name, [test for _, test in found])


def test_letters_stand_for_values_of_which_the_same_is_true(events: tuple[DataFrame, pa.Table]) -> None:
    frame, table = events
    conditions, random = Conditions(frame.schema, "type"), Random(11)
    cases: list[tuple[Coding, list[Predicate]]] = []
    columns = []
    for name in NAMES:
        own = [predicate for predicate in simple() if letter(conditions, name, [predicate]) is not None]
        for _ in range(12 if own else 0):
            few = random.sample(own, random.choice([1, 2, 3]))
            coded = letter(conditions, name, few)
            assert coded is not None
            columns.append(coded[0].alias(f"c{len(cases)}"))
            cases.append((coded[1], few))
    found = to_arrow(frame.select("ts", *columns)).sort_by("ts")
    (batch,) = read_events(table, batch_size=1 << 20, columns=NAMES)
    for number, (coding, few) in enumerate(cases):
        classes = found[f"c{number}"].combine_chunks().to_numpy(zero_copy_only=False)
        decoded = pa.table({"ts": table["ts"], "type": table["type"], coding.name: coding.column(classes)})
        (other,) = read_events(decoded, batch_size=1 << 20, columns=[coding.name])
        for predicate in few:
            assert truths(other, predicate) == truths(batch, predicate), (predicate, coding)
    names = {coding.name for coding, _ in cases}
    assert names == {"i", "n", "x", "f", "s", "b", "X2", "o.x", "o.s"}


def test_plain_comparisons_are_left_to_spark(events: tuple[DataFrame, pa.Table]) -> None:
    conditions = Conditions(events[0].schema, "type")
    for name, value in (("i", 1), ("n", 2**53 + 1), ("x", 1.5), ("f", 1), ("s", "a"), ("b", True), ("o.x", 1.5)):
        assert conditions.exact(Comparison("=", Attribute(name), Literal(value))) is not None
    for name, value in (("d", 1), ("at", 1), ("x", 2**53 + 1), ("n", 1.5), ("x2", 1), ("s", 1), ("o", 1)):
        assert conditions.exact(Comparison("=", Attribute(name), Literal(value))) is None
