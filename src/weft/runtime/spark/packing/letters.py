"""Letters: what conditions on single events tell apart, as one small integer that Spark computes instead of columns.

A column that is only compared with constants has few classes of values that no condition tells apart. Catalyst gives
each row one number for the classes of all such columns, and of its type; a task turns the number into one value of each
class, so that all conditions hold as they would hold for the values in the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import groupby, pairwise
from operator import add, eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from weft.algebra.predicates import MIRRORED, Attribute, Comparison, In, IsNull, Literal, Value
from weft.runtime.data.events import STREAM
from weft.runtime.reading.times import END, START
from weft.runtime.spark.columns import quoted
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.filters import EXACT, FLOATS, INT64, INTEGERS, Conditions, is_plain, is_text

LETTERS = "weft_letters"
OTHER = "\0other"  # the type of all events whose type no query names
MOST = 1 << 15  # letters: they are a short integer
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_KINDS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
Test = tuple[str, tuple[Value, ...]]  # a comparison with constants; "in" and "null" too
Classes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Coding:
    """The classes of a column's values, with a value of each; None where a value that is missing is one of them."""

    name: str
    kind: type
    values: tuple[Value | None, ...]

    def column(self, classes: Classes) -> pa.Array:
        """Values of these classes."""
        if self.kind is not str:
            return pa.array(self.values, _KINDS[self.kind]).take(pa.array(classes))
        known = [value for value in self.values if value is not None]
        places = np.array([-1 if value is None else known.index(value) for value in self.values], np.int32)[classes]
        indices = pa.array(places, mask=places < 0 if len(known) < len(self.values) else None)
        return pa.DictionaryArray.from_arrays(indices, pa.array(known, pa.string()))


