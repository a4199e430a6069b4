"""Ownership of a checkpoint: one process writes to it, and another can replace it only when it is gone.

`weft/owner.json` names the host, the process and an epoch, which grows with every owner. An owner touches the
file every few seconds as a heartbeat. An owner that finds another epoch there has been replaced, and stops writing.
Processes on the same host are checked directly, with the Java process that works for them; remote ones are considered
gone after a minute of silence.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from weft.errors import UsageError

BEAT = 5.0  # seconds between two signs of life
JAVA_ENDS, LOOK = 30.0, 0.05  # seconds that Java may live on without its owner; between two looks at it
SILENT = 60.0  # seconds after which the owner on another host is taken to be gone
_PROCESSES = Path("/proc")


@dataclass(frozen=True)
class Owner:
    """A process that writes to a checkpoint, or did."""

    host: str
    pid: int
    born: str  # tells it apart from a later process of the same number
    epoch: int
    released: bool = False
    java: tuple[int, str] | None = None  # the same of the Java process that works for it

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, a process of this host."""
        return self.host == this_host()

    @property
    def is_gone(self) -> bool:
        """Whether a process of this host has ended."""
        return _born(self.pid) != self.born

    @property
    def is_java_gone(self) -> bool:
        """Whether its Java process has ended, which may go on for a while without it."""
        return self.java is None or _born(self.java[0]) != self.java[1]


def this_host() -> str:
    """This host, and in it the processes that can see each other by number."""
    space = ""
    with suppress(OSError):
        space = f"/{(_PROCESSES / 'self' / 'ns' / 'pid').readlink()}"
    return socket.gethostname() + space


def _born(pid: int) -> str | None:
    """What tells a process apart from later ones of its number, or None."""
    try:
        text = (_PROCESSES / str(pid) / "stat").read_text()
    except OSError:
        if _PROCESSES.is_dir():
            return None
        return _alive(pid)
    state, *rest = text.rpartition(")")[2].split()
    return None if state in "ZX" else rest[18]  # a zombie has ended


