"""Evaluation of a query over tables: its clauses in order, inner ones first, each on its input relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from weft.algebra.meaning.row_patterns import evaluate_rows
from weft.algebra.row_patterns import RowPattern
from weft.errors import Diagnostic, ProgramError, UsageError, did_you_mean
from weft.languages.sql.clauses import LocatedClause, find_clauses, input_query, outer_query, whole_clause
from weft.languages.sql.lower import compile_clause
from weft.languages.sql.words import unquoted, words_of
from weft.runtime.operators.row_patterns.engine import match_rows
from weft.runtime.operators.row_patterns.matching import MOST_STEPS
from weft.source import SourceText, Span
from weft.sql_tables import duck
from weft.sql_tables.given import as_table
from weft.sql_tables.plain import select_plain
from weft.sql_tables.types import arrow_type, sql_columns

Engine = Callable[[RowPattern, pa.Table], pa.Table]
Told = Callable[[tuple[Diagnostic, ...]], None]
VIEW = "__weft_mr_{}"


@dataclass(frozen=True)
class SqlRun:
    """How clauses are evaluated: by which engine, and who receives diagnostics."""

    engine: Engine
    tell: Told | None = None

    def query(self, source: SourceText, tables: Mapping[str, Any]) -> pa.Table:
        """The result of a query over tables by name. DuckDB evaluates the text around clauses, if it is installed."""
        clauses = find_clauses(source)
        given = {name: as_table(table, f"the table {name!r}") for name, table in tables.items()}
        for clause in clauses:
            _require_table(source, clause, given)
        return self._by_duck(source, clauses, given) if duck.is_installed() else self._plainly(source, clauses, given)

    def clause(self, source: SourceText, table: Any) -> pa.Table:
        """Return the result of a bare clause (the text between the parentheses of MATCH_RECOGNIZE) over one table."""
        return self._match(source, whole_clause(source), as_table(table))

    def _match(self, source: SourceText, clause: LocatedClause, table: pa.Table) -> pa.Table:
        query, findings = compile_clause(source, clause, sql_columns(table))
        if self.tell is not None and findings:
            self.tell(findings)
        return self.engine(query, table)

    def _by_duck(
        self, source: SourceText, clauses: tuple[LocatedClause, ...], given: Mapping[str, pa.Table]
    ) -> pa.Table:
        views: dict[LocatedClause, str] = {}
        with duck.Duck() as around:
            for name, table in given.items():
                around.register(name, table)
            for number, clause in enumerate(clauses, 1):
                known = _named(clause.table, given) if _is_only_name(source, clause) else None
                table = given[known] if known is not None else around.query(input_query(source, clause, views))
                views[clause] = VIEW.format(number)
                around.register(views[clause], self._match(source, clause, table))
            return around.query(outer_query(source, views))

    def _plainly(
        self, source: SourceText, clauses: tuple[LocatedClause, ...], given: Mapping[str, pa.Table]
    ) -> pa.Table:
        if len(clauses) != 1 or not clauses[0].table:
            message = "without DuckDB, a query has one MATCH_RECOGNIZE, which follows the name of a table"
            place = clauses[0].keyword if clauses else Span(0, 0)
            hint = "install weft[sql], which evaluates any SQL around clauses by DuckDB"
            raise ProgramError([Diagnostic("needs-duckdb", message, source, place, hint)])
        [clause] = clauses
        table = given[_named(clause.table, given) or ""]
        return select_plain(source, clause, self._match(source, clause, table))


def _is_only_name(source: SourceText, clause: LocatedClause) -> bool:
    """Whether a relation is the name of a table that no query of a WITH hides."""
    return len(words_of(source.text, clause.relation)) == 1 and not clause.queries


def _named(name: str, tables: Mapping[str, Any]) -> str | None:
    """The table of a name; case does not matter."""
    if name in tables:
        return name
    return next((known for known in tables if known.lower() == name.lower()), None)


def _require_table(source: SourceText, clause: LocatedClause, tables: Mapping[str, Any]) -> None:
    own = {unquoted(words_of(source.text, span)[0].text).lower() for span in clause.queries}
    if not clause.table or _named(clause.table, tables) is not None or clause.table.lower() in own:
        return
    near = did_you_mean(clause.table, tables)
    hint = f"{near + '; ' if near else ''}tables are given by name: weft.sql(query, {clause.table}=table)"
    message = f"there is no table {clause.table!r}"
    raise ProgramError([Diagnostic("unknown-table", message, source, clause.relation, hint)])


# ---------------------------------------------------------------- engines


def engine_called(name: str, max_steps: int = MOST_STEPS) -> Engine:
    """The engine of a name; `max_steps`: how many steps one attempt may take."""
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r} for SQL here; known: {', '.join(ENGINES)}")
    evaluate = ENGINES[name]
    return lambda query, table: evaluate(query, table, max_steps)


def by_meaning(query: RowPattern, table: pa.Table, max_steps: int) -> pa.Table:
    """The result by definition: slow, for tests and small tables."""
    rows = evaluate_rows(query, table.to_pylist(), max_steps)
    types: dict[str, pa.DataType | None] = {measure.name: arrow_type(measure.type) for measure in query.measures}
    columns = {}
    for index, name in enumerate(query.output_columns):
        kind = types[name] if name in types else table.schema.field(name).type
        columns[name] = _array([row[index] for row in rows], kind)
    return pa.table(columns) if columns else pa.table({"": pa.nulls(len(rows))}).select([])


def _array(values: list[Any], kind: pa.DataType | None) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(values)


def by_kernels(query: RowPattern, table: pa.Table, max_steps: int) -> pa.Table:
    """The result by the engine of this process."""
    return match_rows(table, query, max_steps=max_steps)


ENGINES: dict[str, Callable[[RowPattern, pa.Table, int], pa.Table]] = {"local": by_kernels, "meaning": by_meaning}
