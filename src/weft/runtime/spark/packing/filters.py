"""Filters in the JVM: predicates on one event as Catalyst expressions, so that events no query can use stay there.

Catalyst's answer must be the classifier's. Where Spark compares otherwise (NaN is above all numbers and equal to
itself, a null is neither true nor false) the expression says so; where the two may differ (decimals, integers beyond
2^53 beside floats, times, collations) there is none, and the condition is left to the classifier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from weft.algebra.predicates import (
    MIRRORED,
    Always,
    And,
    Attribute,
    Comparison,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Value,
)
from weft.plan.atoms import IsType
from weft.runtime.lanes.uses import uses_of
from weft.runtime.reading.times import END, FARTHEST, START
from weft.runtime.spark.columns import quoted
from weft.runtime.spark.jobs.job import Job
from weft.runtime.watching.census import streams_of
from weft.schema import Catalog

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
FLOATS = (T.FloatType, T.DoubleType)
_TIMES = (*INTEGERS[2:], T.TimestampType, T.TimestampNTZType, T.DateType)
LOOKED_AT = 1 << 14  # events whose types are told to users who find nothing
EXACT = 1 << 53  # up to here all integers are floats
INT64 = range(-(1 << 63), 1 << 63)


def useful(frame: DataFrame, job: Job, schema: T.StructType) -> DataFrame:
    """The frame without events that change nothing; the same frame where that cannot be told, or all are counted."""
    condition = useful_rows(job, schema)
    return frame if condition is None else frame.where(condition)


def useful_rows(job: Job, schema: T.StructType) -> Column | None:
    """A condition that rows satisfy if they are in a match, or cannot be read; None: any row may matter.

    Of a stream they must come along, since time follows them; but not what they have besides.
    """
    plan = job.leaving_out if job.streaming else job.plan
    if plan is None or job.counts_positions or streams_of(plan.program) or not _may_leave_out(job, schema):
        return None
    seen = uses_of(plan).seen
    return None if seen is None else _any_or_unreadable(seen, job, schema)


def shown_rows(job: Job, schema: T.StructType) -> Column | None:
    """Return a condition that rows of a finite input satisfy if a match may include them, or if they are unreadable.

    None if any row may be included, or if all rows are sent anyway.
    """
    if job.streaming or not _may_leave_out(job, schema):
        return None
    uses = uses_of(job.plan)
    if uses.bound == uses.seen and useful_rows(job, schema) is not None:
        return None
    return _any_or_unreadable(uses.bound, job, schema)


def _may_leave_out(job: Job, schema: T.StructType) -> bool:
    """Whether Spark knows which rows weft can read, and nothing depends on the values of all of them."""
    reading, names = job.reading, schema.names
    if reading.key or not job.limits.is_none or not is_plain(schema) or {START, END} & set(names):
        return False
    if not {reading.time, reading.type} <= set(names) or not is_text(schema[reading.type].dataType):
        return False
    time = schema[reading.time].dataType
    if not isinstance(time, _TIMES):
        return False
    if not isinstance(time, INTEGERS) and reading.time_unit == "ns":  # some times are too far away for such ticks
        return False
    return not any(_declared(reading.catalog))


def _any_or_unreadable(predicates: Sequence[Predicate], job: Job, schema: T.StructType) -> Column | None:
    """A condition of rows for which one of the predicates holds, or that cannot be read; None if Spark cannot tell."""
    reading = job.reading
    conditions = [Conditions(schema, reading.type).implied(predicate) for predicate in predicates]
    if not conditions or any(condition is None for condition in conditions):
        return None
    unreadable = [F.col(quoted(name)).isNull() for name in (reading.time, reading.type)]
    if isinstance(schema[reading.time].dataType, T.LongType):  # some times are too far away
        ticks = F.col(quoted(reading.time))
        unreadable += [ticks <= -FARTHEST, ticks >= FARTHEST]
    return reduce(or_, [*(condition for condition in conditions if condition is not None), *unreadable])


class Conditions:
    """Predicates on the current event as Catalyst expressions over the columns of a frame."""

    def __init__(self, schema: T.StructType, type_name: str) -> None:
        self._schema = schema
        self._type = type_name

    def implied(self, predicate: Predicate) -> Column | None:
        """An expression that is true wherever the predicate holds, and maybe elsewhere; None: there is none."""
        match predicate:
            case And(operands):
                parts = [part for part in map(self.implied, operands) if part is not None]
                return reduce(and_, parts) if parts else None
            case Or(operands):
                found = [self.implied(operand) for operand in operands]
                known = [part for part in found if part is not None]
                return reduce(or_, known) if known and len(known) == len(found) else None
            case Always():
                return None
        return self.exact(predicate)

    def exact(self, predicate: Predicate) -> Column | None:
        """An expression that is true where the predicate holds, and nowhere else; null counts as false."""
        match predicate:
            case Always():
                return F.lit(True)
            case And(operands) | Or(operands):
                parts = [self.exact(operand) for operand in operands]
                known = [part for part in parts if part is not None]
                return reduce(and_ if isinstance(predicate, And) else or_, known) if len(known) == len(parts) else None
            case Not(operand):
                inner = self.exact(operand)
                return None if inner is None else ~F.coalesce(inner, F.lit(False))
            case IsType(name):
                return F.col(quoted(self._type)) == F.lit(name)
            case Comparison(symbol, Attribute(name), Literal(value)):
                return self._compared(name, symbol, value)
            case Comparison(symbol, Literal(value), Attribute(name)):
                return self._compared(name, MIRRORED[symbol], value)
            case In(Attribute(name), values):
                equal = [self._compared(name, "=", value) for value in values]
                known = [part for part in equal if part is not None]
                return reduce(or_, known) if known and len(known) == len(equal) else None
            case IsNull(Attribute(name)):
                return self._missing(name)
        return None

    def _compared(self, name: str, symbol: str, value: Value) -> Column | None:
        found = self.column(name)
        if found is None:
            return None
        column, kind = found
        compare = _OPERATORS[symbol]
        if isinstance(value, bool):
            fits = isinstance(kind, T.BooleanType) and symbol in ("=", "<>")
            return compare(column, F.lit(value)) if fits else None
        if isinstance(value, str):
            return compare(column, F.lit(value)) if is_text(kind) else None
        if isinstance(kind, INTEGERS) and isinstance(value, int) and value in INT64:
            return compare(column, F.lit(value).cast("long"))
        if isinstance(kind, FLOATS) and isinstance(value, int | float) and abs(value) <= EXACT:
            number = column.cast("double")
            held = compare(number, F.lit(float(value)))
            # NaN is above infinity, which a scan of files can be told; it does not know `isnan`.
            return held & (number <= F.lit(math.inf)) if symbol in (">", ">=", "<>") else held
        return None

    def _missing(self, name: str) -> Column | None:
        found = self.column(name)
        if found is None:
            return None
        column, kind = found
        if isinstance(kind, FLOATS):
            return column.isNull() | F.isnan(column)
        return column.isNull() if is_text(kind) or isinstance(kind, (*INTEGERS, T.BooleanType)) else None

    def column(self, name: str) -> tuple[Column, T.DataType] | None:
        """A column of this name, or a field of a struct, with its type."""
        if name in self._schema.names:
            return F.col(quoted(name)), self._schema[name].dataType
        kind: T.DataType = self._schema
        for part in name.split("."):
            if not isinstance(kind, T.StructType) or part not in kind.names or not is_plain(kind):
                return None
            kind = kind[part].dataType
        return F.col(".".join(map(quoted, name.split(".")))), kind


def is_plain(schema: T.StructType) -> bool:
    """Whether Spark can distinguish all names, which it looks up case-insensitively."""
    return len({name.lower() for name in schema.names}) == len(schema.names)


def is_text(kind: T.DataType) -> bool:
    """Whether these are texts that are compared by their code points."""
    return bool(kind == T.StringType())


def _declared(catalog: Catalog) -> Sequence[object]:
    return [own.attributes for own in catalog.all_types()]


def first_types(frame: DataFrame, name: str) -> list[str]:
    """The types of the first events, by a small job."""
    found = frame.select(F.col(quoted(name)).alias("type")).limit(LOOKED_AT).distinct().collect()
    return [row["type"] for row in found if row["type"] is not None]
