"""Seeded kills of the processes of a run on Spark: which of them dies, and while what is written.

A kill waits until something new lies in a folder that the run writes (the log of offsets, the state, the sink, the log
of commits), lets a few moments pass, and ends one process. Linux only: processes are found in /proc.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random

PLACES = {
    "offsets": "state/spark/offsets",
    "state": "state/spark/state",
    "sink": "out",
    "commit": "state/spark/commits",
}
GLANCE = 0.001  # seconds between two looks at a folder
LONGEST = 0.06  # seconds from the sign to the kill, at most


@dataclass(frozen=True)
class Kill:
    """Who dies, where the run is then, and how long after the sign of it."""

    victim: str
    place: str
    after: float


def kills(seed: int, number: int, victims: Sequence[str]) -> list[Kill]:
    """So many kills: every victim at every place in turn, in an order and at moments that the seed chooses."""
    chance = Random(seed)
    chosen: list[Kill] = []
    while len(chosen) < number:
        pairs = [(victim, place) for victim in victims for place in PLACES]
        chance.shuffle(pairs)
        chosen += [Kill(victim, place, chance.uniform(0, LONGEST)) for victim, place in pairs]
    return chosen[:number]


def names_in(folder: Path) -> frozenset[str]:
    """All files below a folder; one that goes away meanwhile is not there."""
    return frozenset(str(Path(where) / name) for where, _, files in os.walk(folder) for name in files)


def await_sign(kill: Kill, folder: Path, before: frozenset[str], goes_on: Callable[[], bool]) -> bool:
    """Wait until something new lies where the kill is to happen; whether it does."""
    place = folder / PLACES[kill.place]
    while not names_in(place) - before:
        if not goes_on():
            return False
        time.sleep(GLANCE)
    time.sleep(kill.after)
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


def end(kill: Kill, driver: int, chance: Random) -> int | None:
    """End one process of that kind, at once; its id, or None if there is none at this moment."""
    if kill.victim == "driver":
        chosen = [driver]
    else:
        chosen = [process.id for process in below(os.getpid()) if process.kind == kill.victim]
    while chosen:
        victim = chosen.pop(chance.randrange(len(chosen)))
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
        return victim
    return None


def end_all(roots: Sequence[int]) -> None:
    """End what is left below these processes, and themselves."""
    for process in chain.from_iterable(([*reversed([own.id for own in below(root)]), root]) for root in roots):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
