"""The runs on this machine by name: a folder for each, with what it runs, what it did, and its log.

The folder is private to the user. A run writes its own files; whoever lists, shows or stops runs only reads them and
sends a signal to the process that the run says it is, if that is still the same one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.errors import UsageError, did_you_mean
from weft.running.activity import Activity
from weft.runtime.watching.triggers import Trigger

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
KEPT_LINES = 3600  # of the history
LOG, OUTPUT = "log.txt", "output.txt"  # a line for each trigger; what else a run in the background says
GLANCE = 0.2


def runs_folder() -> Path:
    """Return the folder of registered runs: WEFT_RUNS, else in the user's state folder."""
    named = os.environ.get("WEFT_RUNS")
    if named:
        return Path(named)
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "weft" / "runs"


def check_name(name: str) -> str:
    """A name that is good for a folder."""
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a run: use letters, digits, `_`, `-` and `.`")
    return name


@dataclass(frozen=True)
class Entry:
    """A run that was registered: what it runs, and what it last said."""

    name: str
    folder: Path
    about: Mapping[str, Any]
    status: Mapping[str, Any]

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self.about.get("birth") is not None and birth(int(self.about["pid"])) == self.about["birth"]

    @property
    def state(self) -> str:
        """`running`, `ended`, or `died` if it ended unexpectedly."""
        if self.is_running:
            return "running"
        return "ended" if self.status.get("ended") else "died"

    @property
    def log(self) -> Path:
        """The path of its log."""
        return self.folder / LOG

    def history(self) -> list[dict[str, Any]]:
        """Return its last triggers."""
        return _lines(self.folder / "triggers.jsonl")[-KEPT_LINES:]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"name": self.name, "state": self.state, "about": dict(self.about), "status": dict(self.status)}


def birth(pid: int) -> str | None:
    """Return when a process was started, to distinguish it from a later one with the same number, or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
    found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def entries() -> list[Entry]:
    """Return all registered runs, by name."""
    folder = runs_folder()
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [found for name in names if NAME.fullmatch(name) and (found := _entry(folder / name)) is not None]


def entry(name: str) -> Entry:
    """A registered run."""
    found = _entry(runs_folder() / check_name(name))
    if found is None:
        known = [one.name for one in entries()]
        raise UsageError(f"there is no run called {name!r}; {did_you_mean(name, known) or '`weft list` shows them'}")
    return found


def _entry(folder: Path) -> Entry | None:
    about = _object(folder / "run.json")
    return None if about is None else Entry(folder.name, folder, about, _object(folder / "status.json") or {})


def stop(name: str, patience: float = 60.0) -> bool:
    """Ask a run to finish its trigger and end; whether it has ended in time."""
    found = entry(name)
    if not found.is_running:
        return True
    os.kill(int(found.about["pid"]), signal.SIGTERM)
    limit = time.monotonic() + patience
    while found.is_running and time.monotonic() < limit:
        time.sleep(GLANCE)
    return not found.is_running


def forget(name: str) -> None:
    """Remove what is registered of a run that has ended."""
    found = entry(name)
    if found.is_running:
        raise UsageError(f"{name} is running: stop it first")
    shutil.rmtree(found.folder)


class Registration:
    """A run's entry in the registry, updated while it is running."""

    def __init__(self, name: str, about: Mapping[str, object]) -> None:
        self.folder = runs_folder() / check_name(name)
        known = _entry(self.folder)
        if known is not None and known.is_running and int(known.about["pid"]) != os.getpid():
            raise UsageError(f"a run called {name!r} is running already: stop it, or choose another name")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.activity = Activity()
        mine = {"pid": os.getpid(), "birth": birth(os.getpid()), "started": self.activity.started}
        (self.folder / "triggers.jsonl").write_text("", encoding="utf-8")
        _write(self.folder / "status.json", {})
        _write(self.folder / "run.json", {**about, **mine})
        self._about = {**about, **mine}
        self._written = 0

    def tell(self, **more: object) -> None:
        """Add to what is known of the run."""
        self._about = {**self._about, **more}
        _write(self.folder / "run.json", self._about)

    def add(self, trigger: Trigger) -> None:
        """Record a trigger."""
        self.activity.add(trigger)
        path = self.folder / "triggers.jsonl"
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(trigger.to_json()) + "\n")
        self._written += 1
        if self._written > 2 * KEPT_LINES:
            kept = path.read_text(encoding="utf-8").splitlines(keepends=True)[-KEPT_LINES:]
            _replace(path, "".join(kept))
            self._written = len(kept)
        _write(self.folder / "status.json", self.activity.summary())

    def end(self, problem: str | None = None) -> None:
        """The run has ended, by itself or by a problem."""
        _write(self.folder / "status.json", {**self.activity.summary(), "ended": time.time(), "problem": problem})


def restart(name: str) -> Entry:
    """Start a run that has ended again, with its original command: it resumes where it stopped."""
    found = entry(name)
    command = [argument for argument in found.about.get("command", ()) if argument != "--detach"]
    if not command:
        raise UsageError(f"it is not known how {name} was started: use `weft run` as before")
    return detach(name, command, folder=found.about.get("folder"))


def detach(name: str, arguments: Sequence[str], patience: float = 90.0, folder: str | None = None) -> Entry:
    """Start `weft` with arguments in a separate process, and wait until it is registered."""
    own = runs_folder() / check_name(name)
    known = _entry(own)
    if known is not None and known.is_running:
        raise UsageError(f"a run called {name!r} is running already: stop it, or choose another name")
    own.mkdir(parents=True, exist_ok=True, mode=0o700)
    (own / "run.json").unlink(missing_ok=True)
    with (own / OUTPUT).open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "weft", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=folder,
        )
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        found = _entry(own)
        if found is not None and found.about.get("pid") == process.pid:
            return found
        if process.poll() is not None:
            raise UsageError(f"{name} did not start: {_last_lines(own / OUTPUT)}")
        time.sleep(GLANCE)
    process.terminate()
    raise UsageError(f"{name} did not start within {patience:.0f} seconds: see {own / OUTPUT}")


def _last_lines(path: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])


def _object(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        texts = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for text in texts:
        try:
            found.append(json.loads(text))
        except ValueError:  # the last line is being written
            continue
    return found


def _write(path: Path, data: Mapping[str, object]) -> None:
    _replace(path, json.dumps(data))


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
