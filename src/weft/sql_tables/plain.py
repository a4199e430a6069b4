"""The text around one clause without DuckDB: SELECT of columns, ORDER BY and LIMIT, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import Diagnostic, ProgramError, did_you_mean
from weft.languages.sql.clauses import LocatedClause
from weft.languages.sql.words import SqlWord, unquoted, words_of
from weft.source import SourceText, Span

_HINT = "install weft[sql], which evaluates any SQL around the clause by DuckDB"


@dataclass
class _Outer:
    """`SELECT columns FROM clause alias ORDER BY keys LIMIT n`; no columns: all."""

    columns: list[tuple[SqlWord, str]] = field(default_factory=list)
    order: list[tuple[SqlWord, bool]] = field(default_factory=list)
    limit: int | None = None


def select_plain(source: SourceText, clause: LocatedClause, result: pa.Table) -> pa.Table:
    """What a query selects of the result of its only clause; raises ProgramError where it needs more than that."""
    outer = _Reader(source, clause).read()
    if outer.order:
        result = _sorted(source, result, outer.order)
    if outer.columns:
        found = [(_column(source, result, word), name) for word, name in outer.columns]
        result = pa.Table.from_arrays([column for column, _ in found], names=[name for _, name in found])
    return result if outer.limit is None else result.slice(0, outer.limit)


def _sorted(source: SourceText, table: pa.Table, keys: list[tuple[SqlWord, bool]]) -> pa.Table:
    """Sort by the last key first, stably; nulls come first if a key ascends, as in Spark."""
    for word, descending in reversed(keys):
        order = "descending" if descending else "ascending"
        column = _column(source, table, word)
        nulls = "at_end" if descending else "at_start"
        table = table.take(pc.array_sort_indices(column, order=order, null_placement=nulls))
    return table


def _column(source: SourceText, table: pa.Table, word: SqlWord) -> pa.ChunkedArray:
    name = unquoted(word.text)
    found = [known for known in table.column_names if known.lower() == name.lower()]
    if name in table.column_names or found:
        return table.column(name if name in table.column_names else found[0])
    hint = did_you_mean(name, table.column_names)
    message = f"the result has no column {name!r}"
    raise ProgramError([Diagnostic("unknown-column", message, source, word.span, hint)])


class _Reader:
    """Reads the words around a clause."""

    def __init__(self, source: SourceText, clause: LocatedClause) -> None:
        self._source = source
        words = words_of(source.text)
        self._before = [word for word in words if word.span.end <= clause.span.start]
        self._after = [word for word in words if word.span.start >= clause.span.end]
        self._outer = _Outer()

    def read(self) -> _Outer:
        """The query around the clause."""
        if not self._before or not self._before[0].says("SELECT") or not self._before[-1].says("FROM"):
            raise self._beyond(self._before[0] if self._before else None)
        self._select(self._before[1:-1])
        rest = self._after
        if rest and rest[0].says("AS"):
            rest = rest[1:]
        if rest and rest[0].kind == "name" and not rest[0].says("ORDER", "LIMIT", "WHERE", "GROUP", "JOIN"):
            rest = rest[1:]
        if len(rest) > 1 and rest[0].says("ORDER") and rest[1].says("BY"):
            rest = self._order(rest[2:])
        if len(rest) > 1 and rest[0].says("LIMIT") and rest[1].text.isdigit():
            self._outer.limit = int(rest[1].text)
            rest = rest[2:]
        if rest and rest[0].text != ";":
            raise self._beyond(rest[0])
        return self._outer

    def _beyond(self, word: SqlWord | None) -> ProgramError:
        message = (
            "without DuckDB, a query is SELECT columns FROM table MATCH_RECOGNIZE (…) [ORDER BY columns] [LIMIT n]"
        )
        return ProgramError(
            [Diagnostic("needs-duckdb", message, self._source, word.span if word else Span(0, 0), _HINT)]
        )

    def _select(self, words: list[SqlWord]) -> None:
        if [word.text for word in words[-1:]] == ["*"] and len(words) in (1, 3):
            return
        while words:
            column, words = self._name(words)
            shown = column
            if words and words[0].says("AS"):
                words = words[1:]
            if words and words[0].kind == "name":
                shown, words = words[0], words[1:]
            self._outer.columns.append((column, unquoted(shown.text)))
            if words and words[0].text != ",":
                raise self._beyond(words[0])
            words = words[1:]

    def _name(self, words: list[SqlWord]) -> tuple[SqlWord, list[SqlWord]]:
        """A column, perhaps with the alias of the clause before it."""
        if not words or words[0].kind != "name":
            raise self._beyond(words[0] if words else self._before[0])
        if len(words) > 2 and words[1].text == "." and words[2].kind == "name":
            words = words[2:]
        return words[0], words[1:]

    def _order(self, words: list[SqlWord]) -> list[SqlWord]:
        while True:
            column, words = self._name(words)
            descending = bool(words) and words[0].says("DESC")
            if words and words[0].says("ASC", "DESC"):
                words = words[1:]
            self._outer.order.append((column, descending))
            if not words or words[0].text != ",":
                return words
            words = words[1:]
