"""A model of how `weft serve --state` keeps what it was told: journal, snapshots, publishers that retry, subscribers.

A publisher sends numbered publications, each until it is answered. The server writes a publication into the journal,
matches it (subscribers see its match then), and answers. Now and then it writes a snapshot aside, gives it its name,
begins a journal for it, and removes the old one. It may die between any two steps, and while it writes a record, and
begins again with the latest snapshot and the journal of that.

The invariant: what was answered is not lost, each publication is matched once, and what a subscriber has seen is never
taken back: the log of matches goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

PUBLICATIONS = 3
DEATHS = 3
Told = tuple[int, ...]


@dataclass(frozen=True)
class State:
    """What a server knows: matches in their order, and which publications it has been given."""

    log: Told = ()
    known: frozenset[int] = frozenset()

    def matched(self, publication: int, *, deduplicates: bool = True) -> State:
        """The state after a publication, which changes nothing when it is known."""
        if deduplicates and publication in self.known:
            return self
        return State((*self.log, publication), self.known | {publication})


@dataclass(frozen=True)
class Disk:
    """Snapshots and journals, by number; a journal's last record may be cut short."""

    snapshots: tuple[tuple[int, State], ...] = ((0, State()),)
    journals: tuple[tuple[int, Told], ...] = ((0, ()),)
    torn: bool = False

    @property
    def number(self) -> int:
        """The latest snapshot."""
        return max(number for number, _ in self.snapshots)

    def journal(self, number: int) -> Told:
        """The records of a journal."""
        return dict(self.journals).get(number, ())

    def with_journal(self, number: int, records: Told | None) -> Disk:
        """The same with other records of a journal; None: it is removed."""
        rest = tuple(own for own in self.journals if own[0] != number)
        return replace(self, journals=rest if records is None else (*rest, (number, records)))


@dataclass(frozen=True)
class Service:
    """A server's process; `step` of what it is doing."""

    step: str = "dead"
    state: State = State()
    number: int = 0  # of the journal it writes to
    publication: int = 0


@dataclass(frozen=True)
class World:
    """All there is at a moment; `seen`: what a subscriber was shown."""

    disk: Disk = field(default_factory=Disk)
    service: Service = Service()
    answered: int = 0  # publications, in their order
    seen: Told = ()
    deaths: int = 0


@dataclass(frozen=True)
class Design:
    """The order of the steps; each mistake is one that the invariant must show."""

    match_first: bool = False  # before it is in the journal
    answer_first: bool = False  # likewise
    no_numbers: bool = False  # a publication that is sent again is not known
    numbers_unsaved: bool = False  # the snapshot does not have the numbers
    early_removal: bool = False  # the old journal is removed before the snapshot has its name

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done with a publication."""
        if self.match_first:
            return "match", "journal", "answer"
        return ("answer", "journal", "match") if self.answer_first else ("journal", "match", "answer")

    @property
    def snapshot(self) -> tuple[str, ...]:
        """What is done for a snapshot."""
        return ("remove", "name", "begin") if self.early_removal else ("name", "begin", "remove")


def nexts(world: World, design: Design) -> Iterator[World]:
    """All worlds that can follow."""
    service = world.service
    if service.step == "dead":
        yield _started(world, design)
        return
    if world.deaths < DEATHS:
        died = replace(world, service=Service(), deaths=world.deaths + 1)
        yield died
        if service.step == "journal":
            yield replace(died, disk=replace(world.disk, torn=True))
    if len(service.state.log) > len(world.seen):
        yield replace(world, seen=service.state.log[: len(world.seen) + 1])
    if service.step == "idle":
        if world.answered < PUBLICATIONS:
            yield replace(world, service=replace(service, step=design.steps[0], publication=world.answered + 1))
        if world.disk.journal(service.number):
            yield replace(world, service=replace(service, step=design.snapshot[0]))
        return
    yield _done(world, design)


def _started(world: World, design: Design) -> World:
    """Begin again: what is cut short was never answered."""
    disk = replace(world.disk, torn=False)
    number = disk.number
    state = dict(disk.snapshots)[number]
    for record in disk.journal(number):
        state = state.matched(record, deduplicates=not design.no_numbers)
    return replace(world, disk=disk, service=Service("idle", state, number))


def _done(world: World, design: Design) -> World:
    """Do one step of the server."""
    disk, service, answered = world.disk, world.service, world.answered
    order = design.steps if service.step in design.steps else design.snapshot
    at = order.index(service.step)
    after = replace(service, step=order[at + 1] if at + 1 < len(order) else "idle")
    one, old = service.publication, service.number
    is_known = one in service.state.known and not design.no_numbers
    match service.step:
        case "journal":
            disk = disk if is_known and not design.match_first else disk.with_journal(old, (*disk.journal(old), one))
        case "match":
            after = replace(after, state=service.state.matched(one, deduplicates=not design.no_numbers))
        case "answer":
            answered = one
        case "name":
            kept = replace(service.state, known=frozenset()) if design.numbers_unsaved else service.state
            disk = replace(disk, snapshots=((old + 1, kept),))
        case "begin":
            disk, after = disk.with_journal(old + 1, ()), replace(after, number=old + 1)
        case "remove":
            disk = disk.with_journal(old if design.early_removal else old - 1, None)
    return replace(world, disk=disk, service=after, answered=answered)


def problem_of(world: World) -> str | None:
    """What breaks the invariant; None: nothing does."""
    log, service = world.service.state.log, world.service
    if len(set(world.seen)) < len(world.seen) or len(set(log)) < len(log):
        return f"a publication was matched twice: {log}, seen {world.seen}"
    if service.step == "dead":
        return None
    if log[: len(world.seen)] != world.seen[: len(log)] or len(log) < len(world.seen):
        return f"a subscriber saw {world.seen}, and the log has {log}"
    lost = set(range(1, world.answered + 1)).difference(log)
    if lost and service.step == "idle":
        return f"{lost} was answered, and is not there any more"
    return None


def explore(design: Design) -> tuple[int, list[World]]:
    """All worlds that can come about: how many; and the one that breaks the invariant, if there is one."""
    seen, waiting = {World()}, [World()]
    while waiting:
        world = waiting.pop()
        for other in nexts(world, design):
            if other not in seen:
                if problem_of(other) is not None:
                    return len(seen), [other]
                seen.add(other)
                waiting.append(other)
    return len(seen), []
