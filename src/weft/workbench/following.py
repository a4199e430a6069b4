"""What there is to follow of a run: its newest matches, its checkpoint, and how busy it is."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from weft.connectors.uris import as_uri
from weft.running.registry import Entry
from weft.workbench.event_files import file_rows

KEPT = 100  # matches
MINUTE = 60.0
MOST_BYTES = 4_000_000  # of a file of matches that is read for its end
ENDINGS = (".jsonl", ".csv", ".parquet")
DELTA_LOG = "_delta_log"
OWN = ("query", "start", "end", "positions", "bindings", "event", "id")
Row = dict[str, Any]


@dataclass(frozen=True)
class FoundMatch:
    """A match of a run: when it was written (seconds since 1970), and what it says."""

    at: float
    query: str
    start: Any
    end: Any
    event: Mapping[str, Any]


@dataclass(frozen=True)
class CheckpointInfo:
    """Where a run keeps its progress: the last trigger that is committed, when (seconds since 1970), and all bytes."""

    place: str
    trigger: int | None = None
    at: float | None = None
    size: int = 0
    is_here: bool = True  # on this machine


def found_match(at: float, row: Mapping[str, Any]) -> FoundMatch:
    """From a match as it is written; columns that are not weft's own are fields of its event."""
    event = row.get("event")
    fields = dict(event) if isinstance(event, Mapping) else {}
    fields |= {name: value for name, value in row.items() if name not in OWN and value is not None}
    return FoundMatch(at, str(row.get("query", "")), row.get("start"), row.get("end"), fields)


def newest_matches(entry: Entry) -> list[FoundMatch]:
    """The newest matches in a folder or a Delta table of this machine that a run on Spark writes to; else none."""
    table, folder = _table(entry), _folder(entry, "sink")
    if table is not None:
        files: Iterable[tuple[float, Path]] = _added_to(table)
    elif folder is not None:
        files = _by_age(path for path in folder.glob("*") if path.suffix in ENDINGS and path.name[0] not in "._")
    else:
        return []
    found: list[FoundMatch] = []
    for at, path in files:
        rows = _last_rows(path)
        found += [found_match(at, row) for row in reversed(rows[-(KEPT - len(found)) :])]
        if len(found) >= KEPT:
            break
    return found


def sink_told(entry: Entry) -> str:
    """Where the matches of a run go, if they cannot be shown."""
    sink = str(entry.about.get("sink") or "")
    return "" if _folder(entry, "sink") is not None or _table(entry) is not None else sink


def checkpoint_of(entry: Entry) -> CheckpointInfo | None:
    """The checkpoint of a run on Spark, as far as it is in a folder of this machine."""
    place = entry.about.get("checkpoint")
    folder = _folder(entry, "checkpoint")
    if folder is None:
        return None if place is None else CheckpointInfo(str(place), is_here=False)
    commits = _by_age(path for path in folder.glob("**/commits/*") if path.name.isdigit())
    at, last = commits[0] if commits else (None, None)
    size = sum(_size(path) for path in folder.rglob("*"))
    return CheckpointInfo(str(place), None if last is None else int(last.name), at, size)


def busy_share(history: Sequence[Mapping[str, Any]], started: float | None, ended: float | None = None) -> float:
    """The share of the last minute that triggers took: near 1, input arrives faster than it is matched."""
    now = ended or time.time()
    begun = max(now - MINUTE, started or 0.0)
    taken = sum(float(trigger.get("seconds") or 0.0) for trigger in history if trigger["at"] > begun)
    return min(1.0, taken / max(now - begun, 0.001))


def _folder(entry: Entry, what: str) -> Path | None:
    """A folder of this machine that a run names, if it is one."""
    place = str(entry.about.get(what) or "").removeprefix("file://")
    if not place or as_uri(place) is not None:
        return None
    folder = Path(str(entry.about.get("folder") or ".")) / place
    return folder if folder.is_dir() else None


def _table(entry: Entry) -> Path | None:
    """The Delta table of this machine that a run writes to, if it is one."""
    sink = as_uri(str(entry.about.get("sink") or ""))
    if sink is None or sink.scheme != "delta":
        return None
    folder = Path(str(entry.about.get("folder") or ".")) / sink.place
    return folder if (folder / DELTA_LOG).is_dir() else None


def _added_to(table: Path) -> Iterator[tuple[float, Path]]:
    """Return the files that commits added to a Delta table, newest first, without commits that only rewrite files."""
    for _, commit in _by_age((table / DELTA_LOG).glob("*.json")):
        for action in reversed(_last_lines(commit)):
            added = action.get("add")
            if isinstance(added, dict) and added.get("dataChange"):
                yield added["modificationTime"] / 1000, table / unquote(added["path"])


def _by_age(paths: Iterable[Path]) -> list[tuple[float, Path]]:
    """Files with the time of their last change, newest first; files may go meanwhile."""
    return sorted(_times(paths), reverse=True)


def _times(paths: Iterable[Path]) -> Iterator[tuple[float, Path]]:
    for path in paths:
        try:
            yield path.stat().st_mtime, path
        except OSError:
            continue


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def _last_rows(path: Path) -> list[Row]:
    """The last rows of a file of matches; of a large one those near its end, of what cannot be read none."""
    try:
        if path.suffix == ".jsonl":
            return _last_lines(path)
        return list(file_rows(path))[-KEPT:] if _size(path) <= MOST_BYTES else []
    except (OSError, ValueError, csv.Error, pa.ArrowException):
        return []


def _last_lines(path: Path) -> list[Row]:
    with path.open("rb") as file:
        skipped = max(0, _size(path) - MOST_BYTES)
        file.seek(skipped)
        lines = file.read(MOST_BYTES).splitlines()
    rows = (json.loads(line) for line in lines[1 if skipped else 0 :][-KEPT:])
    return [row for row in rows if isinstance(row, dict)]
