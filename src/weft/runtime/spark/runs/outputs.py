"""The sink of a run, as a user names it: a folder, a topic of Kafka or a table of Delta."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from weft.errors import UsageError
from weft.runtime.spark.connections.addresses import KafkaAddress, is_connection, sink_address
from weft.runtime.spark.connections.writers import MatchWriter, TableWriter, TopicWriter
from weft.runtime.spark.lanes.trigger import TriggerWork
from weft.runtime.spark.runs.agreement import read_note
from weft.runtime.spark.runs.options import RunOptions
from weft.runtime.spark.runs.sink import FileSink
from weft.runtime.spark.runs.sink_parts import PACKED, SinkWork, write_trigger
from weft.runtime.spark.shipping import mapped
from weft.runtime.spark.streams.file_state import by_lane


def written_stream(runs: DataFrame, work: TriggerWork, sink: SinkWork) -> DataFrame:
    """Match the runs of a stream by lane, and write their output; the rows are reports to the driver."""
    columns = StructType([StructField(PACKED, BinaryType())])
    return mapped(by_lane(runs, work.job), partial(write_trigger, work=work, sink=sink), columns, "weft_match")


def sink_of(options: RunOptions, query_names: Sequence[str]) -> FileSink:
    """The sink that the options name; rejects are in a folder in any case."""
    if not is_connection(options.sink):
        return FileSink(options.sink, options.rejects, options.format, query_names)
    address = sink_address(options.sink)
    own = Path(options.checkpoint).absolute()
    writer: MatchWriter
    if isinstance(address, KafkaAddress):
        if options.format != "jsonl":
            raise UsageError(f"records of a topic are JSON, not {options.format}: leave out --format")
        writer = TopicWriter(address, options.kafka)
    else:
        writer = TableWriter(address, lambda: (read_note(options.checkpoint) or {}).get("run"))
    rejects = options.rejects or str(own / "rejects")
    return FileSink(str(own / "weft" / "staged"), rejects, writer.form, query_names, writer=writer)
