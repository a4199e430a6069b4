"""A row pattern over a Spark DataFrame: the JVM brings rows of a key together, tasks run the engine on theirs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from weft.algebra.row_patterns import RowField, RowPattern
from weft.errors import DataWarning, UsageError, callers_level
from weft.runtime.operators.row_patterns.engine import empty_result, match_sorted
from weft.runtime.operators.row_patterns.matching import MOST_STEPS
from weft.runtime.spark.columns import arrow_schema, quoted, spark_columns
from weft.runtime.spark.noticing import notice_later
from weft.runtime.spark.row_patterns.catalyst import SplitQuery, split_for_catalyst
from weft.runtime.spark.shipping import mapped

TIES = "__weft_ties"  # a row without a match that says how many rows tie


def match_batch(frame: DataFrame, query: RowPattern, *, max_steps: int = MOST_STEPS) -> DataFrame:
    """The rows of a MATCH_RECOGNIZE clause over a DataFrame with an end.

    Rows that tie in ORDER BY are ordered by the other columns that the query reads; a warning says so after the first
    action.
    """
    if not query.order:
        raise UsageError(
            "MATCH_RECOGNIZE on Spark needs ORDER BY: rows of a DataFrame have no order. Add the column of their time"
        )
    split = split_for_catalyst(query)
    needed = needed_frame(frame, split)
    query = with_columns(split.query, needed)
    together = needed.repartition(*(F.col(quoted(name)) for name in query.partition)) if query.partition else None
    if together is None:
        message = "MATCH_RECOGNIZE without PARTITION BY: all rows are matched in one task"
        warnings.warn(message, DataWarning, callers_level())
        together = needed.repartition(1)
    schema = arrow_schema(needed.schema)
    result = empty_result(schema, query)
    columns = StructType([*spark_columns(result.schema), StructField(TIES, LongType())])
    work = partial(match_task, schema=schema, query=query, columns=columns.names, max_steps=max_steps)
    ties = F.coalesce(F.sum(TIES), F.lit(0)).alias("ties")
    output = notice_later(mapped(together, work, columns), ties, _ties_seen(query))
    return after_match(output.where(F.col(TIES).isNull()).drop(TIES), split, query)


def needed_frame(frame: DataFrame, split: SplitQuery) -> DataFrame:
    """The columns that a query reads, with those that Spark works out before the match."""
    query = split.query
    parts = [*(define.condition for define in query.conditions), *(measure.value for measure in query.measures)]
    read = {node.name for part in parts for node in part.walk() if isinstance(node, RowField)}
    read |= {*query.partition, *(key.column for key in query.order)}
    kept = [F.col(quoted(name)) for name in frame.columns if query.rows != "one" or name in read]
    return frame.select(*kept, *(F.expr(text).alias(name) for name, text in split.before.items()))


def with_columns(query: RowPattern, frame: DataFrame) -> RowPattern:
    """The query, which knows the columns of its input."""
    known = {column.name: column for column in query.columns}
    return replace(query, columns=tuple(known[name] for name in frame.columns if name in known))


def after_match(output: DataFrame, split: SplitQuery, query: RowPattern) -> DataFrame:
    """The result with the measures that Spark works out, without columns that only helped."""
    helped = set(split.before)
    if split.after is None:
        return output.select(*(quoted(name) for name in output.columns if name not in helped))
    inner = {measure.name for measure in query.measures}
    leading = dict.fromkeys((*query.partition, *(key.column for key in query.order if query.rows != "one")))
    others = [name for name in output.columns if name not in inner | set(leading) | helped]
    return output.select(
        *(quoted(name) for name in leading),
        *(F.expr(text).alias(name) for name, text in split.after.items()),
        *(quoted(name) for name in others),
    )


def match_task(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, query: RowPattern, columns: list[str], max_steps: int
) -> Iterator[pa.RecordBatch]:
    """In a task: the result over all its rows, and how many of them tie."""
    rows = _gathered(batches, schema)
    if not rows.num_rows:
        return
    result, ties = match_sorted(rows, query, max_steps=max_steps)
    result = result.append_column(TIES, pa.nulls(len(result), pa.int64())).rename_columns(columns)
    yield from result.to_batches(max_chunksize=1 << 16)
    if ties:
        told = [*(pa.nulls(1, field.type) for field in list(result.schema)[:-1]), pa.array([ties])]
        yield pa.RecordBatch.from_arrays(told, names=columns)


def _gathered(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    found = [batch.rename_columns(schema.names) for batch in batches if len(batch)]
    return pa.Table.from_batches(found) if found else schema.empty_table()


def _ties_seen(query: RowPattern) -> Callable[[dict[str, int]], None]:
    names = ", ".join(key.column for key in query.order)

    def tell(values: dict[str, int]) -> None:
        ties = values["ties"]
        if ties:
            message = f"ORDER BY {names} is not unique: {ties:,} row{'s' * (ties > 1)} tie; add a column"
            warnings.warn(message, DataWarning, callers_level())

    return tell
