"""The engine of row patterns in process: one query over one Arrow table."""

from __future__ import annotations

import warnings

import pyarrow as pa

from weft.algebra.row_patterns import RowPattern
from weft.errors import DataWarning, callers_level
from weft.plan.row_patterns.conditions import conditions_of
from weft.plan.row_patterns.program import compile_regex
from weft.runtime.operators.row_patterns.layout import RowLayout, laid_out
from weft.runtime.operators.row_patterns.matching import MOST_STEPS, RowMatcher, whole_partitions
from weft.runtime.operators.row_patterns.output import result_table


def matcher_of(query: RowPattern, max_steps: int = MOST_STEPS) -> RowMatcher:
    """Compile a query to a matcher."""
    return RowMatcher(query, compile_regex(query.pattern, query.variables), conditions_of(query), max_steps)


def match_rows(table: pa.Table, query: RowPattern, *, max_steps: int = MOST_STEPS, by_others: bool = False) -> pa.Table:
    """Return the rows of a MATCH_RECOGNIZE clause over a table.

    Rows that tie in ORDER BY stay in the order of the table; without ORDER BY all do, with a warning. With `by_others`,
    rows that tie are ordered by their other columns instead. `max_steps` limits the steps of one attempt where
    conditions depend on the match so far.
    """
    if not query.order:
        warnings.warn(
            "MATCH_RECOGNIZE without ORDER BY: rows are taken in the input's order", DataWarning, callers_level()
        )
    return _matched(laid_out(table, query, by_others=by_others), query, max_steps)


def match_sorted(table: pa.Table, query: RowPattern, *, max_steps: int = MOST_STEPS) -> tuple[pa.Table, int]:
    """Return the same for rows in any order, and the number of ties, which are ordered by their other columns."""
    layout = laid_out(table, query, by_others=True)
    return _matched(layout, query, max_steps), layout.ties


def empty_result(schema: pa.Schema, query: RowPattern) -> pa.Table:
    """Return the result over no rows: its columns and their types."""
    return _matched(laid_out(schema.empty_table(), query), query, MOST_STEPS)


def _matched(layout: RowLayout, query: RowPattern, max_steps: int) -> pa.Table:
    found, failed = matcher_of(query, max_steps).find(layout, whole_partitions(layout))
    return result_table(query, found, failed)
