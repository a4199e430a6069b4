"""Seeded kills of the processes of a run on Spark: which of them dies, and while what is written.

A kill waits until something new lies in a folder that the run writes (the log of offsets, the state, the sink, the log
of commits), lets a few moments pass, and ends one process. Linux only: processes are found in /proc.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

PLACES = {
    "offsets": "state/spark/offsets",
    "state": "state/weft/lanes",
    "sink": "out",
    "commit": "state/spark/commits",
}
VICTIMS = ("driver", "jvm", "worker", "executor")
MASTERS = ("local", "cluster")
GLANCE = 0.001  # seconds between two looks at a folder
LONGEST = 0.06  # seconds from the sign to the kill, at most


@dataclass(frozen=True)
class Kill:
    """Who dies, where the run is then, on which master it runs, and how long after the sign it happens."""

    victim: str
    place: str
    master: str
    after: float


def kills(seed: int, number: int) -> list[Kill]:
    """So many kills: every victim at every place in turn, in an order and at moments that the seed chooses.

    Only a cluster has executors; other victims take turns on both masters.
    """
    chance = Random(seed)
    chosen: list[Kill] = []
    for turn in count(seed):
        pairs = [(victim, place) for victim in range(len(VICTIMS)) for place in range(len(PLACES))]
        chance.shuffle(pairs)
        for victim, place in pairs:
            if len(chosen) == number:
                return chosen
            master = "cluster" if VICTIMS[victim] == "executor" else MASTERS[(turn + victim + place) % 2]
            chosen.append(Kill(VICTIMS[victim], tuple(PLACES)[place], master, chance.uniform(0, LONGEST)))
    raise AssertionError


def table(planned: Iterable[Kill], done: Iterable[Kill]) -> str:
    """For each victim and place how many kills were done, and how many were planned and not reached."""
    wanted, reached = (Counter((kill.victim, kill.place) for kill in some) for some in (planned, done))
    lines = [["done/not reached", *PLACES]]
    for victim in VICTIMS:
        cells = [(victim, place) for place in PLACES]
        lines.append([victim, *(f"{reached[cell]}/{wanted[cell] - reached[cell]}" for cell in cells)])
    return "\n".join("".join(word.ljust(18 if at == 0 else 9) for at, word in enumerate(line)) for line in lines)


class Sign:
    """Something new in a folder that a run writes, since this was made. Folders are looked at before files are."""

    def __init__(self, folder: Path, place: str) -> None:
        self._folder = folder / PLACES[place]
        self._word = "matches-" if place == "sink" else ""  # the sink's other files are written when a run begins
        self._before, self._times = self._look()

    def has_come(self) -> bool:
        """Whether a file is there that was not."""
        if all(_changed(folder) == when for folder, when in self._times.items()):
            return False
        files, self._times = self._look()
        return not files <= self._before

    def _look(self) -> tuple[set[tuple[str, int]], dict[str, int]]:
        """Files below the folder, by path and inode, and when it and those inside were changed."""
        files, times, waiting = set(), {}, [str(self._folder)]
        while waiting:
            folder = waiting.pop()
            times[folder] = _changed(folder)
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir():
                            waiting.append(entry.path)
                        elif self._word in entry.name:
                            files.add((entry.path, entry.inode()))
            except FileNotFoundError:  # not there yet, or not any more
                continue
        return files, times


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except FileNotFoundError:
        return 0


def await_sign(sign: Sign, after: float, goes_on: Callable[[], bool]) -> bool:
    """Wait for it, and a few moments more; whether it came."""
    while not sign.has_come():
        if not goes_on():
            return False
        time.sleep(GLANCE)
    time.sleep(after)
    return True


@dataclass(frozen=True)
class Process:
    """A process below ours."""

    id: int
    parent: int
    command: str

    @property
    def kind(self) -> str | None:
        """What it is to a run: a victim's name."""
        is_java = self.command.partition(" ")[0].endswith("java")
        if is_java and "CoarseGrainedExecutorBackend" in self.command:
            return "executor"
        if is_java and "org.apache.spark.deploy.SparkSubmit" in self.command:
            return "jvm"
        return "worker" if not is_java and "weft.runtime.spark.daemon" in self.command else None


def processes() -> Iterator[Process]:
    """All that can be seen."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has ended meanwhile
                continue
            yield Process(int(folder.name), parent, command)


def below(ancestor: int) -> list[Process]:
    """The descendants of a process, parents first."""
    children: dict[int, list[Process]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process)
    found = list(children.get(ancestor, ()))
    for process in found:  # which grows meanwhile
        found.extend(children.get(process.id, ()))
    return found


def end_one(chosen: Sequence[int], chance: Random) -> int | None:
    """End one of these processes, at once; its id, or None if there is none at this moment."""
    left = list(chosen)
    while left:
        victim = left.pop(chance.randrange(len(left)))
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
        return victim
    return None


def end_all(root: int) -> None:
    """End what is left below a process, and itself."""
    for process in [*reversed([own.id for own in below(root)]), root]:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def await_end(gone: Collection[int], seconds: float) -> bool:
    """Wait until none of these processes is left, that long at most; whether that is so."""
    limit = time.monotonic() + seconds
    while any(_lives(process) for process in gone):
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
