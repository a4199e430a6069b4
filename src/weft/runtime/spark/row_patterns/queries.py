"""SQL texts with row patterns on Spark: Spark evaluates what is around the clauses, weft each clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from weft.errors import Diagnostic
from weft.languages.sql.clauses import LocatedClause, find_clauses, input_query, outer_query, whole_clause
from weft.languages.sql.lower import compile_clause
from weft.runtime.operators.row_patterns.matching import MOST_STEPS
from weft.runtime.spark.row_patterns.batch import match_batch
from weft.runtime.spark.row_patterns.stream import match_stream_rows
from weft.runtime.spark.session import spark_session
from weft.source import SourceText

_VIEW = "__weft_mr_{}"
_numbers = count(1)
Told = Callable[[tuple[Diagnostic, ...]], None]


def sql_frame(
    source: SourceText, session: SparkSession, *, tell: Told | None = None, max_steps: int = MOST_STEPS
) -> DataFrame:
    """The result of an SQL query, whose clauses are evaluated inner ones first; batch or streaming, as its tables are.

    Each clause becomes a temporary view, dropped when the query around it has been analysed.
    """
    views: dict[LocatedClause, str] = {}
    try:
        for clause in find_clauses(source):
            frame = session.sql(input_query(source, clause, views))
            result = clause_frame(frame, source, clause, tell=tell, max_steps=max_steps)
            name = _VIEW.format(next(_numbers))
            result.createOrReplaceTempView(name)
            views[clause] = name
        found = session.sql(outer_query(source, views))
        found.schema  # noqa: B018 (on Spark Connect, now is when it is analysed)
        return found
    finally:
        if hasattr(session, "_jsparkSession"):  # a plan of Spark Connect is analysed again whenever it is used
            for name in views.values():
                session.catalog.dropTempView(name)


def sql_table(
    source: SourceText, tables: Mapping[str, pa.Table], *, tell: Told | None = None, max_steps: int = MOST_STEPS
) -> pa.Table:
    """The result of a query over tables that are here, on an embedded Spark."""
    session = spark_session().newSession()
    for name, table in tables.items():
        session.createDataFrame(table).createOrReplaceTempView(name)
    return sql_frame(source, session, tell=tell, max_steps=max_steps).toArrow()


def row_pattern_frame(
    frame: DataFrame, source: SourceText, *, tell: Told | None = None, max_steps: int = MOST_STEPS
) -> DataFrame:
    """Return the result of the text between the parentheses of one clause, over one frame."""
    return clause_frame(frame, source, whole_clause(source), tell=tell, max_steps=max_steps)


def clause_frame(
    frame: DataFrame, source: SourceText, clause: LocatedClause, *, tell: Told | None, max_steps: int
) -> DataFrame:
    """Return the result of one clause over its input relation."""
    query, findings = compile_clause(source, clause, _columns(frame.schema))
    if tell is not None and findings:
        tell(findings)
    if frame.isStreaming:
        return match_stream_rows(frame, query, max_steps=max_steps)
    return match_batch(frame, query, max_steps=max_steps)


def _columns(schema: StructType) -> dict[str, str]:
    """The columns of a frame with the names of their SQL types."""
    return {field.name: field.dataType.simpleString() for field in schema}
