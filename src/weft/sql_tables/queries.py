"""The public functions for SQL: a query over tables, and a bare clause over one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from weft.api import warn_of
from weft.errors import Diagnostic, UsageError
from weft.languages.texts import path_of_program, read_program
from weft.source import SourceText
from weft.sql_tables.running import SqlRun, engine_called


def sql(
    query: str | Path,
    /,
    *,
    engine: str | None = None,
    tables: Mapping[str, Any] | None = None,
    **named: Any,
) -> pa.Table:
    """The result of an SQL query with MATCH_RECOGNIZE over tables in this process, as an Arrow table.

        weft.sql("SELECT * FROM ticks MATCH_RECOGNIZE (…)", ticks=table)

    `query` is a text or the path of a file. Tables are given by name: Arrow tables, pandas and Polars frames, lists of
    dicts, files; those whose names are no Python names in `tables`. The text around clauses is evaluated by DuckDB
    (extra `sql`); without it a query is SELECT of columns FROM a table MATCH_RECOGNIZE (…), perhaps with ORDER BY.
    `engine` is local (the default), or meaning: the definition, slow.
    """
    run = SqlRun(engine_called(engine or "local"), _tell)
    return run.query(source_of(query), {**(tables or {}), **named})


def row_pattern(frame: Any, clause: str | Path, /, *, engine: str | None = None) -> pa.Table:
    """The result of one MATCH_RECOGNIZE clause over one table, as an Arrow table.

        weft.row_pattern(frame, "PARTITION BY symbol ORDER BY ts PATTERN (A B+) DEFINE B AS price < PREV(price)")

    `clause` is what stands between the parentheses, or a file of it; `frame` and `engine` are as in `weft.sql`.
    """
    return SqlRun(engine_called(engine or "local"), _tell).clause(source_of(clause), frame)


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
