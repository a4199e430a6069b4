"""A model of what a run on Spark does in a trigger, with processes that die at any step, and others that take over.

A run reads a log of files, trigger by trigger: it notes the offset (what the trigger reads), computes from the state
of each lane after the trigger before, writes a state file for each lane, one after the other, and the matches to the
sink under the trigger's name, and commits the trigger. What is on the disk survives; what a process knows does not. A
process may die between any two steps, be thought dead while it goes on (another takes over with a larger epoch), and
begin with another program: then a query ends, and its lane stops, and another begins in a lane of its own, after the
last commit. A trigger that was begun and not committed is then done again with the new program.

Each file of the log has one match for each query that runs. The invariant: whatever happens, the sink has each match at
most once; when a trigger is committed, exactly once those of its queries; and no good checkpoint is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

FILES = 3  # of the log, which grows to that many
PROCESSES = 2
DEATHS = 2  # of processes, in one history
CHANGES = 1  # of the program

STAYS, ENDS, BEGINS = range(3)  # lanes: of the query that stays, of the one that ends, of the one that begins
Lanes = tuple[tuple[int, int], ...]  # each with the file that it begins with
Matches = frozenset[tuple[int, int]]  # file and lane


class Disk(NamedTuple):
    """What survives. `states`: by lane and trigger the epoch of the writer, and how many files the lane has seen."""

    found: int = 0  # files in the log
    offsets: tuple[int, ...] = ()  # by trigger: how many files have been read when it is done
    commits: int = 0  # triggers
    states: frozenset[tuple[int, int, int, int]] = frozenset()
    sink: tuple[tuple[int, Matches], ...] = ()  # by trigger, written whole
    lanes: Lanes = ((STAYS, 0), (ENDS, 0))
    epoch: int = 0

    def state(self, lane: int, trigger: int) -> tuple[int, int] | None:
        """The epoch and the files of the state of a lane after a trigger: the latest attempt."""
        return next((own[2:] for own in self.states if own[:2] == (lane, trigger)), None)


class Process(NamedTuple):
    """What a process knows: nothing when it is dead."""

    step: str = "dead"
    epoch: int = 0
    lanes: Lanes = ()
    trigger: int = 0
    end: int = 0  # files that the trigger reads up to
    matches: Matches = frozenset()
    unwritten: tuple[int, ...] = ()  # lanes whose state is not written yet


class World(NamedTuple):
    """All there is at a moment."""

    disk: Disk = Disk()
    processes: tuple[Process, ...] = (Process(),) * PROCESSES
    deaths: int = 0
    changes: int = 0
    refused: str = ""  # why a start or a trigger was refused


@dataclass(frozen=True)
class Protocol:
    """The order of the steps; each mistake is one that the invariant must show."""

    commit_before_sink: bool = False
    unfenced: bool = False  # a process that was taken over from writes to the sink, under a name of its own
    new_offsets: bool = False  # a trigger that was begun is begun anew with what is in the log now
    lanes_forget: bool = False  # a new lane begins with the log, not where the others stand
    own_base: bool = False  # a trigger that is tried again starts from what its last attempt wrote
    clean_base: bool = False  # files are removed that a trigger which is tried again starts from
    stopped_needed: bool = False  # a start asks for the state of lanes whose queries have ended

    @property
    def after_compute(self) -> tuple[str, ...]:
        """The steps after the matches of a trigger were computed."""
        return ("commit", "state", "sink") if self.commit_before_sink else ("state", "sink", "commit")


def nexts(world: World, protocol: Protocol) -> Iterator[World]:
    """All worlds that can follow."""
    disk = world.disk
    if disk.found < FILES:
        yield world._replace(disk=disk._replace(found=disk.found + 1))
    for number, process in enumerate(world.processes):
        if process.step == "dead":
            yield from _starts(world, number, protocol)
            continue
        if world.deaths < DEATHS:
            yield _with(world._replace(deaths=world.deaths + 1), number, Process())
        yield from _steps(world, number, process, protocol)


def _with(world: World, number: int, process: Process, disk: Disk | None = None) -> World:
    processes = tuple(process if at == number else other for at, other in enumerate(world.processes))
    return _ranked(world._replace(processes=processes, disk=disk or world.disk))


def _ranked(world: World) -> World:
    """The same world with the least epochs: only their order matters, so that there are finitely many worlds."""
    disk = world.disk
    used = sorted({disk.epoch, *(own.epoch for own in world.processes), *(own[2] for own in disk.states)})
    if used[-1] == len(used) - 1:
        return world
    rank = {epoch: at for at, epoch in enumerate(used)}
    states = frozenset((lane, trigger, rank[epoch], end) for lane, trigger, epoch, end in disk.states)
    processes = tuple(own._replace(epoch=rank[own.epoch]) for own in world.processes)
    return world._replace(disk=disk._replace(epoch=rank[disk.epoch], states=states), processes=processes)


def _starts(world: World, number: int, protocol: Protocol) -> Iterator[World]:
    """A process starts, and takes over: the one before is gone, or thought to be; perhaps with another program."""
    disk = world.disk._replace(epoch=world.disk.epoch + 1)  # larger than all before
    stand = disk.commits - 1
    asked = (STAYS, ENDS) if protocol.stopped_needed else [lane for lane, _ in disk.lanes]
    if stand >= 0 and any(disk.state(lane, stand) is None for lane in asked if _has_begun(disk, lane, stand)):
        yield world._replace(refused=f"a lane has no state of trigger {stand}")
        return
    yield _with(world, number, Process("idle", disk.epoch, disk.lanes), disk)
    if world.changes < CHANGES and stand >= 0:
        first = 0 if protocol.lanes_forget else disk.offsets[stand]
        lanes = (*(own for own in disk.lanes if own[0] != ENDS), (BEGINS, first))
        changed = disk._replace(lanes=lanes)
        yield _with(world._replace(changes=world.changes + 1), number, Process("idle", disk.epoch, lanes), changed)


def _has_begun(disk: Disk, lane: int, trigger: int) -> bool:
    """Whether a lane has taken part in a trigger, or in one before."""
    return any(own[0] == lane and own[1] <= trigger for own in disk.states)


def _steps(world: World, number: int, process: Process, protocol: Protocol) -> Iterator[World]:
    disk = world.disk
    if process.epoch != disk.epoch:
        yield _with(world, number, Process())  # it sees the other epoch, and ends
        if process.step == "commit" or (process.step == "sink" and not protocol.unfenced):
            return
    if process.step == "idle":
        yield from _begin(world, number, process, protocol)
    elif process.step == "compute":
        yield from _computed(world, number, process, protocol)
    else:
        yield _with(world, number, *_written(disk, process, protocol))


def _begin(world: World, number: int, process: Process, protocol: Protocol) -> Iterator[World]:
    """Begin a trigger: the one that was begun and not committed, or the next, whose offset is noted first.

    Nobody can note an offset that is noted already: who was taken over from ends then.
    """
    disk = world.disk
    trigger = disk.commits
    if trigger < len(disk.offsets) and not protocol.new_offsets:
        yield _with(world, number, process._replace(step="compute", trigger=trigger, end=disk.offsets[trigger]))
        return
    before = disk.offsets[trigger - 1] if trigger else 0
    for end in range(before + 1, disk.found + 1):
        begun = process._replace(step="compute", trigger=trigger, end=end)
        yield _with(world, number, begun, disk._replace(offsets=(*disk.offsets[:trigger], end)))


def _computed(world: World, number: int, process: Process, protocol: Protocol) -> Iterator[World]:
    """Match what is new, from the state of the trigger before, or from where a lane begins."""
    disk, trigger = world.disk, process.trigger
    matches: set[tuple[int, int]] = set()
    for lane, first in process.lanes:
        base = disk.state(lane, trigger) if protocol.own_base else None
        base = base or disk.state(lane, trigger - 1)
        if base is None and _has_begun(disk, lane, trigger - 1):
            if process.epoch == disk.epoch:
                yield world._replace(refused=f"lane {lane} has no state of trigger {trigger - 1}")
            return  # others took over, and removed it
        matches |= {(file, lane) for file in range(first if base is None else base[1], process.end)}
    lanes = tuple(lane for lane, _ in process.lanes)
    step = protocol.after_compute[0]
    yield _with(world, number, process._replace(step=step, matches=frozenset(matches), unwritten=lanes))


def _written(disk: Disk, process: Process, protocol: Protocol) -> tuple[Process, Disk]:
    """Do a step that writes, and go on to the next."""
    order = protocol.after_compute
    at = order.index(process.step)
    done = Process("idle", process.epoch, process.lanes)
    following = process._replace(step=order[at + 1]) if at + 1 < len(order) else done
    trigger = process.trigger
    if process.step == "state":
        lane, *rest = process.unwritten
        after = (process if rest else following)._replace(unwritten=tuple(rest))
        return after, disk._replace(states=_with_state(disk, lane, process, protocol))
    if process.step == "sink":
        # The file of a trigger is written again under its name: it is the same file.
        name = trigger if process.epoch == disk.epoch else 100 + trigger
        others = tuple((own, found) for own, found in disk.sink if own != name)
        return following, disk._replace(sink=(*others, (name, process.matches)))
    return following, disk._replace(commits=max(disk.commits, trigger + 1))


def _with_state(disk: Disk, lane: int, process: Process, protocol: Protocol) -> frozenset[tuple[int, int, int, int]]:
    """The state files after one more: an attempt of a former owner does not count. Those that nobody needs go."""
    before = disk.state(lane, process.trigger)
    if before is not None and before[0] > process.epoch:
        return disk.states
    oldest = process.trigger - (0 if protocol.clean_base else 1)
    kept = (own for own in disk.states if own[0] != lane or (own[1] != process.trigger and own[1] >= oldest))
    return frozenset([*kept, (lane, process.trigger, process.epoch, process.end)])


def problem_of(world: World) -> str | None:
    """What breaks the invariant; None: nothing does."""
    if world.refused:
        return f"a good checkpoint is refused: {world.refused}"
    disk = world.disk
    pairs = [pair for _, found in disk.sink for pair in found]
    if len(set(pairs)) < len(pairs):
        return f"a match is in the sink twice: {sorted(pairs)}"
    done = disk.offsets[disk.commits - 1] if disk.commits else 0
    missing = {(file, lane) for lane, first in disk.lanes for file in range(first, done)}.difference(pairs)
    if missing:
        return f"{done} files are committed, and the matches {sorted(missing)} are not in the sink"
    early = [pair for pair in pairs if any(lane == pair[1] and pair[0] < first for lane, first in disk.lanes)]
    return f"a query found what came before it: {early}" if early else None


def explore(protocol: Protocol, most: int | None = None) -> tuple[int, list[World]]:
    """All worlds that can come about: how many; and the way to one that breaks the invariant, if there is one."""
    start = World()
    seen: dict[World, World | None] = {start: None}
    waiting = [start]
    while waiting:
        following: list[World] = []
        for world in waiting:
            for other in nexts(world, protocol):
                if other in seen:
                    continue
                seen[other] = world
                if problem_of(other) is not None:
                    return len(seen), _way(seen, other)
                following.append(other)
            if most is not None and len(seen) > most:
                return len(seen), []
        waiting = following
    return len(seen), []


def _way(seen: dict[World, World | None], world: World) -> list[World]:
    found: list[World] = []
    at: World | None = world
    while at is not None:
        found.append(at)
        at = seen[at]
    return found[::-1]
