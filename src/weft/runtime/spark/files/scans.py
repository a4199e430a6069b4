"""Spark's plan of a DataFrame as a scan that tasks can do themselves: Parquet files, columns and a filter.

Only what gives the same rows as Spark's own scan is accepted; the reason against any other frame is one sentence.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from weft.runtime.spark.columns import arrow_schema

_PACKAGE = "org.apache.spark.sql.execution.datasources."
_FORMAT, _FILES = f"{_PACKAGE}parquet.ParquetFileFormat", f"{_PACKAGE}InMemoryFileIndex"
_RELATION = f"{_PACKAGE}HadoopFsRelation"
# Options that say which files and rows there are in a way that a plain reader does not know.
_OPTIONS = frozenset(("path", "paths", "mergeschema", "recursivefilelookup", "pathglobfilter", "serialization.format"))
_COMPARISONS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INTEGERS = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}
_TIMES = {"timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"), "date": pa.date32()}
_FLOATS = {"float": pa.float32(), "double": pa.float64()}


class UnknownScanError(Exception):
    """Raised for a plan that a plain reader of files cannot execute; the message names the obstacle."""


@dataclass(frozen=True)
class Scan:
    """A plain scan: files in order, the files' name of each of the frame's columns, and which rows it has."""

    paths: tuple[str, ...]
    columns: dict[str, str]
    types: pa.Schema  # of the files' columns, as far as Arrow has types for them
    condition: pc.Expression | None = None  # over the files' names
    tested: frozenset[str] = frozenset()  # the files' columns that it reads


def scan_of(frame: DataFrame) -> Scan:
    """The scan that a frame is; raises UnknownScanError."""
    try:
        return _Plan().scan(frame._jdf.queryExecution().optimizedPlan())
    except (AttributeError, TypeError, Py4JError) as error:  # a frame of Spark Connect, or another Spark's classes
        raise UnknownScanError("its plan cannot be looked at") from error


class _Plan:
    """Reads a plan from the outside to the relation, then gives columns their names in the files."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}  # of the relation's columns, by Spark's number of each
        self._tested: set[str] = set()

    def scan(self, plan: Any) -> Scan:
        projections: list[Any] = []
        conditions: list[Any] = []
        while (kind := str(plan.nodeName())) in ("Project", "Filter"):
            (projections if kind == "Project" else conditions).append(plan)
            plan = plan.children().apply(0)
        if kind != "LogicalRelation":
            raise UnknownScanError(f"it is not a plain scan of files: {kind} in its plan")
        if len(projections) > 1:
            raise UnknownScanError("its columns are worked out in several steps")
        relation = plan.relation()
        paths = _paths(relation)
        types = arrow_schema(StructType.fromJson(json.loads(relation.dataSchema().json())))
        output = _items(plan.output())
        self._names = {_number(column): str(column.name()) for column in output}
        shown = _items(projections[0].projectList()) if projections else output
        columns = {str(column.name()): self._name(_renamed(column)) for column in shown}
        if len(columns) < len(shown):
            raise UnknownScanError("two of its columns have one name")
        tests = [self._condition(node.condition()) for node in conditions]
        return Scan(paths, columns, types, reduce(and_, tests) if tests else None, frozenset(self._tested))

    def _name(self, column: Any) -> str:
        if _class(column) != "AttributeReference" or _number(column) not in self._names:
            raise UnknownScanError(f"a column is computed: {column.toString()}")
        return self._names[_number(column)]

    def _condition(self, node: Any) -> pc.Expression:
        kind, parts = _class(node), _items(node.children())
        if kind in ("And", "Or"):
            return reduce(and_ if kind == "And" else or_, [self._condition(part) for part in parts])
        if kind == "Not":
            return ~self._condition(parts[0])
        if kind in ("IsNull", "IsNotNull"):
            missing = self._field(parts[0]).is_null()
            return missing if kind == "IsNull" else ~missing
        if kind == "AttributeReference" and _type(node) == "boolean":
            return self._field(node)
        if kind == "In":
            return reduce(or_, [self._compared("=", parts[0], value) for value in parts[1:]])
        if kind == "StartsWith" and _type(parts[0]) == "string":
            return pc.starts_with(self._field(parts[0]), str(_literal(parts[1]).as_py()))
        if kind in _COMPARISONS:
            left, right = parts
            if _class(left) == "Literal":
                return self._compared(_MIRRORED[_COMPARISONS[kind]], right, left)
            return self._compared(_COMPARISONS[kind], left, right)
        raise UnknownScanError(f"its filter is more than comparisons with constants: {node.toString()}")

    def _compared(self, symbol: str, attribute: Any, constant: Any) -> pc.Expression:
        field, value = self._field(attribute), pc.scalar(_literal(constant))
        if _type(attribute) != _type(constant):
            raise UnknownScanError(f"its filter compares different types: {attribute.toString()}")
        if symbol == "=":
            return field == value
        if symbol in ("<", "<="):
            return field < value if symbol == "<" else field <= value
        above = field > value if symbol == ">" else field >= value
        # Spark orders NaN after all numbers; for Arrow it is not above any.
        return above | field.is_nan() if _type(attribute) in _FLOATS else above

    def _field(self, column: Any) -> pc.Expression:
        name = self._name(column)
        self._tested.add(name)
        return pc.field(name)


def _paths(relation: Any) -> tuple[str, ...]:
    """The files of a relation, in order of their names."""
    if relation.getClass().getName() != _RELATION or relation.fileFormat().getClass().getName() != _FORMAT:
        raise UnknownScanError("its files are not plain Parquet files")
    if relation.location().getClass().getName() != _FILES:
        raise UnknownScanError("its files are listed by a catalog")
    if relation.partitionSchema().size() or relation.bucketSpec().isDefined():
        raise UnknownScanError("its files are in folders that name partitions, or in buckets")
    options = _items(relation.options().keys().toSeq())
    if unknown := sorted({str(option) for option in options if str(option).lower() not in _OPTIONS}):
        raise UnknownScanError(f"it is read with the option {unknown[0]!r}")
    found = [urlparse(str(path)) for path in relation.location().inputFiles()]
    if any(path.scheme != "file" or path.netloc for path in found):
        raise UnknownScanError("its files are not in a file system of this machine")
    if not found:
        raise UnknownScanError("it has no files")
    return tuple(sorted(unquote(path.path) for path in found))


def _literal(node: Any) -> pa.Scalar:
    """A constant of Spark's as one of Arrow's."""
    kind = _type(node)
    value = node.value() if _class(node) == "Literal" else None
    if value is None:
        raise UnknownScanError(f"its filter is more than comparisons with constants: {node.toString()}")
    if kind in _INTEGERS or kind in _TIMES:
        numbers = {**_INTEGERS, "date": pa.int32()}.get(kind, pa.int64())
        number = pa.scalar(int(value), numbers)
        return number.cast(_TIMES[kind]) if kind in _TIMES else number
    if kind in _FLOATS and not math.isnan(value):
        return pa.scalar(float(value), _FLOATS[kind])
    if kind == "boolean":
        return pa.scalar(bool(value))
    if kind == "string":
        return pa.scalar(str(value.toString()))
    raise UnknownScanError(f"its filter has a constant of the type {kind}")


def _renamed(column: Any) -> Any:
    return column.child() if _class(column) == "Alias" else column


def _class(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _type(node: Any) -> str:
    return str(node.dataType().catalogString())


def _number(column: Any) -> int:
    return int(column.exprId().id())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]
