"""DuckDB around clauses: it evaluates the SQL before and after each MATCH_RECOGNIZE."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from weft.errors import InputError

_SETTINGS = (
    "SET python_enable_replacements = false",  # tables are those that were given, not variables of callers
    "SET enable_external_access = false",  # a query reads no files and writes none
    "SET TimeZone = 'UTC'",
    "SET autoinstall_known_extensions = false",
)


def is_installed() -> bool:
    """Whether DuckDB can be imported."""
    return find_spec("duckdb") is not None


class Duck:
    """A DuckDB without files, with tables by name."""

    def __init__(self) -> None:
        import duckdb

        self._errors: Any = duckdb.Error
        self._connection = duckdb.connect(":memory:")
        for setting in _SETTINGS:
            self._connection.execute(setting)

    def __enter__(self) -> Duck:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def register(self, name: str, table: pa.Table) -> None:
        """Make a table known under a name."""
        self._connection.register(name, table)

    def query(self, text: str) -> pa.Table:
        """The rows of a query; raises InputError with what DuckDB says about a wrong one."""
        try:
            found = self._connection.sql(text)
            if found is None:
                raise InputError(f"this is no query, it has no result: {text}")
            return found.to_arrow_table()
        except self._errors as error:
            said = str(error).strip()
            said = said.replace("Catalog Error: Table", "Table").partition("\nLINE")[0].strip()
            raise InputError(f"the SQL around MATCH_RECOGNIZE cannot be evaluated: {said}\n  in: {text}") from None
