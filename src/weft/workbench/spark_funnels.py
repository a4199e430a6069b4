"""How far partial matches come in a run on Spark: as it counts them, or else over the newest events of its sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.algebra.prefixes import funnels_of
from weft.api import compile, merge_programs
from weft.errors import UsageError
from weft.reasons import funnel
from weft.running.program_files import ProgramFiles
from weft.running.registry import Entry
from weft.workbench.event_files import drawn

Funnels = dict[str, list[tuple[str, int]]]
NEWEST = 10_000  # events that are counted at most
MOST_BYTES = 8_000_000  # of files that are read for them


def counted_funnels(entry: Entry) -> Funnels:
    """By query: its steps, and how many partial matches reached each since the run started; nothing if none counts."""
    found = {name: own["matches"] for name, own in (entry.status.get("queries") or {}).items()}
    return funnels_of(entry.about.get("steps") or {}, {**found, **(entry.status.get("steps") or {})})


def newest_funnels(entry: Entry) -> Funnels:
    """By query: its steps, and how many partial matches of the newest events reached each."""
    base = Path(str(entry.about.get("folder") or "."))
    given = ProgramFiles([str(base / str(path)) for path in entry.about.get("programs", ())])
    programs = [Path(path) for path in given.paths()]
    if not programs or not all(path.is_file() for path in programs):
        raise UsageError(f"the programs of {entry.name} are not files that are still there")
    rows: list[dict[str, Any]] = []
    for source in entry.about.get("sources", ()):
        stream, _, folder = str(source).rpartition("=")
        rows += [{"stream": stream, **row} if stream else row for row in _newest(base / folder.removeprefix("file://"))]
    if not rows:
        raise UsageError(f"the sources of {entry.name} hold no events that can be read here")
    program = merge_programs([compile(path) for path in programs])
    return funnel(rows, program, time=str(entry.about.get("time", "ts")), type=str(entry.about.get("type", "type")))


def _newest(folder: Path) -> list[dict[str, Any]]:
    """The newest events of a folder, as far as they are few; oldest first."""
    files = sorted((path for path in folder.glob("*") if path.is_file()), key=lambda path: path.stat().st_mtime)
    rows: list[dict[str, Any]] = []
    read = 0
    for path in reversed(files):
        read += path.stat().st_size
        if read > MOST_BYTES or len(rows) >= NEWEST:
            break
        rows = [*drawn(path, 0, NEWEST), *rows]
    return rows[-NEWEST:]
