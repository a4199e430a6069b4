"""All that a server does, without HTTP: settings in, a running engine, its subscribers and its figures."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.algebra.query import Program
from weft.errors import InputError, WeftError
from weft.languages.content.lower import compile_filter
from weft.live_programs.matches import fields_of
from weft.live_programs.program import LiveProgram
from weft.runtime.data.events import Rejected
from weft.runtime.live.subscriptions import EVERY_TYPE
from weft.runtime.options import USUAL, Options
from weft.serve.batch_order import BatchOrder
from weft.serve.engine import Busy, Engine, Request
from weft.serve.folders import StateFolder
from weft.serve.hub import Hub, Subscriber
from weft.serve.journal import Sync
from weft.serve.program import Answer, Publication, ServedProgram, check_version

MOST_CONDITION = 20_000  # characters of the condition of a subscriber


@dataclass(frozen=True)
class ServerSettings:
    """How a server goes. Bytes and numbers are limits."""

    options: Options = USUAL
    state: Path | None = None
    sync: Sync = "second"
    log: int = 100_000  # matches from which subscribers can resume
    queue_bytes: int = 64 << 20  # of publications that wait
    body_bytes: int = 64 << 20  # of one publication
    subscriber_bytes: int = 4 << 20  # of matches that wait for one subscriber
    subscribers: int = 10_000
    snapshot_bytes: int = 64 << 20  # of the journal, after which a snapshot is taken
    body_seconds: float = 60.0  # in which a body must have come


class Service:
    """One server: its program, its state and its subscribers."""

    def __init__(self, settings: ServerSettings, *programs: Program) -> None:
        self.settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready: dict[Subscriber, asyncio.Event] = {}
        self._order = BatchOrder(lambda source: self.engine.program.last_of(source))
        self.hub = Hub(settings.log, settings.subscriber_bytes, self._wake)
        self.change: str | None = None  # what the programs of the command line changed of the state
        folder = None if settings.state is None else StateFolder(settings.state, settings.sync)
        try:
            self.engine = self._opened(folder, programs)
        except BaseException:
            if folder is not None:
                folder.close()
            raise
        self.engine.start()

    def _opened(self, folder: StateFolder | None, programs: Sequence[Program]) -> Engine:
        """The engine, where the state says it had got to."""
        snapshot = None if folder is None else folder.latest()
        if folder is not None and snapshot is not None:
            with _told_of(folder):
                check_version(snapshot.server)
        rejects: list[Rejected] = []
        running = self._running(None if snapshot is None else snapshot.program, rejects)
        served = ServedProgram(running, self.hub, rejects, self.settings.options.columns.type)
        engine = Engine(served, folder, self.settings.queue_bytes, self.settings.snapshot_bytes)
        self.replayed = 0
        if folder is not None:
            with _told_of(folder):
                if snapshot is not None:
                    served.load(snapshot.server, snapshot.log)
                self.replayed = engine.replay()
        max_jump = self.settings.options.arrival.max_jump
        is_as_before = running.max_jump == max_jump
        running.max_jump = max_jump  # of what comes from now on; the journal was done as it was then
        if any(program.queries for program in programs):
            self.change = served.become(programs)
        if folder is not None and (folder.journal.size or self.change or snapshot is None or not is_as_before):
            engine.snapshot()
        return engine

    def _running(self, saved: Path | None, rejects: list[Rejected]) -> LiveProgram:
        settings = self.settings
        if saved is not None:
            return LiveProgram.restored(saved, settings.options, rejects)
        return LiveProgram(settings.options, rejects)

    def close(self) -> None:
        """Finish the queued commands, save the state, and end."""
        self.engine.stop()

    # -- what requests ask for ------------------------------------------------------------------

    async def told(self, **about: Any) -> Answer:
        """Execute a request that is not a publication."""
        return await asyncio.wrap_future(self.engine.submit(Request(about)))

    async def publish(
        self, body: bytes, form: str, type: str | None, part: Publication, after: int | None = None
    ) -> Answer:
        """Match published events, after the batch `after` of their source; raises Busy if too many wait."""
        about: dict[str, Any] = {"op": "events", "form": form} | ({} if type is None else {"type": type})
        if after is not None and part.source is not None:
            await self._order.wait_for(part.source, after)
        answer = self.engine.submit(Request(about, body, part))
        if part.source is not None and part.sequence is not None:
            self._order.note(part.source, part.sequence)
        return await asyncio.wrap_future(answer)

    async def subscribe(self, query: str, where: str | None, after: str | None) -> tuple[Subscriber, asyncio.Event]:
        """A new subscriber, and what is set when something waits for it."""
        if len(self._ready) >= self.settings.subscribers:
            raise Busy(5, f"{len(self._ready):,} subscribers are here already, as many as may be")
        if where is not None and len(where) > MOST_CONDITION:
            raise InputError(f"a condition has at most {MOST_CONDITION:,} characters")
        if after is not None and not after.isalnum() and after:
            raise InputError("after= is the id of a match, or empty")
        self._loop = asyncio.get_running_loop()
        program = self.engine.program.running.program
        fields = fields_of(program, query)
        wanted = None if where is None else await asyncio.to_thread(compile_filter, where, fields)
        if query != EVERY_TYPE and query not in program.names and query not in self.engine.program.watched:
            await self.told(op="watch", type=query)
        subscriber = await asyncio.to_thread(self.hub.join, query, wanted, after)
        ready = self._ready[subscriber] = asyncio.Event()
        ready.set()
        return subscriber, ready

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a subscriber."""
        self._ready.pop(subscriber, None)
        self.hub.leave(subscriber)

    def _wake(self, touched: set[Subscriber]) -> None:
        """Make the event loop send queued matches; called in the engine's thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._set, touched)

    def _set(self, touched: set[Subscriber]) -> None:
        for subscriber in touched:
            ready = self._ready.get(subscriber)
            if ready is not None:
                ready.set()

    # -- figures --------------------------------------------------------------------------------

    def figures(self) -> dict[str, Any]:
        """Return the figures of `stats` and the metrics."""
        engine, program = self.engine, self.engine.program
        members = self.hub.subscribers
        return {
            "events": program.running.events,
            "rejected": program.running.rejected,
            "late": program.totals["late"],
            "unreadable": program.totals["unreadable"],
            "requests": program.totals["requests"],
            "matches": dict(self.hub.counts),
            "queries": list(program.running.program.names),
            "subscribers": len(members),
            "delivered": self.hub.delivered + sum(member.delivered for member in members),
            "missed": self.hub.missed + sum(member.missed for member in members),
            "queued_bytes": engine.waiting,
            "work_seconds": engine.seconds,
            "journal_bytes": 0 if engine.folder is None else engine.folder.journal.size,
            "snapshots": 0 if engine.folder is None else engine.folder.snapshots,
        }


@contextlib.contextmanager
def _told_of(folder: StateFolder) -> Iterator[None]:
    """Report what is wrong with a state as of its folder."""
    try:
        yield
    except WeftError as problem:
        raise InputError(f"the state in {folder.folder} cannot be used: {problem}") from problem
