"""The sources of a run, as a user names them: folders of files, topics of Kafka, tables of Delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import inf
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weft.algebra.endpoints import Input
from weft.algebra.query import Program
from weft.errors import UsageError, did_you_mean
from weft.runtime.data.joint_types import joint_schema
from weft.runtime.reading.fronts import jump_ticks
from weft.runtime.reading.idleness import idle_seconds
from weft.runtime.reading.kinds import NANOSECONDS
from weft.runtime.reading.order import Reading
from weft.runtime.reading.sources import defaults_of
from weft.runtime.spark.connections.addresses import folder_of, is_connection, scheme_of, sink_address, source_address
from weft.runtime.spark.connections.packages import connection_settings
from weft.runtime.spark.connections.streams import Connected, columns_of, known_partitions, runs_of
from weft.runtime.spark.files.batches import Reader
from weft.runtime.spark.files.log import FileLog, Folder
from weft.runtime.spark.files.parts import rows_per_part
from weft.runtime.spark.files.schema import columns_of_run
from weft.runtime.spark.files.source import FORMAT, FileStream, WeftFiles
from weft.runtime.spark.files.work import FileWork
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.runs.checkpoint_files import last_offset
from weft.runtime.spark.runs.options import RunOptions
from weft.runtime.spark.session import cores
from weft.runtime.spark.shipping import packed_up
from weft.runtime.spark.watermark import Lateness

LEAST = 1.0  # seconds of silence: new files are looked for once a second


@dataclass(frozen=True)
class Inputs:
    """All sources of a run: folders first, then what is connected."""

    folders: tuple[Folder, ...]
    connected: tuple[Connected, ...] = ()
    declared: tuple[Input, ...] = ()  # with their rates

    @property
    def identity(self) -> tuple[object, ...]:
        """What a checkpoint is for."""
        others = [(own.name, str(own.address), dict(own.defaults)) for own in self.connected]
        return (self.folders, *([others] if others else []))

    @property
    def topics(self) -> dict[int, str]:
        """What connected sources are called in the places of late events, by number."""
        return {own.number: own.place for own in self.connected}

    def names(self, partitions: frozenset[str]) -> dict[str, str]:
        """What sources are called, by the names of their times."""
        plain = {str(number): folder.name for number, folder in enumerate(self.folders)}
        for own in self.connected:
            parts = sorted(int(name.partition("/")[2]) for name in partitions if name.startswith(f"{own.number}/"))
            plain |= {f"{own.number}/{part}": f"{own.name} (partition {part})" for part in parts}
            if not own.is_topic:
                plain[str(own.number)] = own.name
        return plain

    def idle(self, options: RunOptions) -> dict[str, float]:
        """After how many seconds each source is idle; those that are always waited for are left out."""
        names = [folder.name for folder in self.folders] + [own.name for own in self.connected]
        bounded = options.until != "stopped"  # all there is gets read, and nothing waits
        return {} if bounded else idle_seconds(options.idle_after, names, self.declared, LEAST)

    def rates(self, options: RunOptions) -> tuple[float | None, ...]:
        """How many events are read in a second from each folder, where that is said of single sources."""
        if not isinstance(options.rate, Mapping):
            return ()
        names = [folder.name for folder in self.folders]
        for name in options.rate:
            if name not in names:
                hint = did_you_mean(name, names) or "only folders are read at a rate of their own"
                raise UsageError(f"there is no source {name!r} of files to read at a rate; {hint}")
        return tuple(options.rate.get(name) for name in names)

    def lateness(self, options: RunOptions, time_unit: str, partitions: frozenset[str]) -> Lateness:
        """How late events may be, and of whom the watermark is waited for."""
        idle = self.idle(options)

        def shares(own: Connected) -> int:
            """Nanoseconds; by the rate, each partition has its part of the events."""
            parts = sum(name.startswith(f"{own.number}/") for name in partitions) if options.idle_after == "rate" else 1
            return int(idle[own.name] * 1e9) * max(1, parts)

        return Lateness(
            options.delay,
            time_unit,
            len(self.folders) + len(self.connected),
            jump_ticks(options.max_jump, time_unit),
            topics=frozenset(own.number for own in self.connected if own.is_topic),
            partitions=partitions,
            idle_after={own.number: shares(own) for own in self.connected if own.name in idle},
        )

    def partitions(self, session: SparkSession, options: RunOptions) -> frozenset[str]:
        """The partitions of topics when the run began, as the names of their times."""
        kept = Path(options.checkpoint).absolute() / "weft" / "partitions.json"
        return known_partitions(session, self.connected, options.kafka, kept)

    def columns(
        self,
        session: SparkSession,
        options: RunOptions,
        program: Program,
        reading: Reading,
        formats: Mapping[str, str],
        readers: Mapping[str, Reader],
    ) -> pa.Schema:
        """Return the columns of events; they are kept in a file for when a run is resumed."""
        kept = Path(options.checkpoint).absolute() / "weft" / "columns"
        waits = options.until == "stopped"
        if not self.connected:
            return columns_of_run(session, self.folders, formats, readers, kept, waits=waits)
        if kept.exists():
            return pa.ipc.read_schema(pa.py_buffer(kept.read_bytes()))
        own = kept.with_name("file_columns")
        found = [columns_of_run(session, self.folders, formats, readers, own, waits=waits)] if self.folders else []
        found += [
            columns_of(session, source, program.catalog, reading, options.kafka, waits=waits)
            for source in self.connected
        ]
        columns = joint_schema(found)
        kept.write_bytes(columns.serialize().to_pybytes())
        return columns

    def stream(
        self,
        session: SparkSession,
        log: FileLog,
        job: Job,
        options: RunOptions,
        readers: Mapping[str, Reader],
        *,
        last: bool = False,
    ) -> FileStream:
        """The stream of files; with it come the end, and the clock for what is connected.

        With sources besides files the end comes last, in a separate query: it must not come before them.
        """
        idle, rates = self.idle(options), self.rates(options)
        rate = None if isinstance(options.rate, Mapping) else options.rate
        every = rates or (rate,) * len(self.folders)
        return FileStream(
            replace(log, part_rows=tuple(map(rows_per_part, every))),
            packed_up(FileWork(job, dict(readers))),
            options.files_per_trigger,
            options.bytes_per_trigger,
            tasks=2 * cores(session),
            ending=options.until == "complete" and (last or not self.connected),
            idle_after=tuple(idle.get(folder.name) for folder in self.folders),
            idle_learns=options.idle_after == "rate",
            rate=rate,
            rates=rates,
            tick=NANOSECONDS[job.reading.time_unit],
            ahead=None if options.max_ahead == inf else options.max_ahead,
            clock=any(own.name in idle for own in self.connected),
            bounded=options.until != "stopped",
            begun=last_offset(options.checkpoint),
        )

    def runs(
        self, session: SparkSession, stream: FileStream, job: Job, options: RunOptions, *, last: bool = False
    ) -> DataFrame:
        """Return the runs of all sources. With `last`, all available data comes at once, before the end."""
        session.dataSource.register(WeftFiles)
        files = session.readStream.format(FORMAT).option("stream", stream.packed()).load()
        more = {"at_once": None} if last else {}
        connected = [runs_of(session, own, job, options.kafka, stream.ahead, **more) for own in self.connected]
        return reduce(DataFrame.unionByName, connected, files)


def session_settings(options: RunOptions, inputs: Inputs) -> dict[str, str]:
    """What a new session needs for the sources and the sink of a run."""
    addresses = [own.address for own in inputs.connected]
    sink = [sink_address(options.sink)] if is_connection(options.sink) else []
    return connection_settings([*addresses, *sink], options.packages, options.jars)


def inputs_of(sources: Sequence[tuple[str, str]], program: Program, type: str) -> Inputs:
    """Sources as NAME and URI; the name is the events' stream when there are several, or when it is declared."""
    if not sources:
        raise UsageError("a run needs a source: --source NAME=FOLDER")
    names = [name for name, _ in sources]
    if len(set(names)) < len(names):
        raise UsageError("two sources have one name: give each its own")
    folders = []
    for name, uri in sources:
        if is_connection(uri):
            continue
        path, type_name = folder_of(uri)
        if "://" in path:
            raise UsageError(
                f"source {name}: {uri} cannot be read: {scheme_of(uri)} is none of a folder, kafka://HOST:PORT/TOPIC "
                "and delta:PATH"
            )
        if not Path(path).exists():
            raise UsageError(f"source {name}: no such folder: {path}")
        defaults = defaults_of(name, len(sources), program, type) | ({} if type_name is None else {type: type_name})
        folders.append(Folder(name, str(Path(path).absolute()), defaults))
    connected: list[Connected] = []
    for name, uri in sources:
        if is_connection(uri):
            address = source_address(uri, f"source {name}")
            given = {type: address.options["type"]} if "type" in address.options else {}
            defaults = defaults_of(name, len(sources), program, type) | given
            connected.append(Connected(len(folders) + len(connected), name, address, defaults))
    return Inputs(tuple(folders), tuple(connected), program.inputs)
