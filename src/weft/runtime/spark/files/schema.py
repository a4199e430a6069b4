"""The columns of files of events: what Parquet says, and for lines of JSON and CSV what Spark infers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from weft.errors import InputError
from weft.runtime.data.joint_types import joint_schema
from weft.runtime.spark.columns import arrow_schema, spark_columns
from weft.runtime.spark.files.batches import Files, Reader
from weft.runtime.spark.files.log import Folder, ending_of, listed

MOST_FILES = 20  # of a folder, that are asked for their columns
LOOK = 0.5  # seconds between looks for the first file


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


def columns_of_run(
    session: SparkSession,
    folders: Sequence[Folder],
    formats: Mapping[str, str],
    readers: Mapping[str, Reader],
    kept: Path,
    *,
    waits: bool,
) -> pa.Schema:
    """Return the columns of the files in folders, as the first files have them; stored in a file for continued runs.

    `waits`: until there are files. Columns that appear later are read, but not shown.
    """
    if kept.exists():
        return pa.ipc.read_schema(pa.py_buffer(kept.read_bytes()))
    while not (found := list(_first_files(folders, formats))) and waits:
        time.sleep(LOOK)
    if not found:
        return pa.schema([])
    columns = schema_of_files(session, Files(tuple(found), readers))
    kept.write_bytes(columns.serialize().to_pybytes())
    return columns


def _first_files(folders: Iterable[Folder], formats: Mapping[str, str]) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    for folder in folders:
        for path, _ in islice(listed(folder.path, formats), MOST_FILES):
            form = formats[ending_of(path)]
            if form != "parquet" or _is_parquet(path):
                yield path, form, folder.defaults


def _is_parquet(path: str) -> bool:
    """Whether the file is Parquet as its name says; if not, this is reported when it is read."""
    try:
        _parquet_schema(path)
    except InputError:
        return False
    return True
