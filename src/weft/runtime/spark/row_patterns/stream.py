"""A row pattern over a streaming DataFrame: rows wait for Spark's watermark, the state of a lane of keys is kept."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import count

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from weft.algebra.row_patterns import RowPattern
from weft.errors import DataWarning, UsageError, callers_level
from weft.plan.row_patterns.streaming import stream_refusals, stream_warnings
from weft.runtime.data import blocks
from weft.runtime.operators.row_patterns.engine import empty_result
from weft.runtime.operators.row_patterns.matching import MOST_STEPS
from weft.runtime.spark.columns import arrow_schema, quoted, spark_columns
from weft.runtime.spark.compat import require_stream_of
from weft.runtime.spark.kernels import send_kernels
from weft.runtime.spark.lanes.processor import unpack_output
from weft.runtime.spark.row_patterns.batch import after_match, needed_frame, with_columns
from weft.runtime.spark.row_patterns.catalyst import split_for_catalyst
from weft.runtime.spark.row_patterns.processor import LATE, RowPatternProcessor
from weft.runtime.spark.session import cores, own_python
from weft.runtime.spark.shipping import mapped
from weft.runtime.spark.streams.starting import packed_column, watch_starts

_WATERMARK = "spark.watermarkDelayMs"  # in the metadata of a column with a watermark
_LANE, _ROWS = "lane", "rows"
_observed = count(1)


def match_stream_rows(frame: DataFrame, query: RowPattern, *, max_steps: int = MOST_STEPS) -> DataFrame:
    """The rows of a MATCH_RECOGNIZE clause over a stream: a match is emitted when it is decided.

    Rows that come after the watermark passed their time take no part; `late` among the observed metrics of the
    stream's progress counts them.
    """
    require_stream_of(frame)
    event_time = next((field.name for field in frame.schema if _WATERMARK in (field.metadata or {})), None)
    for refusal in stream_refusals(query, event_time):
        raise UsageError(refusal)
    for message in stream_warnings(query):
        warnings.warn(message, DataWarning, callers_level())
    split = split_for_catalyst(query)
    needed = needed_frame(frame, split)
    query = with_columns(split.query, needed)
    lanes = cores(frame.sparkSession) if query.partition else 1
    schema = arrow_schema(needed.schema)
    result = empty_result(schema, query)
    columns = StructType([*spark_columns(result.schema), StructField(LATE, LongType())])
    output = _unpacked(_packed(needed, query, lanes), query, schema, columns, lanes, max_steps)
    number = next(_observed)
    name = "weft_rows" if number == 1 else f"weft_rows_{number}"
    counted = output.observe(
        name, F.coalesce(F.sum(LATE), F.lit(0)).alias("late"), F.count_if(F.col(LATE).isNull()).alias("rows")
    )
    return after_match(counted.where(F.col(LATE).isNull()).drop(LATE), split, query)


def _packed(needed: DataFrame, query: RowPattern, lanes: int) -> DataFrame:
    """Rows as blocks, each of one lane: a lane is a share of the keys."""
    keys = [F.col(quoted(name)) for name in query.partition]
    lane = F.pmod(F.hash(*keys), F.lit(lanes)) if keys else F.lit(0)
    kind = StructType([StructField(_LANE, IntegerType()), StructField(_ROWS, BinaryType())])
    names = tuple(needed.columns)
    laned = needed.select(lane.cast("int").alias("__weft_lane"), *(quoted(name) for name in names))
    return mapped(laned, partial(pack_task, names=names), kind)


def pack_task(batches: Iterator[pa.RecordBatch], names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """In a task: the rows of each batch, by lane, as bytes."""
    for batch in batches:
        lanes = batch.column(0)
        rows = batch.select(list(range(1, batch.num_columns))).rename_columns(names)
        for lane in lanes.unique().to_pylist():
            mine = rows.filter(pa.compute.equal(lanes, lane))
            yield pa.record_batch(
                [pa.array([lane], pa.int32()), pa.array([blocks.packed_rows(mine)], pa.binary())], [_LANE, _ROWS]
            )


def _unpacked(
    packed: DataFrame, query: RowPattern, schema: pa.Schema, columns: StructType, lanes: int, max_steps: int
) -> DataFrame:
    column = packed_column(lanes)
    session = packed.sparkSession
    with own_python(session):
        found = packed.groupBy(_LANE).transformWithStateInPandas(
            statefulProcessor=RowPatternProcessor(query, schema, column, max_steps, send_kernels(session)),
            outputStructType=StructType([StructField(column, BinaryType())]),
            outputMode="append",
            timeMode="EventTime",
        )
    watch_starts(found)
    with own_python(session):
        return found.mapInArrow(unpack_output, columns)
