"""SQL over sample rows: the result as rows, and cases for `weft test`."""

from __future__ import annotations

import json
import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.algebra.query import Program
from weft.errors import UsageError
from weft.sql_tables.given import as_table, table_of_text
from weft.sql_tables.queries import sql
from weft.sql_tables.writing import csv_text, plain_rows

if TYPE_CHECKING:
    from weft.workbench.trying import Sample

Row = dict[str, Any]


def found_rows(program: Program, sample: Sample, file: Path | None) -> tuple[pa.Table, pa.Table, float]:
    """The result of a query, the table that it read, and the seconds that it took."""
    read = sorted({query.input for query in program.row_patterns} - {""})
    if len(read) != 1:
        raise UsageError(f"the query reads {', '.join(read) or 'no table by name'}: one table can be tried here")
    table = sample_table(sample, file)
    started = clock.perf_counter()
    result = sql(program.text + "\n", tables={read[0]: table})
    return result, table, clock.perf_counter() - started


def sample_table(sample: Sample, file: Path | None) -> pa.Table:
    """The rows of a sample as a table."""
    if file is not None:
        table = as_table(file)
        return table.slice(sample.skip, sample.take) if sample.take else table
    if not sample.rows.strip():
        raise UsageError("there are no rows: paste some, or choose a file")
    return table_of_text(sample.rows)


def as_matches(name: str, rows: list[Row]) -> list[Row]:
    """Rows of a result as matches are shown: their columns are the fields of the event."""
    nowhere: Row = {"start": None, "end": None, "positions": [], "bindings": {}}
    return [{"query": name, "id": str(number), **nowhere, "event": row} for number, row in enumerate(rows, 1)]


def table_case_text(name: str, program: Program, sample: Sample, file: Path | None, most: int) -> str:
    """A case of a test file: the sample as a table, and what is found now as expected."""
    result, table, _ = found_rows(program, sample, file)
    if table.num_rows > most:
        raise UsageError(f"a case has at most {most:,} rows, and these are {table.num_rows:,}")
    given, wanted = csv_text(table), csv_text(result)
    if "'''" in given or "'''" in wanted:
        raise UsageError("these rows have three quotes in a row, which a case cannot hold")
    expected = f"'''\n{wanted}'''" if result.num_rows else '"none"'
    read = next(query.input for query in program.row_patterns if query.input)
    return f"\n[[case]]\nname = {json.dumps(name)}\ntables.{read} = '''\n{given}'''\nexpected = {expected}\n"


def shown_rows(table: pa.Table, most: int) -> list[Row]:
    """The first rows of a table, as JSON has them."""
    return plain_rows(table.slice(0, most))
