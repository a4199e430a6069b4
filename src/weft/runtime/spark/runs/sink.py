"""Matches and rejects of a stream as files, for each trigger: written again, they are the same files.

A trigger with few matches gives one file, in match order; one with many several, written by the tasks.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weft.errors import UsageError
from weft.runtime.data.shape import Shape
from weft.runtime.spark.compat import to_arrow
from weft.runtime.spark.connections.writers import MatchWriter
from weft.runtime.spark.runs.agreement import OWNER, removed
from weft.runtime.spark.runs.sink_parts import UNFINISHED, SinkWork, publish, remove_leftovers, unpack_told, write_whole
from weft.runtime.spark.runs.warning import Unreadable
from weft.runtime.watching.left_out import of_these
from weft.runtime.watching.triggers import Standing, Trigger

COLLECTED = 1 << 26  # bytes of matches of one trigger, and as many of rejects, that the driver takes
TOLD_APART = ("standing", "steps", "part")  # what is no counter in what lanes tell
PIECE = 1 << 26  # bytes of matches in a file that a task writes


class FileSink:
    """A folder of matches and one of rejects. A file appears under its name only when it is whole.

    With a `writer`, matches go there instead, and the folder has those of the trigger in progress, if they are many.
    """

    def __init__(
        self,
        folder: str,
        rejects: str | None,
        form: str,
        query_names: Sequence[str],
        *,
        collected: int = COLLECTED,
        piece: int = PIECE,
        writer: MatchWriter | None = None,
    ) -> None:
        path = folder.removeprefix("file://")
        if "://" in path:
            raise UsageError(
                f"the sink {folder} cannot be written: it is none of a folder, kafka://HOST:PORT/TOPIC and delta:PATH"
            )
        if form not in ("jsonl", "parquet"):
            raise UsageError(f"matches are written as jsonl or parquet, not as {form}")
        self.counters: Counter[str] = Counter(events=0, matches=0, late=0, unreadable=0)
        self._unreadable = Unreadable()
        self.watchers: list[Callable[[Trigger], None]] = []  # told of each trigger that is written
        self.written = 0  # triggers
        self.check: Callable[[], None] = lambda: None  # raises when nothing more is to be written
        self._lanes: dict[int, Standing] = {}
        self._matches = Path(path)
        self._rejects = Path(rejects) if rejects else self._matches / "rejects"
        self._names = list(query_names)
        self._is_first = True
        absolute = str(self._matches.absolute()), str(self._rejects.absolute())
        self._work = SinkWork(*absolute, form, tuple(query_names), None, "ms", collected, piece)
        self._collected = collected
        self._writer = writer
        self._is_made = self._is_owned = False  # whether the folders are there; whether they say whose they are

    @property
    def has_columns(self) -> bool:
        """Whether matches are written as rows of a table, and not as lines of JSON."""
        return self._work.form == "parquet"

    @property
    def work(self) -> SinkWork:
        """What tasks must know of it."""
        return self._work

    @property
    def folder(self) -> Path:
        """Where the matches go."""
        return self._matches

    def rename(self, query_names: Sequence[str]) -> None:
        """From now on matches of these queries come."""
        self._names = list(query_names)
        self._work = replace(self._work, names=tuple(query_names))

    def expect(self, shape: Shape | None, time_unit: str, lanes: int, *, positions: bool = True) -> None:
        """What the columns of matches are (None: those of MATCH_SCHEMA), and how many tasks there are."""
        most = self._collected // max(1, lanes)
        self._work = replace(self._work, shape=shape, time_unit=time_unit, most=most, positions=positions)

    def begin(self) -> None:
        """The next trigger may be one that another query began."""
        self._is_first = True
        self._require_folders()

    def _require_folders(self) -> None:
        """Make the folders when it begins; later, refuse to go on without that of the matches."""
        try:
            if not self._is_made:
                for folder in (self._matches, self._rejects.parent):
                    folder.mkdir(parents=True, exist_ok=True)
                self._is_made, self._is_owned = True, (self._matches / OWNER).exists()
        except OSError as error:
            raise UsageError(f"cannot write to {self._matches}: {error.strerror}") from None
        if not (self._matches / OWNER if self._is_owned else self._matches).exists():
            raise removed(self._matches)

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write what tasks tell of one trigger: few matches here, in one file; many are in files of the tasks."""
        started = time.perf_counter()
        self.check()
        self._require_folders()
        work = self._work
        matches, rejects, rest = work.divided(unpack_told(to_arrow(frame), work.shape))
        told = [json.loads(text) for text in rest[work.told].to_pylist()]
        parts = [one["part"] for one in told if "part" in one]
        self.check()  # the work may have taken long, and another may have taken over meanwhile
        self._require_folders()
        if self._writer is None:
            self._place(self._matches, f"matches-{batch:08d}", work.form, matches, parts, work.match_file)
        else:
            self._hand_over(self._writer, frame.sparkSession, batch, matches, parts)
        self._place(self._rejects, f"rejects-{batch:08d}", "jsonl", rejects, parts, work.reject_file)
        self._is_first = False
        self.written += 1
        by_query = Counter(dict.fromkeys(self._names, 0))
        by_query.update(matches["query"].to_pylist())
        wrong = Counter(late=0, unreadable=0)
        for reason in rejects["reason"].to_pylist():
            wrong["late" if reason.startswith("late: ") else "unreadable"] += 1
        self._unreadable.look(rejects)
        for part in parts:
            (by_query if part["name"].startswith("matches-") else wrong).update(part["counts"])
        counted = self._count(told, by_query.total(), wrong)
        steps: Counter[str] = Counter()
        for one in told:
            steps.update(one.get("steps") or {})
        trigger = Trigger(
            number=batch,
            at=time.time(),
            seconds=time.perf_counter() - started,
            matches=dict(by_query),
            lanes=tuple(self._lanes.values()),
            steps=dict(steps),
            **counted,
        )
        for watcher in self.watchers:
            watcher(trigger)

    def _place(
        self,
        folder: Path,
        stem: str,
        form: str,
        rows: pa.Table,
        parts: Sequence[dict[str, str]],
        make: Callable[[pa.Table], bytes | memoryview],
    ) -> None:
        """Put the rows into a file, which appears under its name when it is whole, and give those of tasks theirs."""
        own = None
        if len(rows):
            own = f"{stem}.{form}"
            hidden = folder / f".{own}{UNFINISHED}"
            write_whole(hidden, make(rows))
            hidden.replace(folder / own)
        own_parts = [part for part in parts if part["name"].startswith(stem)]
        publish(folder, own_parts)
        if own_parts or self._is_first:  # only the first trigger of a process can be one that another began
            remove_leftovers(folder, stem, {own, *(part["name"] for part in own_parts)})

    def _hand_over(
        self, writer: MatchWriter, session: SparkSession, batch: int, matches: pa.Table, parts: Sequence[dict[str, str]]
    ) -> None:
        """Give the matches of a trigger to a writer, those that tasks have put into files, too."""
        ordered = self._work.ordered(matches)
        stem = f"matches-{batch:08d}"
        files = [str(self._matches / part["file"]) for part in parts if part["name"].startswith(stem)]
        if len(ordered) or files:
            writer.write(session, batch, ordered, files)
        remove_leftovers(self._matches, stem, ())

    def _count(self, told: Sequence[dict[str, Any]], matches: int, wrong: Counter[str]) -> dict[str, Any]:
        """Add to the counters; the events, late and unreadable ones of this trigger, and what was left out in it."""
        counted = Counter(events=0, **wrong)
        for one in told:
            standing = one.get("standing")
            if standing is not None:
                self._lanes[standing["lane"]] = Standing.from_json(standing)
            counted.update({name: number for name, number in one.items() if name not in TOLD_APART})
        self.counters.update(matches=matches, **counted)
        numbers = {name: counted[name] for name in ("events", "late", "unreadable")}
        return {**numbers, "left_out": of_these(counted, self._names)}
