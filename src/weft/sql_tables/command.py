"""What `weft match` does for SQL: tables from files, the result to a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from weft.connectors.files import find_files
from weft.connectors.places import check_places
from weft.errors import UsageError
from weft.languages.sql.clauses import find_clauses
from weft.languages.texts import read_program
from weft.source import SourceText
from weft.sql_tables.queries import sql
from weft.sql_tables.writing import write_table

_NAMED = re.compile(r"(?P<name>\w+)=(?P<file>.+)")


def match_tables(
    paths: Sequence[str], texts: Sequence[str], tables: Sequence[str], out: str, form: str, engine: str
) -> int:
    """Evaluate one query over files that are named as tables, and write its result; returns the number of rows."""
    if len(paths) + len(texts) != 1:
        raise UsageError("one SQL query is run at a time: give one file, or one -q")
    source = Path(paths[0]) if paths else texts[0]
    text = read_program(source) if isinstance(source, Path) else source
    named = tables_of(tables, SourceText(text))
    files = [file for given in named.values() for file in find_files(given)]
    check_places([out] if out != "-" else [], [*paths, *files])
    if form == "parquet" and out == "-":
        raise UsageError("Parquet is not for a terminal: give --out FILE")
    return write_table(sql(source, engine=engine, tables=named), out, form)


def tables_of(items: Sequence[str], source: SourceText) -> dict[str, list[str]]:
    """The files of each table: NAME=FILE, or files alone for the only table that the query reads."""
    named: dict[str, list[str]] = {}
    alone: list[str] = []
    for item in items:
        found = _NAMED.fullmatch(item) if not Path(item).exists() else None
        if found is None:
            alone.append(item)
        else:
            named.setdefault(found["name"], []).append(found["file"])
    if alone:
        read = {clause.table for clause in find_clauses(source)} - {""}
        if len(read) != 1 or named:
            example = next(iter(sorted(read)), "t")
            raise UsageError(f"say which table each file is: --events {example}={alone[0]}")
        named[read.pop()] = alone
    if not named:
        raise UsageError("there is no table: give --events NAME=FILE for each table that the query reads")
    return named
