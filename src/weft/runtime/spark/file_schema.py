"""The columns of files of events: what Parquet says, and for lines of JSON and CSV what Spark infers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from weft.errors import InputError
from weft.runtime.joint_types import joint_schema
from weft.runtime.spark.columns import arrow_schema, spark_columns
from weft.runtime.spark.files import Files


def schema_of_files(session: SparkSession, files: Files) -> pa.Schema:
    """All columns of the files, each of a type that Spark has and that holds the values of all."""
    schemas = []
    for form in dict.fromkeys(form for _, form, _ in files.paths):
        paths = [path for path, own, _ in files.paths if own == form]
        if form == "parquet":
            schemas += [arrow_schema(spark_columns(_parquet_schema(path))) for path in paths]
            continue
        reader = session.read.option("header", True).option("inferSchema", True)
        frame = reader.csv(paths) if form == "csv" else reader.json(paths)
        schemas.append(arrow_schema(frame.schema))
    names = dict.fromkeys(name for _, _, defaults in files.paths for name in defaults)
    schemas.append(pa.schema([(name, pa.string()) for name in names]))
    return joint_schema(schemas)


def _parquet_schema(path: str) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a Parquet file: {error}") from None
