"""`weft_match`: programs of any language in SQL, as a table function over a table of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from weft.errors import WeftError
from weft.runtime.spark import compat
from weft.runtime.spark.columns import arrow_schema, quoted, spark_columns

NAME = "weft_match"


class MatchCall(NamedTuple):
    """What a call of the function asks for."""

    program: str
    time: str
    type: str
    language: str | None


SchemaOf = Callable[[MatchCall, pa.Schema], pa.Schema]
MatchesOf = Callable[[MatchCall, pa.Table], Iterable[pa.RecordBatch]]


def register_table_function(session: SparkSession, schema_of: SchemaOf, matches_of: MatchesOf) -> None:
    """Make the function known to a session: the columns of results, and the matches in a table of events."""
    compat.require_table_functions()
    from pyspark.sql.functions import udtf

    session.udtf.register(NAME, udtf(_table_function(schema_of, matches_of)))


def _table_function(schema_of: SchemaOf, matches_of: MatchesOf) -> type:
    """The class of the function. Its methods have the names that Spark asks for, and parameters that users write."""

    class ProgramMatches:
        """Matches of a program in a table; with a `partition_column`, in the rows of each of its values."""

        @staticmethod
        def analyze(
            events: Any,
            program: Any,
            time_column: Any = None,
            type_column: Any = None,
            language: Any = None,
            partition_column: Any = None,
        ) -> Any:
            """The columns of the result, before rows come."""
            from pyspark.sql.udtf import AnalyzeResult, PartitioningColumn

            if not events.isTable or program.value is None:
                raise ValueError(f"{NAME} takes a table and a program: {NAME}(TABLE(events), 'SELECT …')")
            named = [None if given is None else given.value for given in (time_column, type_column, language)]
            try:
                found = schema_of(_asked(program.value, *named), arrow_schema(events.dataType))
            except WeftError as error:
                raise ValueError(str(error)) from None
            if partition_column is None:
                return AnalyzeResult(schema=spark_columns(found), withSinglePartition=True)
            return AnalyzeResult(
                schema=spark_columns(found), partitionBy=[PartitioningColumn(quoted(partition_column.value))]
            )

        def __init__(self) -> None:
            self._rows: list[Any] = []
            self._call: MatchCall | None = None

        def eval(
            self,
            events: Any,
            program: str,
            time_column: str | None = None,
            type_column: str | None = None,
            language: str | None = None,
            partition_column: str | None = None,
        ) -> None:
            """Take one row."""
            self._call = self._call or _asked(program, time_column, type_column, language)
            self._rows.append(events)

        def terminate(self) -> Iterator[tuple[Any, ...]]:
            """All rows are here: give the matches."""
            if self._call is not None:
                events = pa.Table.from_pylist([row.asDict(recursive=True) for row in self._rows])
                for batch in matches_of(self._call, events):
                    for row in batch.to_pylist():
                        yield tuple(map(_as_row, row.values()))

    return ProgramMatches


def _asked(program: str, time: str | None, type: str | None, language: str | None) -> MatchCall:
    return MatchCall(program, time or "ts", type or "type", language)


def _as_row(value: Any) -> Any:
    """A value of Arrow's as Spark takes it: structs are rows, pairs of a map a dictionary."""
    if isinstance(value, dict):
        return tuple(map(_as_row, value.values()))
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return {key: _as_row(item) for key, item in value}
        return [_as_row(item) for item in value]
    return value
