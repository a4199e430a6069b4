"""Build the result of a row pattern: one row per match, or the rows of matches, with measures as columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.row_patterns import RowMeasure, RowPattern
from weft.kernels.row_patterns.tables import OF, Int64s
from weft.runtime.operators.row_patterns.evaluation import broadcast, evaluate
from weft.runtime.operators.row_patterns.matches import FoundMatches, MatchScope, masked
from weft.runtime.operators.row_patterns.sql_types import cast, type_named

Mask = npt.NDArray[np.bool_]


def result_table(query: RowPattern, found: FoundMatches, failed: Mask, covered: Int64s | None = None) -> pa.Table:
    """Return the rows of the result, by partition, match and row.

    `covered` is the row up to which earlier matches cover each partition.
    """
    if query.rows == "one":
        owners = np.arange(len(found))
        scope = MatchScope(found, owners, found.places + found.sizes - 1)
        rows = found.layout.begins[found.facts[:, OF]]
        return _table(query, scope, rows, query.partition, None)
    owners, upto, rows = _shown_rows(query, found)
    unmatched = _unmatched(found, failed, covered) if query.rows == "unmatched" else np.empty(0, np.int64)
    starts = np.concatenate([found.starts[owners], unmatched])
    matched = np.concatenate([np.ones(len(owners), np.bool_), np.zeros(len(unmatched), np.bool_)])
    rows = np.concatenate([rows, unmatched])
    order = np.lexsort((rows, starts))
    scope = MatchScope(found, owners, upto)
    names = found.layout.table.column_names
    if not len(unmatched):
        scope = MatchScope(found, owners[order], upto[order])
        return _table(query, scope, rows[order], names, None)
    return _table(query, scope, rows[order], names, np.where(matched, np.cumsum(matched) - 1, -1)[order])


def _shown_rows(query: RowPattern, found: FoundMatches) -> tuple[Int64s, Int64s, Int64s]:
    """Return match, matched row and row of all shown rows; an empty match shows the row where it starts."""
    flat = np.flatnonzero(found.shown)
    owners, rows = found.owners[flat], found.rows[flat]
    if query.rows == "omit":
        return owners, flat, rows
    empty = np.flatnonzero(found.sizes == 0)
    return (
        np.concatenate([owners, empty]),
        np.concatenate([flat, found.places[empty] - 1]),
        np.concatenate([rows, found.starts[empty]]),
    )


def _unmatched(found: FoundMatches, failed: Mask, covered: Int64s | None) -> Int64s:
    """Return the rows at which no match starts and that no match covers."""
    edges = np.zeros(len(failed) + 1, np.int64)
    if covered is not None:
        np.add.at(edges, found.layout.begins, 1)
        np.add.at(edges, np.maximum(covered, found.layout.begins), -1)
    np.add.at(edges, found.starts, 1)
    np.add.at(edges, found.starts + found.sizes, -1)
    return np.flatnonzero(failed & (np.cumsum(edges)[:-1] == 0))


def _table(
    query: RowPattern, scope: MatchScope, rows: Int64s, inputs: list[str] | tuple[str, ...], measured: Int64s | None
) -> pa.Table:
    """Return columns in the order of the result; `measured` is where the measures of each row are, or -1."""
    layout = scope.matches.layout
    measures = {measure.name: _measured(measure, scope, measured) for measure in query.measures}
    leading = query.partition if query.rows == "one" else (*query.partition, *(key.column for key in query.order))
    names = list(dict.fromkeys(leading))
    others = [name for name in inputs if name not in names] if query.rows != "one" else []
    columns = {name: layout.taken(name, rows) for name in names}
    columns |= measures
    columns |= {name: layout.taken(name, rows) for name in others}
    if not columns:
        return pa.table({"rows": pa.array(rows)}).select([])
    return pa.table(columns)


def _measured(measure: RowMeasure, scope: MatchScope, measured: Int64s | None) -> pa.Array:
    values = broadcast(evaluate(measure.value, scope), scope.size)
    if measure.type and pa.types.is_null(values.type):
        values = cast(values, type_named(measure.type))
    if measured is None:
        return values
    if not len(values):
        return pa.nulls(len(measured), values.type)
    return masked(values.take(pa.array(np.maximum(measured, 0))), measured >= 0)
