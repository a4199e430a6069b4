"""A model of what a run on Spark does in a trigger, with processes that die at any step, and others that take over.

A run reads a log of files, trigger by trigger: it notes the offset (what the trigger reads), computes the state of each
lane, writes the matches to the sink under the trigger's name, and commits the trigger. What is on the disk survives;
what a process knows does not. A process may die between any two steps, be thought dead while it goes on (another takes
over with a larger epoch), and be started again with another program: then queries begin in a new generation, and lanes
are handed over to others, which begin where the old ones end.

Each file of the log has one match for each query that runs when its trigger is matched. The invariant: whatever
happens, the sink has each match at most once, and when all is committed, exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

FILES = 3  # of the log, which grows to that many
PROCESSES = 2
DEATHS = 2  # of processes, in one history
CHANGES = 1  # of the program, or of the number of lanes


@dataclass(frozen=True)
class Disk:
    """What survives."""

    found: int = 0  # files in the log
    offsets: tuple[int, ...] = ()  # by trigger: how many files have been read when it is done
    commits: int = 0  # triggers
    states: tuple[tuple[int, frozenset[tuple[int, int]]], ...] = ()  # by version: files matched; where lanes were
    sink: tuple[tuple[int, frozenset[tuple[int, int]]], ...] = ()  # by trigger: matches (file, lane), written whole
    generations: tuple[tuple[int, int], ...] = ((0, 1),)  # from which file on how many lanes match


@dataclass(frozen=True)
class Process:
    """What a process knows: nothing when it is dead."""

    step: str = "dead"
    is_owner: bool = False  # whether its epoch is the one on the disk: only that they differ matters
    trigger: int = 0
    end: int = 0  # files that the trigger reads up to
    matches: frozenset[tuple[int, int]] = frozenset()
    state: tuple[int, frozenset[tuple[int, int]]] | None = None


@dataclass(frozen=True)
class World:
    """All there is at a moment."""

    disk: Disk = field(default_factory=Disk)
    processes: tuple[Process, ...] = (Process(),) * PROCESSES
    deaths: int = 0
    changes: int = 0


@dataclass(frozen=True)
class Protocol:
    """The order of the steps; each mistake is one that the invariant must show."""

    commit_before_sink: bool = False
    unfenced: bool = False  # a process that was taken over from writes all the same, under a name of its own
    new_offsets: bool = False  # a trigger that was begun is begun anew with what is in the log now
    lanes_forget: bool = False  # lanes of a new generation begin with the log, not where the old ones end

    @property
    def after_compute(self) -> tuple[str, ...]:
        """The steps after the state of a trigger was computed."""
        return ("commit", "sink", "state") if self.commit_before_sink else ("state", "sink", "commit")


def nexts(world: World, protocol: Protocol) -> Iterator[World]:
    """All worlds that can follow."""
    disk = world.disk
    if disk.found < FILES:
        yield replace(world, disk=replace(disk, found=disk.found + 1))
    if world.changes < CHANGES:
        yield from _changes(world, protocol)
    for number, process in enumerate(world.processes):
        if process.step != "dead" and world.deaths < DEATHS:
            yield _with(replace(world, deaths=world.deaths + 1), number, Process())
        yield from _steps(world, number, process, protocol)


def _with(world: World, number: int, process: Process, disk: Disk | None = None) -> World:
    processes = tuple(process if at == number else other for at, other in enumerate(world.processes))
    return replace(world, processes=processes, disk=disk or world.disk)


def _changes(world: World, protocol: Protocol) -> Iterator[World]:
    """Another number of lanes, from the next trigger on: noted while no process is at work in a trigger."""
    if any(process.step not in ("dead", "idle") for process in world.processes):
        return
    disk = world.disk
    if len(disk.offsets) > disk.commits:  # the trigger that was begun is finished with the lanes it began with
        return
    first = 0 if protocol.lanes_forget else (disk.offsets[-1] if disk.offsets else 0)
    changed = replace(disk, generations=(*disk.generations, (first, 2)))
    yield replace(world, disk=changed, changes=world.changes + 1)


def _steps(world: World, number: int, process: Process, protocol: Protocol) -> Iterator[World]:
    disk = world.disk
    if process.step == "dead":
        # It starts, and takes over: the one before is gone, or thought to be.
        others = tuple(replace(other, is_owner=False) for other in world.processes)
        yield _with(replace(world, processes=others), number, Process("idle", is_owner=True))
        return
    fenced = not process.is_owner
    if fenced and not protocol.unfenced:
        yield _with(world, number, Process())  # it sees the other epoch, and ends
        if process.step in ("idle", "sink", "commit"):
            return
    if process.step == "idle":
        yield from _begin(world, number, process, protocol)
    elif process.step == "compute":
        yield _with(world, number, _computed(disk, process, protocol))
    else:
        yield _with(world, number, *_written(disk, process, protocol))


def _begin(world: World, number: int, process: Process, protocol: Protocol) -> Iterator[World]:
    """Begin a trigger: the one that was begun and not committed, or the next, whose offset is noted first."""
    disk = world.disk
    trigger = disk.commits
    if trigger < len(disk.offsets) and not protocol.new_offsets:
        yield _with(world, number, replace(process, step="compute", trigger=trigger, end=disk.offsets[trigger]))
        return
    before = disk.offsets[trigger - 1] if trigger else 0
    for end in range(before + 1, disk.found + 1):
        offsets = (*disk.offsets[:trigger], end)
        begun = replace(process, step="compute", trigger=trigger, end=end)
        yield _with(world, number, begun, replace(disk, offsets=offsets))


def _computed(disk: Disk, process: Process, protocol: Protocol) -> Process:
    """Match what is new, from the state of the trigger before."""
    known = dict(enumerate(disk.states))
    before = known.get(process.trigger - 1, (0, frozenset())) if process.trigger else (0, frozenset())
    matches: set[tuple[int, int]] = set()
    for at, (first, lanes) in enumerate(disk.generations):
        following = disk.generations[at + 1][0] if at + 1 < len(disk.generations) else FILES + 1
        stop = FILES + 1 if protocol.lanes_forget else following
        for file in range(max(before[0], first), min(process.end, stop)):
            lane = file % lanes + 10 * at
            if protocol.lanes_forget or not any(one == file for one, _ in before[1]):
                matches.add((file, lane))
        if protocol.lanes_forget and at:
            matches |= {(file, file % lanes + 10 * at) for file in range(first, min(process.end, stop))}
    state = (process.end, frozenset(before[1] | matches))
    return replace(process, step=protocol.after_compute[0], matches=frozenset(matches), state=state)


def _written(disk: Disk, process: Process, protocol: Protocol) -> tuple[Process, Disk]:
    """Do a step that writes, and go on to the next."""
    order = protocol.after_compute
    at = order.index(process.step)
    following = replace(process, step=order[at + 1]) if at + 1 < len(order) else Process("idle", process.is_owner)
    trigger = process.trigger
    if process.step == "state" and process.state is not None:
        # Nobody keeps a late process from writing a version of the state: it must be the same as before.
        states = (*disk.states[:trigger], process.state, *disk.states[trigger + 1 :])
        return following, replace(disk, states=states) if len(disk.states) >= trigger else disk
    if process.step == "sink":
        # The file of a trigger is written again under its name: it is the same file.
        name = trigger if process.is_owner or not protocol.unfenced else 100 + trigger
        others = tuple((own, found) for own, found in disk.sink if own != name)
        return following, replace(disk, sink=(*others, (name, process.matches)))
    return following, replace(disk, commits=max(disk.commits, trigger + 1))


def problem_of(world: World) -> str | None:
    """What breaks the invariant; None: nothing does."""
    disk = world.disk
    files = [file for _, found in disk.sink for file, _ in found]
    if len(set(files)) < len(files):
        return f"a match is in the sink twice: {sorted(files)}"
    done = disk.offsets[disk.commits - 1] if disk.commits else 0
    missing = set(range(done)).difference(files)
    if missing:
        return f"{done} files are committed, and the matches of {sorted(missing)} are not in the sink"
    return None


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
