"""Output of a task in a trigger: small output goes to the driver, large output into files written by the task.

So a trigger may have more matches than any process can hold. A task writes temporary files and
reports them to the driver, which renames them when all tasks are done.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext

from weft.errors import UsageError
from weft.runtime.data import blocks
from weft.runtime.data.shape import MATCH_SCHEMA, Shape
from weft.runtime.spark.kernels import settle_worker
from weft.runtime.spark.lanes.collected import in_match_order
from weft.runtime.spark.lanes.trigger import TriggerWork
from weft.runtime.spark.schema import as_output, counters_as_output, output_schema
from weft.runtime.writing.match_lines import json_lines

UNFINISHED = ".unfinished"
PACKED = "packed"  # the column of what tasks tell the driver
_RECORD = re.compile(r"kafka:(?P<topic>[^/:]+)/(?P<partition>\d+)(?::(?P<offset>\d+))?")  # the place of a record
REJECT_NAMES = ["id", "start", "end", "reason"]


@dataclass(frozen=True)
class SinkWork:
    """Where output goes and how; `most` bytes of a task's matches (and as many of rejects) go to the driver."""

    matches: str
    rejects: str
    form: str
    names: tuple[str, ...]
    shape: Shape | None
    time_unit: str
    most: int
    piece: int  # bytes of matches in a file, about
    positions: bool = True  # whether matches are written with these

    @property
    def told(self) -> str:
        """The column that has what lanes say besides matches."""
        return "event" if self.shape is None else "rejected"

    def divided(self, rows: pa.Table | pa.RecordBatch) -> tuple[pa.Table, pa.Table, pa.Table]:
        """Split rows of the output into matches with their own columns, rejects, and the rest."""
        own = MATCH_SCHEMA if self.shape is None else self.shape.schema
        output = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        found, reason = pc.is_valid(output["query"]), pc.is_valid(output["reason"])
        matches = output.filter(found).select(own.names).cast(own)
        rejects = output.filter(reason).select([*REJECT_NAMES, self.told]).rename_columns([*REJECT_NAMES, "event"])
        return matches, rejects, output.filter(pc.invert(pc.or_(found, reason)))

    def ordered(self, matches: pa.Table) -> pa.Table:
        """Matches in match order, with the columns that are written."""
        ordered = in_match_order(matches, self.names, self.time_unit)
        return ordered if self.positions else ordered.drop_columns(["positions", "bindings"])

    def match_file(self, matches: pa.Table) -> bytes | memoryview:
        """The bytes of a file of matches, put into match order."""
        ordered = self.ordered(matches)
        if self.form == "jsonl":
            return b"".join(json_lines(rows) for rows in ordered.to_batches())
        buffer = pa.BufferOutputStream()
        pq.write_table(ordered, buffer)
        return memoryview(buffer.getvalue())

    def reject_file(self, rejects: pa.Table) -> bytes:
        """The bytes of a file of rejects."""
        by = [("reason", "ascending"), ("end", "ascending"), ("id", "ascending")]
        return "".join(map(_reject_line, rejects.sort_by(by).to_pylist())).encode()


def _reject_line(row: dict[str, object]) -> str:
    event = None if row["event"] is None else json.loads(str(row["event"]))
    place: dict[str, object] = {} if row["id"] is None else {"place": row["id"]}
    record = _RECORD.fullmatch(str(row["id"]))
    if record:
        offset = {} if record["offset"] is None else {"offset": int(record["offset"])}
        place |= {"topic": record["topic"], "partition": int(record["partition"]), **offset}
    return json.dumps({**place, "reason": row["reason"], "event": event}, ensure_ascii=False) + "\n"


def write_trigger(batches: Iterator[pa.RecordBatch], work: TriggerWork, sink: SinkWork) -> Iterator[pa.RecordBatch]:
    """Match the runs of a trigger in a task and write its output; return the report to the driver, as one row."""
    settle_worker()
    told = list(share_out(work.rows(batches), sink, work.trigger))
    if told:
        rows = pa.Table.from_batches(told).combine_chunks().to_batches()
        yield pa.record_batch([pa.array(map(blocks.packed_rows, rows), pa.binary())], [PACKED])


def unpack_told(packed: pa.Table, shape: Shape | None) -> pa.Table:
    """Rows of the output that `write_trigger` packed."""
    batches = [blocks.unpacked_rows(data.as_buffer()) for data in packed.column(PACKED)]
    return pa.Table.from_batches(batches, output_schema(shape))


