"""Matches and rejects of a stream as files, one of each for a trigger: written again, it is the same file."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from weft.errors import UsageError
from weft.runtime.results.shape import MATCH_SCHEMA, Shape
from weft.runtime.spark.lanes.collected import in_match_order
from weft.runtime.spark.schema import output_schema
from weft.runtime.triggers import Standing, Trigger
from weft.runtime.writing.match_lines import json_lines


class FileSink:
    """A folder of matches and one of rejects. A file appears under its name only when it is whole."""

    def __init__(self, folder: str, rejects: str | None, form: str, query_names: Sequence[str]) -> None:
        path = folder.removeprefix("file://")
        if "://" in path:
            raise UsageError(f"the sink {folder} is not a folder, and nothing else can be written yet")
        if form not in ("jsonl", "parquet"):
            raise UsageError(f"matches are written as jsonl or parquet, not as {form}")
        self.counters: Counter[str] = Counter(events=0, matches=0, late=0, unreadable=0)
        self.watchers: list[Callable[[Trigger], None]] = []  # told of each trigger that is written
        self._lanes: dict[int, Standing] = {}
        self._matches = Path(path)
        self._rejects = Path(rejects) if rejects else self._matches / "rejects"
        self._form = form
        self._names = list(query_names)
        self._shape: Shape | None = None
        self._time_unit = "ms"
        try:
            self._matches.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the sink {folder} cannot be made: {error.strerror}") from None

    @property
    def folder(self) -> Path:
        """Where the matches go."""
        return self._matches

    def expect(self, shape: Shape | None, time_unit: str) -> None:
        """What the columns of matches are; None: those of MATCH_SCHEMA."""
        self._shape, self._time_unit = shape, time_unit

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write the output of one trigger."""
        started = time.perf_counter()
        own, told = (MATCH_SCHEMA, "event") if self._shape is None else (self._shape.schema, "rejected")
        output = frame.toArrow().cast(output_schema(self._shape))
        matches = output.filter(pc.is_valid(output["query"])).select(own.names).cast(own)
        names = ["id", "start", "end", "reason"]
        rejects = output.filter(pc.is_valid(output["reason"])).select([*names, told]).rename_columns([*names, "event"])
        if len(matches):
            self._write_matches(in_match_order(matches, self._names, self._time_unit), batch)
        if len(rejects):
            _place(self._rejects / f"rejects-{batch:08d}.jsonl", _reject_lines(rejects))
        counted = self._count(output, told, len(matches), rejects["reason"].to_pylist())
        by_query = Counter(dict.fromkeys(self._names, 0))
        by_query.update(matches["query"].to_pylist())
        trigger = Trigger(
            number=batch,
            at=time.time(),
            seconds=time.perf_counter() - started,
            matches=dict(by_query),
            lanes=tuple(self._lanes.values()),
            **counted,
        )
        for watcher in self.watchers:
            watcher(trigger)

    def _write_matches(self, matches: pa.Table, batch: int) -> None:
        target = self._matches / f"matches-{batch:08d}.{self._form}"
        if self._form == "jsonl":
            _place(target, b"".join(json_lines(rows) for rows in matches.to_batches()))
            return
        buffer = pa.BufferOutputStream()
        pq.write_table(matches, buffer)
        _place(target, buffer.getvalue().to_pybytes())

    def _count(self, output: pa.Table, where: str, matches: int, reasons: list[str]) -> dict[str, int]:
        """Add to the counters, which are in a column; the events, late and unreadable ones of this trigger."""
        late = sum(reason.startswith("late: ") for reason in reasons)
        counted = Counter(events=0, late=late, unreadable=len(reasons) - late)
        others = output.filter(pc.and_(pc.is_null(output["query"]), pc.is_null(output["reason"])))
        for text in others[where].to_pylist():
            told = json.loads(text)
            standing = told.pop("standing", None)
            if standing is not None:
                self._lanes[standing["lane"]] = Standing.from_json(standing)
            counted.update(told)
        self.counters.update(matches=matches, **counted)
        return {name: counted[name] for name in ("events", "late", "unreadable")}


def _place(target: Path, data: bytes) -> None:
    """Write a file as a whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.unfinished")
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(target)


def _reject_lines(rejects: pa.Table) -> bytes:
    lines = []
    for row in rejects.sort_by([("reason", "ascending"), ("end", "ascending"), ("id", "ascending")]).to_pylist():
        event = None if row["event"] is None else json.loads(row["event"])
        place = {} if row["id"] is None else {"place": row["id"]}
        lines.append(json.dumps({**place, "reason": row["reason"], "event": event}, ensure_ascii=False) + "\n")
    return "".join(lines).encode()
