"""The columns of a Spark frame as Arrow knows them, and those of results as Spark does."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, DecimalType, StructField, StructType

from weft.runtime.data.shape import Shape
from weft.runtime.spark.compat import arrow_fields
from weft.runtime.spark.schema import RUN_SCHEMA, SENT_SCHEMA, output_schema


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns of a frame as they come to a task; without those that Arrow has no type for."""
    fields: list[pa.Field] = []
    for field in schema:
        try:
            fields += arrow_fields(StructType([field]))
        except (PySparkException, pa.ArrowException):
            continue
    return pa.schema([field.remove_metadata() for field in fields])


def spark_columns(schema: pa.Schema) -> StructType:
    """Columns of Arrow's as Spark knows them; without those that it has no type for."""
    fields = []
    for field in schema:
        try:
            fields.append(StructField(field.name, _spark_type(field.type)))
        except PySparkException:
            continue
    return StructType(fields)


def _spark_type(kind: pa.DataType) -> DataType:
    if pa.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if pa.types.is_uint64(kind):
        return DecimalType(20, 0)
    if pa.types.is_unsigned_integer(kind):
        return from_arrow_type(pa.int64())
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def told(frame: DataFrame, columns: StructType) -> DataFrame:
    """The frame, which need not ask for its columns: on Spark Connect that is a request, and in pipelines forbidden."""
    if hasattr(frame, "_cached_schema"):
        frame._cached_schema = columns
    return frame


def quoted(name: str) -> str:
    """A column's name as Spark's expressions take it: exactly this name, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def output_columns(shape: Shape | None) -> StructType:
    """The columns of what lanes give."""
    return spark_columns(output_schema(shape))


RUN_COLUMNS = spark_columns(RUN_SCHEMA)
SENT_COLUMNS = spark_columns(SENT_SCHEMA)
