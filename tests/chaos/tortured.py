"""A run that suffers more than kills: each trouble is a method, and counted."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.chaos import lives as life
from tests.chaos.killing import Kill, Process, below
from tests.chaos.lives import Lives
from tests.chaos.test_spark_kills import PROGRAMS
from tests.chaos.torture_feed import PER_STRETCH, Feed

REFUSED = "in use by process"
DAMAGED = re.compile(r"(?<!not )(?<!in it is )\bdamaged\b|belongs to another program|start with a new checkpoint")
GOES_ON = "it goes on where it was"  # what a run says that could not go on for now
STARTS = 4  # of the last process, each of which may be interrupted more often than it tries again: the machine is slow
AGAIN = "again"  # the query over files that are written while they are read
RULES = {
    **PROGRAMS,
    f"{AGAIN}.ceql": "SELECT * WHERE W AS a ; W AS b FILTER a[x] < b[x] PARTITION BY [k] WITHIN 4 MILLISECONDS",
}
GUEST = "SELECT * WHERE A AS a ; C AS c FILTER a[k] = c[k] WITHIN {} MILLISECONDS"
MISTAKE = "SELECT * WHERE A ; ; FILTER"
ROUND = 120_000  # ticks: windows of all lengths begin there
CLOCKS = (-3 * 86_400, -3_600, 0, 7_200, 10 * 86_400)  # seconds by which it is off
SMALL_DISK = "160m"


@contextmanager
def disks(folder: Path) -> Iterator[bool]:
    """Small disks for the checkpoint and the sink, where they can be mounted; whether they are."""
    places = [folder / name for name in ("state", "out")]
    mounted: list[Path] = []
    try:
        for place in places:
            place.mkdir()
            command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(place)]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                mounted.append(place)
        yield len(mounted) == len(places)
    finally:
        for place in mounted:
            subprocess.run(["umount", "-l", str(place)], check=False)


class Tortured(Lives):
    """A run with its troubles; `masters` are those that its processes have by chance."""

    def __init__(self, folder: Path, chance: Random, masters: Sequence[str]) -> None:
        super().__init__(folder, masters[0], ("rules",), chance)
        self.feeder = Feed(folder / "in", chance, int(time.time() * 1000) // ROUND * ROUND)
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.guests: list[Path] = []  # queries that come and go
        self.last_stretch = 0
        self._masters, self._ones = masters, dict[int, str]()
        for name in ("rules", "guests", "disturbed"):
            (folder / name).mkdir()
        for name, text in RULES.items():
            (folder / "rules" / name).write_text(text)
        self.change_program()

    @property
    def troubles(self) -> list[Callable[[], None]]:
        """All but kills, and what comes with the events."""
        own = [
            self.intrude,
            self.reshare,
            self.change_program,
            self.mistake,
            self.jump,
            self.slow,
            self.hang,
            self.fill,
        ]
        return [*own, self._vanish, self._rewrite]

    def begin(self) -> None:
        """Let a first trigger end in peace: from then on a run knows how late it is."""
        self.prepared()
        self.feed()
        self._await(lambda: any((self._folder / "state" / "spark" / "commits").glob("[0-9]*")), 240)

    def finish_in_peace(self) -> None:
        """Let all end: the last process reads a stretch that no other has seen."""
        self.stop()
        for name in ("clock", "slow"):
            (self._folder / "disturbed" / name).unlink(missing_ok=True)
        self.feeder.skip()
        self.last_stretch = self.feeder.stretch(self.feeder.files)
        for _ in range(PER_STRETCH):
            self.feed()
        life.PACE[1] = "20"
        for attempt in range(STARTS):
            told = len(self.told)
            try:
                self.finish(1200)
                return
            except AssertionError:
                if attempt == STARTS - 1 or GOES_ON not in self.told[told:]:
                    raise
                self.done["starts anew at the end"] += 1

    def possible(self, kill: Kill) -> Kill:
        """A kill of a process that there is: a worker where there are no executors."""
        process = self._living()
        if kill.victim == "executor" and self._ones[process.pid].startswith("local"):
            return replace(kill, victim="worker")
        return kill

    def feed(self) -> None:
        """Write another file of events."""
        self.done.update(self.feeder.write())

    def complaints(self) -> list[str]:
        """What is wrong with what was said; nothing was damaged."""
        said = [line for line in self.told.splitlines() if DAMAGED.search(line)]
        return [*super().complaints(), *(f"a good checkpoint is refused: {line[:300]}" for line in said[:3])]

    def note(self, what: str) -> None:
        """Write down what happens, where the processes say what they say."""
        with (self._folder / "told").open("a") as told:
            told.write(f"{time.strftime('%H:%M:%S')} [{what}]\n")

    # -- troubles -------------------------------------------------------------------------------

    def intrude(self) -> None:
        """Start a second run on the same checkpoint, which must be refused."""
        command = [sys.executable, "-W", "ignore", "-m", "weft", "run", "rules", *life.OPTIONS, "--until", "read"]
        if not self._lives():
            return
        before = self._now
        found = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=600, check=False)
        self.done["second runs"] += 1
        is_refused = found.returncode != 0 and REFUSED in found.stderr + found.stdout
        if before is self._now and self._lives() and not is_refused:
            self.wrong.append(f"a second run was not refused: {found.returncode} {found.stderr[-500:]}")

    def reshare(self) -> None:
        """Let the next process have another number of lanes."""
        life.SHARES[:] = ["--lanes", str(self._chance.choice([1, 2, 3])), "--partitions", "2"]
        self.done["other lanes"] += 1

    def change_program(self) -> None:
        """Put another query in the place of the last guest."""
        name = f"guest{len(self.guests)}.ceql"
        text = GUEST.format(self._chance.randrange(20, 90))
        place = self._folder / "guests" / name
        place.write_text(text)
        hidden = self._folder / "rules" / f".{name}"
        hidden.write_text(text)
        hidden.rename(hidden.with_name(name))
        if self.guests:
            (self._folder / "rules" / self.guests[-1].name).unlink()
        self.guests.append(place)
        self.done["other programs"] += 1

    def mistake(self) -> None:
        """Put a program with a mistake among the others for a while: the run tells of it and goes on."""
        was, told = self._lives(), len(self.told)
        place = self._folder / "rules" / "mistaken.ceql"
        hidden = place.with_name(".mistaken.ceql")
        hidden.write_text(MISTAKE)
        hidden.rename(place)
        told_of_it = self._await(lambda: "mistaken.ceql" in self.told[told:], 15)
        place.unlink()
        self.done["mistakes that were told" if told_of_it else "mistakes that nobody looked at"] += 1
        if was and told_of_it and not self._lives():
            self.wrong.append(f"a program with a mistake ended the run: {self.told[-500:]}")

    def jump(self) -> None:
        """Set the clock of all Python processes."""
        (self._folder / "disturbed" / "clock").write_text(str(self._chance.choice(CLOCKS)))
        self.done["jumps of the clock"] += 1

    def slow(self) -> None:
        """Let files of the sink take their time, or not."""
        (self._folder / "disturbed" / "slow").write_text(self._chance.choice(["0", "0.3", "1.5"]))
        self.done["slow sinks"] += 1

    def hang(self) -> None:
        """Let one process stand still for a while."""
        if self._now is None or not self._lives():
            return
        own = [one.id for one in below(self._now.pid) if one.kind is not None]
        victim = self._chance.choice([self._now.pid, *own])
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGSTOP)
            time.sleep(self._chance.uniform(0.5, 4))
            os.kill(victim, signal.SIGCONT)
            self.done["processes that hung"] += 1

    def fill(self) -> None:
        """Fill the disk of the checkpoint or of the sink until the run has ended, or for a while."""
        place = self._folder / self._chance.choice(["state", "out"])
        ballast = place / ".ballast"
        try:
            with ballast.open("wb") as file:
                while True:
                    file.write(b"x" * (1 << 16))
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
        self.feed()
        self._await(lambda: not self._lives(), 20)
        ballast.unlink()
        self.done[f"full disks of the {'checkpoint' if place.name == 'state' else 'sink'}"] += 1

    def _vanish(self) -> None:
        self.feeder.vanish()
        self.done["vanished files"] += 1

    def _rewrite(self) -> None:
        self.feeder.rewrite()
        self.done["files written while they are read"] += 1

    # -- processes ------------------------------------------------------------------------------

    def _lives(self) -> bool:
        return self._now is not None and self._now.poll() is None

    def _await(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait for something, with a process that runs if need be; whether it came."""
        limit = time.monotonic() + seconds
        if self._now is None:
            self._living()
        while not is_so():
            if time.monotonic() > limit:
                return False
            time.sleep(0.05)
        return True

    def _begun(self, *more: str) -> subprocess.Popen[bytes]:
        return super()._begun(*more, *(["--watch"] if "stopped" in more else []))

    def _started(self) -> subprocess.Popen[bytes]:
        self._master = self._chance.choice(self._masters)
        process = super()._started()
        self._ones[process.pid] = self._master
        self.done["processes in a cluster" if self._master.startswith("spark") else "processes here"] += 1
        return process

    def _end(self, victim: str, process: subprocess.Popen[bytes], own: Sequence[Process]) -> int | None:
        self._master = self._ones[process.pid]
        return super()._end(victim, process, own)

    def _environment(self) -> dict[str, str]:
        env = super()._environment()
        disturbed = Path(__file__).parent / "disturbed"
        more = {"PYTHONPATH": os.pathsep.join([str(disturbed), env["PYTHONPATH"]])}
        return {**env, **more, "WEFT_DISTURBED": str(self._folder / "disturbed")}