@dataclass(frozen=True)
class Letters:
    """The columns that a letter encodes."""

    codings: tuple[Coding, ...]

    @property
    def count(self) -> int:
        """How many letters there are."""
        return math.prod(len(coding.values) for coding in self.codings)

    @cached_property
    def _classes(self) -> list[Classes]:
        """For each column the class of each letter."""
        left: npt.NDArray[np.int64] = np.arange(self.count)
        found = []
        for coding in self.codings:
            found.append((left % len(coding.values)).astype(np.int32))
            left = left // len(coding.values)
        return found

    def decode(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with values in the columns that their letters encode."""
        names = [name for name in rows.schema.names if name != LETTERS]
        letters = rows.column(LETTERS).to_numpy(zero_copy_only=False)
        decoded = [coding.column(own[letters]) for coding, own in zip(self.codings, self._classes, strict=True)]
        columns = [*(rows.column(name) for name in names), *decoded]
        return pa.RecordBatch.from_arrays(columns, [*names, *(coding.name for coding in self.codings)])


def letters_of(job: Job, schema: T.StructType) -> tuple[Column, Letters] | None:
    """Return the letter of a row as an expression, and what it encodes, or None if the columns themselves are needed.

    Ids are computed from attributes, so this is for jobs that only count, and results without ids.
    """
    reading = job.reading
    if job.streaming or not job.is_anonymous or not is_plain(schema) or LETTERS in schema.names:
        return None
    tests, taken = _constant_tests(job.plan.queries), set(reading.shown or ()) | _always(job)
    found = {
        name: coded
        for name, own in tests.items()
        if name not in taken and (coded := coded_column(Conditions(schema, reading.type), name, own)) is not None
    }
    kind = schema[reading.type].dataType if reading.type in schema.names else None
    mentioned = {name for query in job.plan.queries for name in query.mentions()}
    if reading.type not in {*mentioned, *(reading.shown or ())} and kind is not None and is_text(kind):
        names = sorted({name for query in job.plan.queries for name in query.reads})
        found[reading.type] = _coded_type(reading.type, names)
    while found and math.prod(len(coding.values) for _, coding in found.values()) > MOST:
        del found[max(found, key=lambda name: len(found[name][1].values))]
    if not found:
        return None
    letters = Letters(tuple(coding for _, coding in found.values()))
    strides = np.cumprod([1, *(len(coding.values) for coding in letters.codings)]).tolist()
    parts = [classes * F.lit(stride) for (classes, _), stride in zip(found.values(), strides, strict=False)]
    total = parts[0]
    for part in parts[1:]:
        total = add(total, part)
    return total.cast("byte" if letters.count <= 1 << 7 else "short").alias(LETTERS), letters


def _always(job: Job) -> set[str]:
    """The columns that are read as they are, whatever conditions say of them."""
    reading = job.reading
    declared = {name for kind in reading.catalog.all_types() for name, _ in kind.attributes}
    return {reading.time, reading.type, START, END, STREAM, *reading.order, *reading.key} | declared


# ---------------------------------------------------------------- what conditions ask


def _constant_tests(queries: Iterable[object]) -> Mapping[str, list[Test]]:
    """By attribute the comparisons with constants, of attributes that are in no other place of any query."""
    tests: dict[str, list[Test]] = {}
    elsewhere: set[str] = set()
    waiting: list[object] = list(queries)
    while waiting:
        item = waiting.pop()
        test = constant_test(item)
        if test is not None:
            tests.setdefault(test[0], []).append(test[1])
        elif isinstance(item, str):
            elsewhere.add(item)
        elif isinstance(item, tuple | list | set | frozenset):
            waiting += item
        elif isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif hasattr(item, "__dataclass_fields__"):
            waiting += [getattr(item, own.name) for own in fields(item) if own.name not in ("mentioned", "spans")]  # type: ignore[arg-type]
    return {name: own for name, own in tests.items() if name not in elsewhere}


def constant_test(node: object) -> tuple[str, Test] | None:
    """A comparison of an attribute with constants, if that is what a node is."""
    match node:
        case Comparison(symbol, Attribute(name), Literal(value)):
            return name, (symbol, (value,))
        case Comparison(symbol, Literal(value), Attribute(name)):
            return name, (MIRRORED[symbol], (value,))
        case In(Attribute(name), values):
            return name, ("in", values)
        case IsNull(Attribute(name)):
            return name, ("null", ())
    return None


def _holds(test: Test, value: Value | None) -> bool:
    symbol, constants = test
    if value is None or symbol == "null":
        return value is None and symbol == "null"
    return value in constants if symbol == "in" else _COMPARE[symbol](value, constants[0])


# ---------------------------------------------------------------- classes of values


def coded_column(conditions: Conditions, name: str, tests: Sequence[Test]) -> tuple[Column, Coding] | None:
    """The class of a column's value as an expression, if Spark answers the tests as the classifier does."""
    found = conditions.column(name)
    if found is None:
        return None
    column, spark_kind = found
    kind = _kind_of(spark_kind)
    constants = [value for _, values in tests for value in values]
    if kind is None or not all(_fits(kind, value) for value in constants):
        return None
    if kind is bool and any(symbol not in ("=", "<>", "in", "null") for symbol, _ in tests):
        return None
    missing = column.isNull()
    if kind is float:
        column = column.cast("double")
        missing |= F.isnan(column)
    return _classified(name, kind, (column, missing), sorted(set(map(kind, constants))), tests)


def _kind_of(kind: T.DataType) -> type | None:
    if isinstance(kind, INTEGERS):
        return int
    if isinstance(kind, FLOATS):
        return float
    return bool if isinstance(kind, T.BooleanType) else str if is_text(kind) else None


def _fits(kind: type, value: Value) -> bool:
    """Whether Spark compares columns of a kind with a constant as the classifier does."""
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= EXACT
    return type(value) is kind and (kind is not int or value in INT64)


def _classified(
    name: str, kind: type, found: tuple[Column, Column], constants: Sequence[Any], tests: Sequence[Test]
) -> tuple[Column, Coding]:
    """The class of a value, by its place among the constants, and a value of each class.

    `found`: the column, and whether it has no value.
    """
    column, missing = found
    numbers: dict[tuple[bool, ...], int] = {}
    values: list[Value | None] = []

    def class_of(value: Value | None) -> int:
        held = tuple(_holds(test, value) for test in tests)
        if held not in numbers:
            numbers[held] = len(values)
            values.append(value)
        return numbers[held]

    cells = [(class_of(value), bound) for value, bound in _cells(kind, constants)]
    between = {number for number, (_, inclusive) in cells if not inclusive}
    last = cells[-1][0]
    if len(between) == 1:  # only equality decides
        (last,) = between
        chosen = [(column == bound, number) for number, (bound, inclusive) in cells if inclusive and number != last]
    else:
        merged = [list(group)[-1] for _, group in groupby(cells, key=lambda cell: cell[0])]
        chosen = [
            (column <= bound if inclusive else column < bound, number) for number, (bound, inclusive) in merged[:-1]
        ]
    none = class_of(None)
    if none != last:
        chosen = [(missing, none), *chosen]
    return _cases(chosen, last), Coding(name, kind, tuple(values))


def _cases(chosen: Sequence[tuple[Column, int]], last: int) -> Column:
    """The number of the first condition that holds, or the last."""
    if not chosen:
        return F.lit(last)
    cases = F.when(chosen[0][0], F.lit(chosen[0][1]))
    for condition, number in chosen[1:]:
        cases = cases.when(condition, F.lit(number))
    return cases.otherwise(F.lit(last))


def _cells(kind: type, constants: Sequence[Any]) -> Iterator[tuple[Any, tuple[Any, bool]]]:
    """A value below each constant and each constant, in order, and a value above all; each with the constant that
    bounds it, and whether that is in the cell. Where no value is between constants there is no cell."""
    if kind is bool:
        yield from ((value, (value, True)) for value in (False, True))
        return
    if not constants:
        yield kind(), (None, False)
        return
    below = _below(kind, constants[0])
    if below is not None:
        yield below, (constants[0], False)
    for constant, following in pairwise([*constants, None]):
        yield constant, (constant, True)
        above = _above(kind, constant)
        if above is not None and (following is None or above < following):
            yield above, (following, False)


def _below(kind: type, constant: Any) -> Any:
    """A value that is less than a constant, if there is any."""
    if kind is int:
        return constant - 1 if constant - 1 in INT64 else None
    return -math.inf if kind is float else "" if constant else None


def _above(kind: type, constant: Any) -> Any:
    """The least value that is greater than a constant, if there is any."""
    if kind is int:
        return constant + 1 if constant + 1 in INT64 else None
    return math.nextafter(constant, math.inf) if kind is float else constant + "\0"


def _coded_type(name: str, types: Sequence[str]) -> tuple[Column, Coding]:
    """The class of an event's type: each type that queries name, any other, or none."""
    column = F.col(quoted(name))
    chosen = [(column == own, number) for number, own in enumerate(types)]
    classes = _cases([*chosen, (column.isNull(), len(types))], len(types) + 1)
    return classes, Coding(name, str, (*types, None, OTHER))
