"""Another program for a run that watches its files: put where it is read, and taken back if the run refuses it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from weft.errors import UsageError
from weft.running import registry
from weft.running.program_files import ProgramFiles
from weft.running.registry import GLANCE, Entry

CHANGE_TIMEOUT_S = 45.0  # seconds: the trigger in progress ends first


@dataclass(frozen=True)
class ProgramChange:
    """The result of changing the program of a run: when (seconds since 1970), what queries keep, or the error."""

    at: float
    told: str
    queries: list[str] = field(default_factory=list)
    refused: bool = False


def last_change(entry: Entry) -> ProgramChange | None:
    """The last that a run told of."""
    told = entry.about.get("change")
    return None if told is None else ProgramChange(**told)


def change(name: str, file: str, text: str, patience: float = CHANGE_TIMEOUT_S) -> ProgramChange | None:
    """Replace the program of a run by `file`; return None if the run is still busy and will apply it after its trigger.

    When the run refuses it, the file is restored, and the run's message is raised.
    """
    entry = registry.entry(name)
    old, new = _places(entry, file)
    before = old.read_text(encoding="utf-8")
    since = time.time()
    _put(old, new, text)
    if old != new:
        since = time.time()  # what the run saw before was neither of them
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        entry = registry.entry(name)
        found = last_change(entry)
        if found is not None and found.at >= since:
            if found.refused:
                _put(new, old, before)
                raise UsageError(f"{name} keeps running the previous program: {found.told}")
            return found
        if not entry.is_running:
            raise UsageError(f"{name} has ended: {entry.status.get('problem') or 'start it once more'}")
        time.sleep(GLANCE)
    return None


def _places(entry: Entry, file: str) -> tuple[Path, Path]:
    """The file that a program takes the place of, and where it is to be."""
    watched = [str(path) for path in entry.about.get("watched", ())]
    if not entry.is_running:
        raise UsageError(f"{entry.name} has ended: start it once more, and change it then")
    if not watched:
        raise UsageError(
            f"{entry.name} does not watch its program, so it cannot be changed while it runs: "
            "stop it, and start it with `weft run … --watch`"
        )
    files = [Path(path) for path in ProgramFiles(watched).paths()]
    same = [path for path in files if path.name == file]
    if len(same) != 1 and len(files) != 1:
        names = ", ".join(path.name for path in files)
        raise UsageError(f"{entry.name} runs several programs ({names}): give one that is called like one of them")
    old = (same or files)[0]
    if str(old) not in watched:  # it is in a folder, where files may come and go
        return old, old.with_name(file)
    if old.suffix != Path(file).suffix:
        raise UsageError(f"{entry.name} watches the file {old.name}, so another program must be in its language")
    return old, old


def _put(old: Path, new: Path, text: str) -> None:
    """Replace a file atomically. A file that it replaces is removed first, so that both never run."""
    unfinished = new.with_name(f".{new.name}.unfinished")
    try:
        unfinished.write_text(text, encoding="utf-8")
        if old != new:
            old.unlink()
        unfinished.replace(new)
    except OSError as problem:
        raise UsageError(f"cannot write {new}: {problem.strerror}") from None