def _alive(pid: int) -> str | None:
    """The same where processes are not files."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return "alive"


class Ownership:
    """The right of this process to write to a checkpoint."""

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = checkpoint
        self._path = Path(checkpoint).absolute() / "weft" / "owner.json"
        self._mine: Owner | None = None
        self._ended = threading.Event()

    @property
    def epoch(self) -> int | None:
        """The number of this owner, or None if it is not the owner."""
        return None if self._mine is None else self._mine.epoch

    def acquire(self) -> None:
        """Become the owner; refuse if another process is active."""
        if self._mine is not None:
            return
        before = read_owner(self._path)
        if before is not None and not before.released:
            self._check_gone(before)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            mine = self._claimed(before)
        except OSError as error:
            raise self._unwritable(error) from None
        self._mine, self._ended = mine, threading.Event()
        threading.Thread(target=self._beat, args=(mine, self._ended), name="weft owner", daemon=True).start()

    def _unwritable(self, error: OSError) -> UsageError:
        return UsageError(
            f"cannot write to the checkpoint {self._checkpoint} ({error.strerror}): make room there, or see to it "
            "that it is a folder this process may write to, and start the run again; nothing in it is damaged"
        )

    def _claimed(self, before: Owner | None) -> Owner:
        """Take an epoch above all before; of several processes that do so at once, the first is the owner."""
        last = 0 if before is None else before.epoch
        epochs = [last]
        for claim, epoch in self._claims():
            if epoch > last:  # of an owner whose note was lost, or of one that has not written its note
                self._check_abandoned(claim)
            epochs.append(epoch)
        mine = Owner(this_host(), os.getpid(), _born(os.getpid()) or "", 1 + max(epochs))
        claim = self._path.with_name(f"owner-{mine.epoch}.claim")
        try:
            with claim.open("x", encoding="utf-8") as file:
                file.write(_text_of(mine))
            now = read_owner(self._path)
            if now is not None and now.epoch >= mine.epoch:  # this one was slow, and its epoch is over
                raise FileExistsError
            self._write(mine)
        except FileExistsError:
            raise self._taken_now() from None
        except OSError:
            claim.unlink(missing_ok=True)
            raise
        for old, epoch in self._claims():
            if epoch < mine.epoch:
                old.unlink(missing_ok=True)
        return mine

    def _claims(self) -> list[tuple[Path, int]]:
        """The claims that are there, with their epochs."""
        found = ((path, path.stem.rpartition("-")[2]) for path in self._path.parent.glob("owner-*.claim"))
        return [(path, int(number)) for path, number in found if number.isdigit()]

    def _check_abandoned(self, claim: Path) -> None:
        """Refuse while the process that made a claim may still become the owner, or is it."""
        claimer = read_owner(claim)
        if claimer is not None and claimer.is_here:
            self._check_gone(claimer)
        elif abs(self._now() - claim.stat().st_mtime) < SILENT:  # one of the future: the clock was set back
            raise self._taken_now()

    def _taken_now(self) -> UsageError:
        return UsageError(
            f"the checkpoint {self._checkpoint} is being taken by another run at this moment: wait for that one, or "
            "use another checkpoint"
        )

    def check(self) -> None:
        """Refuse to go on if another has taken over."""
        if self._mine is None:
            return
        now = read_owner(self._path)
        if now is not None and (now.epoch, now.pid, now.host) != (self._mine.epoch, self._mine.pid, self._mine.host):
            raise UsageError(
                f"the checkpoint {self._checkpoint} was taken over by {_named(now)}: this run (epoch "
                f"{self._mine.epoch}) writes nothing more"
            )

    def release(self) -> None:
        """Be the owner no more."""
        mine, self._mine = self._mine, None
        self._ended.set()
        if mine is not None and read_owner(self._path) == mine:
            with suppress(OSError):
                self._write(replace(mine, released=True))

    def name_java(self, pid: int | None) -> None:
        """Note the Java process that works for this owner: nobody takes over before it has ended, too."""
        born = None if pid is None else _born(pid)
        if self._mine is not None and pid is not None and born is not None:
            mine = replace(self._mine, java=(pid, born))
            try:
                self._write(mine)
            except OSError as error:
                raise self._unwritable(error) from None
            self._mine = mine

    def _check_gone(self, owner: Owner) -> None:
        if owner.is_here:
            if owner.pid == os.getpid():
                return
            if not owner.is_gone:
                raise UsageError(
                    f"the checkpoint {self._checkpoint} is in use by {_named(owner)}: stop that run first, or use "
                    "another checkpoint and another sink"
                )
            self._await_java(owner)
            return
        silent = self._now() - self._path.stat().st_mtime
        if abs(silent) < SILENT:  # one that is alive touches the file by the clock as it is now
            raise UsageError(
                f"the checkpoint {self._checkpoint} is in use by {_named(owner)}, which gave a sign of life "
                f"{max(0.0, silent):.0f} s ago: stop that run first; when it is gone, wait {SILENT:.0f} s"
            )

    def _await_java(self, owner: Owner) -> None:
        """Wait for the end of the Java process of an owner that has ended: it may be about to commit a trigger."""
        limit = time.monotonic() + JAVA_ENDS
        while not owner.is_java_gone:
            if time.monotonic() > limit:
                assert owner.java is not None
                raise UsageError(
                    f"the checkpoint {self._checkpoint} is in use by the Java process {owner.java[0]} of a run that "
                    "has ended: end that process first, or use another checkpoint and another sink"
                )
            time.sleep(LOOK)

    def _now(self) -> float:
        """The time by the clock of the file system, which all hosts share."""
        probe = self._path.with_name(f".now-{os.getpid()}")
        probe.write_bytes(b"")
        try:
            return probe.stat().st_mtime
        finally:
            probe.unlink(missing_ok=True)

    def _write(self, owner: Owner) -> None:
        hidden = self._path.with_name(f".owner-{os.getpid()}.json")
        hidden.write_text(_text_of(owner))
        hidden.replace(self._path)

    def _beat(self, mine: Owner, ended: threading.Event) -> None:
        while not ended.wait(BEAT):
            if read_owner(self._path) not in (mine, None):  # None: it cannot be read at this moment
                return
            with suppress(OSError):
                os.utime(self._path)


def _text_of(owner: Owner) -> str:
    return json.dumps(asdict(owner))


def read_owner(path: Path) -> Owner | None:
    """The owner that a file names, or None if there is none, or what there is cannot be read."""
    try:
        given = json.loads(path.read_text())
        java = given.pop("java", None)
        return Owner(**given, java=None if java is None else (java[0], java[1]))
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        return None


def _named(owner: Owner) -> str:
    here = "this host" if owner.is_here else owner.host.partition("/")[0]
    return f"process {owner.pid} on {here} (epoch {owner.epoch})"


def free_bytes(folder: str) -> int | None:
    """How many bytes can be written to a folder, or None if it is not known."""
    path = Path(folder).absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        found = os.statvfs(path)
    except (OSError, AttributeError):
        return None
    return found.f_bavail * found.f_frsize
