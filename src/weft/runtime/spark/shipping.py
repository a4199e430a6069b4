"""Work that is sent to tasks, in a way that lets a machine without weft say so in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from weft.runtime.spark.kernels import send_kernels
from weft.runtime.spark.session import own_python
from weft.tree import deep

Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
MISSING = "weft is not installed on an executor"


def mapped(frame: DataFrame, work: Work, columns: StructType | str, name: str = "weft") -> DataFrame:
    """What tasks make of a frame's rows, batch by batch; Spark's plan shows the `name` of the work."""
    with own_python(frame.sparkSession):
        begun = shipped(work, frame.sparkSession)
        begun.__name__ = name
        return frame.mapInArrow(begun, columns)


def packed_up(value: object) -> bytes:
    """A value as bytes to be sent: pickle calls itself for what is inside of what."""
    with deep:
        return bytes(cloudpickle.dumps(value))


def shipped(work: Work, session: SparkSession) -> Work:
    """The same work, which needs weft only when it begins: the function itself is sent by value.

    Kernels that are compiled here go with it.
    """
    packed, missing, kernels = packed_up(work), MISSING, send_kernels(session)

    def begun(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        try:
            from weft.runtime.spark.kernels import receive_kernels
            from weft.runtime.spark.unpacking import unpacked

            own = unpacked(packed)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "weft":
                raise
            raise RuntimeError(
                f"{missing}, in {sys.executable}: install it there, or send it along "
                "(spark-submit --archives, see docs/spark.md)"
            ) from None
        receive_kernels(kernels)
        yield from own(batches)

    return begun
