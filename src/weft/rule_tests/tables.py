"""Cases of SQL programs: tables written as CSV, and the rows that the query must give."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from weft.algebra.query import Program
from weft.errors import ProgramError, WeftError, did_you_mean
from weft.rule_tests.places import TestText
from weft.sql_tables.queries import sql

KEYS: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "tables": dict,
    "expected": str,
    "expected_count": int,
}
Row = tuple[Any, ...]


@dataclass(frozen=True)
class TableCase:
    """Tables by name, and the rows or the number of rows that the query must give."""

    name: str
    place: TestText
    tables: Mapping[str, pa.Table | Path]
    expected: TestText | None
    count: int | None


@dataclass(frozen=True)
class TableOutcome:
    """How a case came out: rows that are missing or too many, as they are written, and the number wanted and found."""

    case: TableCase
    missing: Sequence[str] = ()
    extra: Sequence[str] = ()
    counts: Sequence[tuple[str | None, int, int]] = ()

    @property
    def passed(self) -> bool:
        """Whether everything is as expected."""
        return not (self.missing or self.extra or self.counts)

    def lines(self) -> Iterator[str]:
        """One line if it passed, else also what differs."""
        if self.passed:
            yield f"  ok      {self.case.name}"
            return
        yield f"  FAILED  {self.case.name} (line {self.case.place.line})"
        yield from (f"    {found} row{'s' * (found != 1)}, expected {wanted}" for _, wanted, found in self.counts)
        yield from (f"    missing  {row}" for row in self.missing)
        yield from (f"    extra    {row}" for row in self.extra)

    def to_json(self) -> dict[str, object]:
        """The outcome as a JSON object."""
        return {
            "file": self.case.place.source.name,
            "line": self.case.place.line,
            "case": self.case.name,
            "passed": self.passed,
            "missing": list(self.missing),
            "extra": list(self.extra),
            "counts": [{"query": query, "expected": wanted, "found": found} for query, wanted, found in self.counts],
        }


def read_table_case(
    table: Mapping[str, Any], section: int, place: TestText, expected: TestText | None, path: Callable[[str], Path]
) -> TableCase:
    """A case from its section of the file; `path` gives that of a file named in it."""
    if "expected" not in table and "expected_count" not in table:
        hint = 'write `expected` or `expected_count`; `expected = "none"` says that no row comes out'
        raise place.wrong("missing-key", "the case expects nothing at all", hint)
    if not table.get("tables"):
        hint = 'write tables.NAME = """…""" with CSV, or the name of a file'
        raise place.wrong("missing-key", "the case has no `tables`", hint)
    tables: dict[str, pa.Table | Path] = {}
    for name, text in table["tables"].items():
        if not isinstance(text, str):
            raise place.wrong("wrong-kind", f"the table {name!r} must be a text: CSV, or the name of a file")
        tables[name] = _csv(text, place) if "\n" in text.strip() else path(text.strip())
    return TableCase(table.get("name", f"case {section}"), place, tables, expected, table.get("expected_count"))


def run_table_case(program: Program, case: TableCase, engine: str) -> TableOutcome:
    """Run a query on the tables of a case, and compare."""
    try:
        # With a line's end a text is never taken for the name of a file.
        found = sql(program.text + "\n", engine=engine, tables=case.tables)
    except ProgramError:
        raise
    except WeftError as error:
        raise case.place.wrong("cannot-run", str(error)) from None
    count = found.num_rows
    counts = [] if case.count is None or case.count == count else [(None, case.count, count)]
    if case.expected is None:
        return TableOutcome(case, counts=counts)
    wanted, given = _expected(case.expected, found)
    missing, extra = wanted - given, given - wanted
    return TableOutcome(case, sorted(missing.elements()), sorted(extra.elements()), counts)


def _expected(written: TestText, found: pa.Table) -> tuple[Counter[str], Counter[str]]:
    """The rows expected and those found, in the columns that are expected."""
    if written.text.strip() == "none":
        return Counter(), Counter(_texts(found))
    [names] = csv.reader(written.text.strip().splitlines()[:1])
    for name in names:
        if name.strip() not in found.column_names:
            hint = did_you_mean(name.strip(), found.column_names)
            raise written.wrong("unknown-column", f"the result has no column {name.strip()!r}", hint)
    chosen = _without_zones(found.select([name.strip() for name in names]))
    types = {field.name: field.type for field in chosen.schema if not pa.types.is_nested(field.type)}
    return Counter(_texts(_csv(written.text, written, types), chosen.schema)), Counter(_texts(chosen))


def _without_zones(table: pa.Table) -> pa.Table:
    """Times of zones as the times that CSV writes without one: Spark's have the zone of its session."""
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            table = table.set_column(number, field.name, pc.local_timestamp(table.column(number)))
    return table


def _texts(table: pa.Table, schema: pa.Schema | None = None) -> Iterator[str]:
    nested = {field.name for field in schema or () if pa.types.is_nested(field.type)}
    for row in table.to_pylist():
        shown = {name: json.loads(value) if name in nested and value else value for name, value in row.items()}
        yield json.dumps(shown, ensure_ascii=False, default=str)


def _csv(text: str, place: TestText, types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    lines = "\n".join(line.strip() for line in text.strip().splitlines())
    options = pa_csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=["", "null"]
    )
    try:
        return pa_csv.read_csv(io.BytesIO(lines.encode()), convert_options=options)
    except pa.ArrowException as problem:
        raise place.wrong("not-csv", f"this is not a table in CSV: {problem}") from None