def share_out(batches: Iterable[pa.RecordBatch], work: SinkWork, batch: int) -> Iterator[pa.RecordBatch]:
    """In a task: of the output's rows those that go to the driver, and notes of the files that were written."""
    own = MATCH_SCHEMA if work.shape is None else work.shape.schema
    matches = Parts(work, Path(work.matches), f"matches-{batch:08d}", work.form, work.match_file, _by_query)
    rejects = Parts(work, Path(work.rejects), f"rejects-{batch:08d}", "jsonl", work.reject_file, _by_lateness)
    for rows in batches:
        found, wrong, rest = work.divided(rows)
        matches.add(found)
        rejects.add(wrong)
        yield from rest.to_batches()
    few = matches.end()
    if few is not None:
        yield from (as_output(rows, work.shape) for rows in few.cast(own).to_batches())
    few = rejects.end()
    if few is not None:
        yield from (_reject_output(rows, work) for rows in few.to_batches())
    for note in (*matches.notes, *rejects.notes):
        yield as_output(counters_as_output({"part": note}), work.shape)


def _reject_output(rejects: pa.RecordBatch, work: SinkWork) -> pa.RecordBatch:
    given = {work.told if name == "event" else name: rejects.column(name) for name in rejects.schema.names}
    schema = output_schema(work.shape)
    columns = [given[field.name] if field.name in given else pa.nulls(len(rejects), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _by_query(matches: pa.Table) -> Counter[str]:
    counted = matches["query"].value_counts()
    return Counter({str(one["values"]): int(one["counts"]) for one in counted.to_pylist()})


def _by_lateness(rejects: pa.Table) -> Counter[str]:
    late = pc.sum(pc.starts_with(rejects["reason"], "late: ")).as_py() or 0
    return Counter(late=late, unreadable=len(rejects) - late)


class Parts:
    """Rows of one kind that a task has: kept while they are few, else put into files."""

    def __init__(
        self,
        work: SinkWork,
        folder: Path,
        name: str,
        form: str,
        make: Callable[[pa.Table], bytes | memoryview],
        count: Callable[[pa.Table], Counter[str]],
    ) -> None:
        self.notes: list[dict[str, object]] = []
        self._work, self._folder, self._form, self._make, self._count = work, folder, form, make, count
        context = TaskContext.get()
        self._name = f"{name}-{0 if context is None else context.partitionId():04d}"
        self._mark = uuid4().hex[:12]  # of this try: another one of the same task writes other files
        self._kept: list[pa.Table] = []
        self._bytes = 0

    def add(self, rows: pa.Table) -> None:
        """Some more."""
        if not len(rows):
            return
        self._kept.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > (self._work.piece if self.notes else max(self._work.most, 1)):
            self._write()

    def end(self) -> pa.Table | None:
        """No more come: the rows, if they are few."""
        if not self._kept:
            return None
        if self.notes:
            self._write()
            return None
        return pa.concat_tables(self._kept)

    def _write(self) -> None:
        rows = pa.concat_tables(self._kept)
        self._kept, self._bytes = [], 0
        final = f"{self._name}-{len(self.notes):04d}.{self._form}"
        hidden = f".{final}.{self._mark}{UNFINISHED}"
        write_whole(self._folder / hidden, self._make(rows))
        self.notes.append({"file": hidden, "name": final, "counts": dict(self._count(rows))})


def write_whole(target: Path, data: bytes | memoryview) -> None:
    """Write a file, and see to it that it is on the disk."""
    try:
        if target.name.lstrip(".").startswith("rejects-") and not target.parent.is_dir():
            target.parent.mkdir()
        with target.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageError(f"cannot write to {target.parent}: {error.strerror}") from None


def publish(folder: Path, notes: Sequence[Mapping[str, str]]) -> None:
    """Give the files that tasks have written their names."""
    for note in notes:
        try:
            (folder / note["file"]).replace(folder / note["name"])
        except FileNotFoundError:
            raise UsageError(
                f"{folder} is not the same folder on all machines: a trigger with so many matches is written by tasks; "
                "use a folder that all of them see"
            ) from None


def remove_leftovers(folder: Path, stem: str, names: Container[str | None]) -> None:
    """Remove what an earlier try of a trigger has left, and this one did not write again."""
    for left in (*folder.glob(f"{stem}.*"), *folder.glob(f"{stem}-*"), *folder.glob(f".{stem}[.-]*")):
        if left.name not in names:
            left.unlink(missing_ok=True)
