"""`weft run` over files that are written while it runs: killed, and begun again by a process that is ready for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.chaos.killing import Kill, Process, Sign, await_end, await_sign, below, end_all, end_one
from tests.spark.standalone import SOURCE, environment

PER_FILE = 40
PER_KILL = 2  # files: one is being read, one is next
PATIENCE = 40.0  # seconds for a sign to come
TRIES = 3  # signs that a kill waits for, if there is no such process when they come
OPTIONS = ["--source", "in=in", "--sink", "out", "--checkpoint", "state", "--delay", "9"]
SHARES = ["--lanes", "2", "--partitions", "2"]  # few tasks to a trigger
TRACE = "Traceback (most recent"
ENDS = (0, 1, 2, -signal.SIGKILL, -signal.SIGTERM)
PACE = ["--files-per-trigger", "1", "--every", "50 milliseconds"]


class Death(NamedTuple):
    """Which process was killed, how long its sign took to come, and how long it took until all was over."""

    process: int
    awaited: float
    ending: float


class Lives:
    """The processes of a run, one after the other, and the events that they were given."""

    def __init__(self, folder: Path, master: str, programs: Sequence[str], chance: Random) -> None:
        self.events: list[dict[str, object]] = []
        self._folder, self._master, self._programs, self._chance = folder, master, programs, chance
        self._files = 0
        self._codes: list[int] = []
        self._now: subprocess.Popen[bytes] | None = None
        self._next: subprocess.Popen[bytes] | None = None
        self._ready: subprocess.Popen[bytes] | None = None  # the last one that said so
        (folder / "in").mkdir(parents=True)

    def feed(self) -> None:
        """Write another file of events, which appears when it is whole."""
        chance = self._chance
        part: list[dict[str, object]] = [
            {"type": chance.choice("AABC"), "ts": 3 * n + chance.randrange(9), "k": "uvw"[n % 3], "x": n * 5 % 8}
            for n in range(self._files * PER_FILE, (self._files + 1) * PER_FILE)
        ]
        path = self._folder / "in" / f".{self._files:04d}.jsonl"
        path.write_text("".join(json.dumps(event) + "\n" for event in part))
        os.utime(path, (1000 + self._files, 1000 + self._files))
        path.rename(path.with_name(path.name[1:]))
        self._files += 1
        self.events += part

    def suffer(self, kill: Kill, limit: float) -> Death | None:
        """Let a kill happen while events come; None if nobody was there or time was over."""
        began = time.monotonic()
        for _ in range(TRIES):
            sign = Sign(self._folder, kill.place)
            for _ in range(PER_KILL):
                self.feed()
            process = self._living()
            own = below(process.pid)
            until = min(limit, time.monotonic() + PATIENCE)
            if not await_sign(
                sign, kill.after, lambda own=process, end=until: own.poll() is None and time.monotonic() < end
            ):
                continue
            came = time.monotonic()
            victim = self._end(kill.victim, process, own)
            if victim is not None:
                return Death(victim, came - began, time.monotonic() - came)
        return None

    def _end(self, victim: str, process: subprocess.Popen[bytes], own: Sequence[Process]) -> int | None:
        """End one process of a kind; `own` were those below the driver a while ago: to look again takes time."""
        if victim == "driver":
            chosen = [process.pid]
        elif victim == "jvm":
            chosen = [one.id for one in own if one.kind == victim]
        elif self._master.startswith("local"):
            chosen = [one.id for one in below(process.pid) if one.kind == victim]
        else:  # below the workers of the cluster
            apart = {one.id for root in (process, self._next) if root is not None for one in below(root.pid)}
            chosen = [one.id for one in below(os.getpid()) if one.kind == victim and one.id not in apart]
        killed = end_one(chosen, self._chance)
        if killed is not None and victim in ("driver", "jvm"):
            self._await_end(process, own)
        return killed

    def _await_end(self, process: subprocess.Popen[bytes], own: Sequence[Process]) -> None:
        """Wait until a process has ended, and all that it had started."""
        process.wait(120)
        assert await_end([one.id for one in own], 60), "processes of a run that has ended live on"

    def _living(self) -> subprocess.Popen[bytes]:
        """The process that runs, begun if the last one has ended; then another one gets ready."""
        if self._now is None or self._now.poll() is not None:
            self._look_back()
            self._now = self._begun("--until", "stopped")
            self._next = self._started()
        return self._now

    def stop(self) -> None:
        """End the process that runs, as a user does."""
        if self._now is not None and self._now.poll() is None:
            own = below(self._now.pid)
            self._now.send_signal(signal.SIGTERM)
            self._await_end(self._now, own)

    def finish(self, patience: float = 240) -> None:
        """Let all that is there be read, in peace, and the stream end."""
        self.stop()
        self._look_back()
        self._now = self._begun("--until", "complete")
        code = self._now.wait(patience)
        assert code == 0, self.told[-3000:]

    def _begun(self, *more: str) -> subprocess.Popen[bytes]:
        process, self._next = self.prepared(), None
        assert process.stdin is not None
        process.stdin.write(json.dumps(["run", *self._programs, *OPTIONS, *SHARES, *PACE, *more]).encode() + b"\n")
        process.stdin.close()
        return process

    def prepared(self) -> subprocess.Popen[bytes]:
        """A process that is ready to run."""
        if self._next is None:
            self._next = self._started()
        if self._ready is not self._next:
            assert self._next.stdout is not None
            assert self._next.stdout.readline() == b"ready\n", self.told[-3000:]
            self._ready = self._next
        return self._next

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-W", "ignore", "-m", "tests.chaos.killed_run", self._master]
        with (self._folder / "told").open("ab") as told:
            return subprocess.Popen(
                command,
                cwd=self._folder,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
            )

    def _environment(self) -> dict[str, str]:
        """The environment of the processes."""
        env = environment()
        del env["SPARK_CONF_DIR"]  # so that Java takes the classes which `weft warm` has kept
        env["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(Path(__file__).parents[2])])
        return env

    @property
    def told(self) -> str:
        """What the processes said."""
        place = self._folder / "told"
        return place.read_text(errors="replace") if place.exists() else ""

    def _look_back(self) -> None:
        """Keep how the last process ended."""
        if self._now is not None:
            self._codes.append(self._now.returncode)

    def complaints(self) -> list[str]:
        """What is wrong with what the processes said and how they ended: whoever is killed, they end in sentences."""
        said = self.told
        traces = [f"a stack trace: {said[said.index(TRACE) :][:3000]}"] if TRACE in said else []
        return traces + [f"a process ended with {code}" for code in self._codes if code not in ENDS]

    def end(self) -> None:
        """End what is left."""
        for process in (self._now, self._next):
            if process is not None:
                end_all(process.pid)
                process.wait()
