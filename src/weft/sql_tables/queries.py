"""The public functions for SQL: a query over tables, and a bare clause over one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from weft.api import warn_of
from weft.described import described
from weft.engines import is_spark_frame
from weft.errors import Diagnostic, UsageError
from weft.languages.texts import path_of_program, read_program
from weft.runtime.operators.row_patterns.matching import MOST_STEPS
from weft.source import SourceText
from weft.sql_tables.given import as_table
from weft.sql_tables.running import SqlRun, engine_called


@described(
    query="A text, or the path of a file.",
    spark="A session: tables and views are the session's, the text around clauses is Spark's, and the result is a "
    "DataFrame; over streaming views a streaming one.",
)
def sql(
    query: str | Path,
    /,
    *,
    spark: Any = None,
    engine: str | None = None,
    tables: Mapping[str, Any] | None = None,
    max_steps: int = MOST_STEPS,
    **named: Any,
) -> Any:
    """Evaluate an SQL query with MATCH_RECOGNIZE: over tables in this process, to an Arrow table; on Spark, to a frame.

        weft.sql("SELECT * FROM ticks MATCH_RECOGNIZE (…)", ticks=table)
        weft.sql("SELECT * FROM ticks MATCH_RECOGNIZE (…) WHERE n > 3", spark=session)

    The text around clauses is evaluated by DuckDB (extra `sql`); without it a query is SELECT of columns FROM a table
    MATCH_RECOGNIZE (…), perhaps with ORDER BY.
    """
    if spark is not None:
        if engine not in (None, "spark") or tables or named:
            raise UsageError("with `spark`, tables are the session's: frame.createOrReplaceTempView('t')")
        from weft.runtime.spark.row_patterns.queries import sql_frame  # Spark takes seconds to load

        return sql_frame(source_of(query), spark, tell=_tell, max_steps=max_steps)
    if engine == "spark":
        return _on_spark(source_of(query), {**(tables or {}), **named}, max_steps)
    run = SqlRun(engine_called(engine or "local", max_steps), _tell)
    return run.query(source_of(query), {**(tables or {}), **named})


@described(
    frame="An Arrow table, a pandas, Polars or Spark frame, a list of dicts, or files.",
    clause="What stands between the parentheses of the clause, or a file of it.",
)
def row_pattern(frame: Any, clause: str | Path, /, *, engine: str | None = None, max_steps: int = MOST_STEPS) -> Any:
    """Evaluate one MATCH_RECOGNIZE clause over one table, to an Arrow table; over a Spark DataFrame, to a DataFrame.

    weft.row_pattern(frame, "PARTITION BY symbol ORDER BY ts PATTERN (A B+) DEFINE B AS price < PREV(price)")
    """
    if is_spark_frame(frame):
        if engine not in (None, "spark"):
            raise UsageError(f"a Spark DataFrame is matched on Spark, not by engine={engine!r}")
        from weft.runtime.spark.row_patterns.queries import row_pattern_frame  # Spark takes seconds to load

        return row_pattern_frame(frame, source_of(clause), tell=_tell, max_steps=max_steps)
    return SqlRun(engine_called(engine or "local", max_steps), _tell).clause(source_of(clause), frame)


def _on_spark(source: SourceText, tables: Mapping[str, Any], max_steps: int) -> pa.Table:
    """The result on a Spark of our own, over tables that are given here."""
    from weft.runtime.spark.row_patterns.queries import sql_table  # Spark takes seconds to load

    given = {name: as_table(table, f"the table {name!r}") for name, table in tables.items()}
    return sql_table(source, given, tell=_tell, max_steps=max_steps)


def source_of(text_or_path: str | Path) -> SourceText:
    """The text of a query, or of its file."""
    path = path_of_program(text_or_path)
    if path is None:
        return SourceText(str(text_or_path))
    if path.suffix != ".sql":
        raise UsageError(f"{path} is not SQL: run it with weft.detect(events, program)")
    return SourceText(read_program(path), str(path), path.stem)


def _tell(findings: tuple[Diagnostic, ...]) -> None:
    # The engines warn of a missing order themselves, when they see the rows.
    warn_of([finding for finding in findings if finding.code != "no-order"])
