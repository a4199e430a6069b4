"""A program that runs in this process and can be changed while it runs, with subscriptions to its matches.

A deployed query sees the events that come after its deployment, as if the stream began there. A removed query sees no
further events. Neither affects the matches of the remaining queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, SupportsIndex

import numpy as np

from weft import inputs
from weft.algebra.query import Program
from weft.api import Programs, Schema, compile_with_findings, merge_programs
from weft.connectors.sinks import growing_sink
from weft.detection import report_rejected
from weft.errors import BudgetError, Diagnostic, UsageError
from weft.languages.content.lower import compile_filter
from weft.languages.defined import Defined, defined_types
from weft.live_programs.matches import ColumnReceiver, Deployment, Matches, Queue, fields_of
from weft.live_programs.queue import SHEDS, EventQueue, WhenFull
from weft.live_programs.set_aside import numbered
from weft.live_programs.state import LiveState
from weft.plan.properties import ALL_FIELDS
from weft.runtime.data.events import EventBatch, Int64s, Rejected
from weft.runtime.data.matches import Match, MatchBatch
from weft.runtime.limits.waiting import Piece, Risky, joined
from weft.runtime.live.deployments import Deployed
from weft.runtime.live.pieces import Pieces
from weft.runtime.live.primitive import PrimitiveEvents
from weft.runtime.live.subscriptions import EVERY_TYPE, Subscription, Subscriptions
from weft.runtime.options import USUAL, Options
from weft.runtime.reading.order import EventSource
from weft.runtime.watching.triggers import OperatorStats
from weft.statistics import Statistics


class LiveProgram(LiveState):
    """A running program; see `weft.live`. Its methods may be called from several threads, and by receivers."""

    def __init__(
        self,
        options: Options = USUAL,
        rejects: list[Rejected] | None = None,
        queue: int | None = None,
        when_full: WhenFull = "wait",
    ) -> None:
        if queue is None and when_full != "wait":
            raise UsageError(
                f"when_full={when_full!r} is about a queue: give the number of events that may wait, queue="
            )
        if queue is not None and when_full == "drop" and options.limits.shed is None:
            options = replace(options, limits=replace(options.limits, shed=SHEDS))
        super().__init__(options, rejects)
        self._subscriptions = Subscriptions()
        self._event_types: tuple[str, ...] = ()  # of the input, to which somebody subscribed
        self._primitive = PrimitiveEvents(options.columns.key)
        type = options.columns.type
        self._queue = None if queue is None else EventQueue(queue, when_full, self._work_off, self._risky, type)

    # -- events ---------------------------------------------------------------------------------

    def push(self, events: Any) -> Matches:
        """Take events (as `weft.detect` does), and give the matches that they make certain.

        Events of one push are put into stream order. Those that belong before events of earlier pushes are late:
        they are rejected. Subscribers have their matches when this returns. With a queue it returns at once, without
        matches: subscribers have them when a thread has worked the events off.

        Args:
            events: Events, as `weft.detect` takes them.
        """
        if self._queue is not None:
            self._queue.put(events)
            return Matches(self._pieces(), self._names)
        return self._push(events)

    def _work_off(self, pieces: list[Piece], share: float) -> None:
        """Process events of the queue, of which a share is shed."""
        if self._guard.shedder is not None and self._options.limits.shed is SHEDS:
            self._guard.shedder.share, self._guard.shedder.looks = share, share > 0
        events, numbers, count = joined(pieces)
        self._push(events, numbers, count)

    def _risky(self) -> Risky:
        """The types of events that must not be left out of the queue."""
        return None if self._guard.shedder is None else self._guard.shedder.risky

    def join(self) -> None:
        """Wait until the queue, if there is one, is empty; an error in the work is raised here."""
        if self._queue is not None:
            self._queue.join()

    def _push(self, events: Any, numbers: Int64s | None = None, count: int = 0) -> Matches:
        """Push events with the given numbers out of `count`, or all if there are no numbers."""
        with self._at_work():
            first = self.events
            source = inputs.open_source(
                events,
                self.program,
                **self._options.columns.named,
                columns=None if self._event_types else self._deployments.columns,
                all_fields=ALL_FIELDS in self._deployments.columns,
            ).continued(self.events, self._since)
            found = self._pieces()
            for batch in source:
                if len(batch):
                    given = batch if numbers is None else _renumbered(batch, source, first, numbers)
                    self._admit(self._aside.take(given, self.program.time_unit), found, gaps=numbers is not None)
            if numbers is not None:
                self.events = max(self.events, first + count)
            self.rejected += len(source.rejected)
            report_rejected(source.rejected, self._rejects)
            if source.late_ends and self._aside.is_refuted(source.late_ends, self.events, self.program.time_unit):
                self._begin_anew()
            return self._deliver(found)

    def _admit(self, batch: EventBatch, found: Pieces, *, gaps: bool = False) -> None:
        """Match events that are believed, each at a position after all before it; `gaps` may be between them."""
        if len(batch):
            batch = numbered(batch, self.events, gaps=gaps or self._queue is not None)
            self.events = int(batch.positions[-1]) + 1
            self._since = int(batch.ends[-1]), int(batch.starts[-1])
            self._match(batch, found)

    def _match(self, batch: EventBatch, found: Pieces) -> None:
        """Yield the matches of a batch within the limits; if a limit stops the program, it ends."""
        if self._event_types:
            for own in self._primitive.matches(batch, self._event_types, self._options.columns.type):
                self._subscriptions.deliver_events(own)
        batch = self._guard.events(batch, self._deployments)
        if not len(batch):
            return
        with self._ending():
            for matches in self._guard.matches(self._deployments.push(batch)):
                found.add(matches)
            self._guard.done(self._deployments)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """A limit that stops ends the program."""
        try:
            yield
        except BudgetError:
            self._is_finished = True
            raise

    def _waited(self, before: EventBatch, found: Callable[[], Iterable[MatchBatch]]) -> Matches:
        """Deliver matches that time, or the end, made final, within the limits; those of events `before` first."""
        pieces = self._pieces()
        self._admit(before, pieces)
        self._guard.begin(self._deployments)
        with self._ending():
            for matches in self._guard.matches(iter(found())):
                pieces.add(matches)
            return self._deliver(pieces)

    def _pieces(self) -> Pieces:
        return Pieces(by_end=len(self.program.queries) == 1 and self._deployments.comes_by_end)

    def advance(self, time: int) -> Matches:
        """No event that ends before `time` will come (it would be late): give the matches that waited to know.

        Args:
            time: No event that ends before this time will come.
        """
        if not isinstance(time, SupportsIndex) or not -(2**63) <= time.__index__() < 2**63:
            raise UsageError(f"a time is a number of ticks, an integer of 64 bits, not {time!r}")
        with self._at_work():
            passed = self._aside.passed(time)
            if self._since is None or time > self._since[0]:
                self._since = (time, -(2**63))
            return self._waited(passed, partial(self._deployments.advance, time))

    def finish(self) -> Matches:
        """The stream has ended: give what waited for that, and close all subscriptions."""
        if self._queue is not None:
            self._queue.close()
        with self._at_work():
            self._is_finished = True
            found = self._waited(self._aside.rest(), self._deployments.finish)
            self._subscriptions.close()
            return found

    @property
    def counters(self) -> dict[str, int]:
        """Events taken and rejected, and what the engine counts."""
        with self._lock:
            own = {"events": self.events, "rejected": self.rejected}
            if len(self._aside):
                own["set aside"] = len(self._aside)
            if self._queue is not None:
                own |= {"queued": self.queued, "held": self._queue.held, "refused": self._queue.refused}
            limited = Counter(self._guard.counters)
            if self._queue is not None and self._queue.left_out:
                limited.update({"shed": self._queue.left_out, "shed unread": self._queue.left_out})
            return {**self._deployments.counters, **limited, **own}

    @property
    def queued(self) -> int:
        """The number of events queued or being processed; available immediately, even during a push."""
        return 0 if self._queue is None else self._queue.waiting

    @property
    def statistics(self) -> Statistics:
        """Rates by type and how often conditions hold, measured in a sample of what passed since a query came or went.

        It begins after a thousand events; give it to `weft.explain`, or `write` it for `--statistics`.
        """
        with self._lock:
            return self._deployments.statistics

    @property
    def behind(self) -> int:
        """The number of events since the oldest one that a later match may contain, or 0 if no match is pending."""
        with self._lock:
            oldest = self._deployments.oldest()
            return 0 if oldest is None else max(0, self.events - oldest)

    def operators(self) -> list[OperatorStats]:
        """Statistics of the operators: events received, matches emitted, and pending state."""
        with self._lock:
            return self._deployments.operator_stats()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None and not self._is_finished:
            self.finish()
        self._subscriptions.close()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Guard against reentrant pushes, such as from a receiver while matches are still being delivered."""
        with self._lock:
            if self._is_finished:
                raise UsageError("the stream has ended: start another with weft.live(program)")
            if self._is_at_work:
                raise UsageError("a receiver cannot push events: put them aside, and push them when this push is done")
            self._is_at_work = True
            try:
                yield
            finally:
                self._is_at_work = False

    def _deliver(self, found: Pieces) -> Matches:
        for piece in found:
            self._subscriptions.deliver(piece, self._names)
        return Matches(found, self._names)

    # -- queries --------------------------------------------------------------------------------

    def _changing(self) -> AbstractContextManager[None]:
        """Process the queue before queries change, so that drops affect only the old ones."""
        return nullcontext() if self._queue is None or not self._queue.drops else self._queue.emptied()

    def deploy(
        self, program: Programs, name: str | None = None, language: str | None = None, schema: Schema | None = None
    ) -> Deployment:
        """Add queries, given as text, as files or compiled: they see the events from now on.

        `name` is what a nameless query is called, `schema` what is known of types that nobody declares.
        They are checked together with what runs: names, types, rules that would fire each other for ever. When
        something is wrong an error says what, and nothing has changed.

        Args:
            program: What is to be found from now on, as `weft.detect` takes it.
            name: What a nameless query is called.
            language: The language of a text, where its first word does not tell it.
            schema: Event types that the text does not declare itself.
        """
        with self._changing(), self._lock:
            running = self.program

            def compiled(text: str | Path, defined: Defined | None = None) -> tuple[Program, tuple[Diagnostic, ...]]:
                known = running.catalog if schema is None else schema
                if defined is not None:
                    defined = replace(defined, types={**defined_types(running.queries), **defined.types})
                return compile_with_findings(
                    text, language, known, running.time_unit, stem=name, running=running, defined=defined
                )

            addition = merge_programs(program, compiled)
            extended = self.program.extended(addition)
            addition = replace(addition, queries=extended.queries[len(self.program.queries) :])
            deployed = self._deployments.deploy(addition)
            self._set(extended)
            return Deployment(addition, deployed)

    def remove(self, *what: str | Deployment) -> None:
        """Remove queries, by name or as they were deployed. Rules go by the type they define, or by their label.

        Args:
            what: What `deploy` returned, or the name of a query.
        """
        with self._lock:
            self._deployments.remove(self._meant(what))
            left = {id(deployed.query) for deployed in self._deployments.present}
            self._set(replace(self.program, queries=tuple(q for q in self.program.queries if id(q) in left)))

    def _meant(self, what: Sequence[str | Deployment]) -> list[Deployed]:
        present = self._deployments.present
        meant: list[Deployed] = []
        for item in what:
            if isinstance(item, Deployment):
                queries = {id(deployed.query) for deployed in item.deployed}
                own = [deployed for deployed in present if id(deployed.query) in queries]
                if not own:
                    raise UsageError(f"{item!r} is removed already")
            else:
                own = [deployed for deployed in present if deployed.query.is_called(item)]
                if not own:
                    self.program.without(item)  # says which names there are
            meant += own
        return meant

    # -- subscriptions --------------------------------------------------------------------------

    def subscribe(
        self,
        type: str,
        to: Callable[[Match], object] | Queue | ColumnReceiver | str | Path,
        where: str | None = None,
    ) -> Subscription:
        """Deliver the matches of a type (`*`: of all) to a function, a queue or a file, from now on.

        The type is a query's name; for a rule the type that it defines; or a type of the input that queries read or
        declare, whose events come as matches of themselves. `where` is a condition on the fields of the
        match's event: `area = 'hall' and temp > 50`. A file's format is told by its ending (`.jsonl`, `.csv`,
        `.parquet`); a URI (`tcp://…`, `http://…`) is written to through its adapter. What a receiver raises is counted
        and kept in the subscription, and stops nobody.

        Args:
            type: The type of events that are wanted: of a query, or of the input.
            to: A function that is called with each, or a file or URI that they are written to.
            where: A condition on their attributes, as text.
        """
        with self._lock:
            fields = fields_of(self.program, type)
            wanted = None if where is None else compile_filter(where, fields)
            if isinstance(to, str | Path):
                file = growing_sink(to)
                subscription = Subscription(type, None, file.write, wanted, file.close)
            elif isinstance(to, ColumnReceiver):
                subscription = Subscription(type, None, wanted=wanted, take=to.receive_columns)
            elif isinstance(to, Queue):
                subscription = Subscription(type, to.put_nowait, wanted=wanted)
            elif callable(to):
                subscription = Subscription(type, to, wanted=wanted)
            else:
                raise UsageError(f"matches go to a function, a queue or a file, not to a {to.__class__.__name__}")
            self._subscriptions.add(subscription)
            if type != EVERY_TYPE and type not in self.program.names:
                self._event_types = tuple(dict.fromkeys((*self._event_types, type)))
            return subscription


def _renumbered(batch: EventBatch, source: EventSource, first: int, numbers: Int64s) -> EventBatch:
    """Return events with their numbers in the stream; unreadable ones have none."""
    left = np.delete(numbers, [rejected.row for rejected in source.rejected])
    return replace(batch, positions=first + left[batch.positions - first])
