"""A program that runs in this process and can change while it does, and those who subscribe to its matches.

A query that is deployed sees the events that come after it, as if the stream began there. A query that is removed
sees nothing more. Neither changes what the others find.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

import pyarrow as pa

from weft import inputs
from weft.algebra.query import Program
from weft.api import Known, Programs, Schema, choices, compile_with_findings, report_rejected, together
from weft.connectors.writers import MatchFile
from weft.detection import scene_in
from weft.drawing.matches import matches_html
from weft.errors import Diagnostic, UsageError, did_you_mean
from weft.languages.content.lower import Fields, compile_filter
from weft.languages.defined import Defined, defined_types
from weft.optimizer.pipeline import DEFAULT, Choices
from weft.runtime.deployments import Deployed, Deployments
from weft.runtime.events import Rejected
from weft.runtime.matches import Match, MatchBatch
from weft.runtime.results.event_keys import EventKeys
from weft.runtime.subscriptions import EVERY_TYPE, Subscription, Subscriptions
from weft.runtime.writing.match_rows import KeyWords, rows_to_matches, to_arrow

EMPTY = Program("", ())


@runtime_checkable
class Queue(Protocol):
    """What matches can be put into without waiting, as `queue.Queue` and `asyncio.Queue` are."""

    def put_nowait(self, item: Any, /) -> object:
        """Put it in, or raise an error."""


class Matches:
    """Matches in match order; they are made into objects, or into a table, when asked for."""

    def __init__(self, found: Sequence[MatchBatch], names: Sequence[str], keys: KeyWords | None = None) -> None:
        self._found = found
        self._names = names
        # Keys of events are forgotten later: what is made of them is made now.
        self._table = None if keys is None else to_arrow(found, names, keys)

    def __len__(self) -> int:
        return sum(map(len, self._found))

    def __iter__(self) -> Iterator[Match]:
        return rows_to_matches(self.to_arrow())

    def to_arrow(self) -> pa.Table:
        """One row for each match, with the columns that `weft match` writes."""
        return to_arrow(self._found, self._names) if self._table is None else self._table

    def _repr_html_(self) -> str:
        return matches_html(scene_in(self))

    def __repr__(self) -> str:
        return f"<{len(self):,} match{'es' * (len(self) != 1)}>"


class Deployment:
    """What was deployed at once; it can be removed as one."""

    def __init__(self, program: Program, deployed: Sequence[Deployed]) -> None:
        self.program = program
        self.deployed = deployed

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its queries; a rule's is the type that it defines."""
        return self.program.names

    def __repr__(self) -> str:
        return f"<Deployment of {', '.join(self.names)}>"


class LiveProgram:
    """A running program; see `weft.live`. Its methods may be called from several threads, and by receivers."""

    def __init__(
        self,
        time: str = "ts",
        type: str = "type",
        rejects: list[Rejected] | None = None,
        choices: Choices = DEFAULT,
        order: Sequence[str] = (),
        key: Sequence[str] = (),
    ) -> None:
        self._set(EMPTY)
        self._order, self._keys = tuple(order), EventKeys(tuple(key))
        self.events = 0  # taken so far: the position of the next one
        self.rejected = 0
        self._time, self._type, self._rejects = time, type, rejects
        self._deployments = Deployments(choices)
        self._subscriptions = Subscriptions()
        self._since: tuple[int, int] | None = None  # the end and start of the last event
        self._lock = threading.RLock()
        self._is_at_work = False
        self._is_finished = False

    # -- events ---------------------------------------------------------------------------------

    def push(self, events: Any) -> Matches:
        """Take events (as `weft.detect` does), and give the matches that they make certain.

        Events of one push are put into stream order. Those that belong before events of earlier pushes are late:
        they are rejected. Subscribers have their matches when this returns.
        """
        with self._at_work():
            source = inputs.open_source(
                events,
                self.program,
                time=self._time,
                type=self._type,
                order=self._order,
                key=self._keys.names,
                columns=self._deployments.columns,
            ).continued(self.events, self._since)
            found: list[MatchBatch] = []
            for batch in source:
                if len(batch):
                    self.events += len(batch)
                    self._since = int(batch.ends[-1]), int(batch.starts[-1])
                    self._keys.add(batch)
                    found += self._deployments.push(batch)
            self.rejected += len(source.rejected)
            report_rejected(source.rejected, self._rejects)
            return self._deliver(found)

    def advance(self, time: int) -> Matches:
        """No event that ends before `time` will come (it would be late): give the matches that waited to know."""
        with self._at_work():
            if self._since is None or time > self._since[0]:
                self._since = (time, -(2**63))
            return self._deliver(self._deployments.advance(time))

    def finish(self) -> Matches:
        """The stream has ended: give what waited for that, and close all subscriptions."""
        with self._at_work():
            self._is_finished = True
            found = self._deliver(self._deployments.finish())
            self._subscriptions.close()
            return found

    @property
    def counters(self) -> dict[str, int]:
        """Events taken and rejected, and what the engine counts."""
        with self._lock:
            return {**self._deployments.counters, "events": self.events, "rejected": self.rejected}

    @property
    def behind(self) -> int:
        """How many events ago the oldest came that a later match may tell of; 0: nothing waits."""
        with self._lock:
            oldest = self._deployments.oldest()
            return 0 if oldest is None else max(0, self.events - oldest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None and not self._is_finished:
            self.finish()
        self._subscriptions.close()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Events come one after the other: not from a receiver while others still wait for theirs."""
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

    def _deliver(self, found: list[MatchBatch]) -> Matches:
        keys = self._keys.words
        self._subscriptions.deliver(found, self._names, keys)
        matches = Matches(found, self._names, keys)
        self._keys.forget(self._deployments.oldest)
        return matches

    # -- queries --------------------------------------------------------------------------------

    def deploy(
        self, program: Programs, name: str | None = None, language: str | None = None, schema: Schema | None = None
    ) -> Deployment:
        """Add queries, given as text, as files or compiled: they see the events from now on.

        `name` is what a nameless query is called, `schema` what is known of types that nobody declares.
        They are checked together with what runs: names, types, rules that would fire each other for ever. When
        something is wrong an error says what, and nothing has changed.
        """
        with self._lock:
            running = self.program

            def compiled(text: str | Path, defined: Defined | None = None) -> tuple[Program, tuple[Diagnostic, ...]]:
                known = running.catalog if schema is None else schema
                if defined is not None:
                    defined = replace(defined, types={**defined_types(running.queries), **defined.types})
                return compile_with_findings(
                    text, language, known, running.time_unit, stem=name, running=running, defined=defined
                )

            addition = together(program, compiled)
            extended = self.program.extended(addition)
            addition = replace(addition, queries=extended.queries[len(self.program.queries) :])
            deployed = self._deployments.deploy(addition)
            self._set(extended)
            return Deployment(addition, deployed)

    def remove(self, *what: str | Deployment) -> None:
        """Remove queries, by name or as they were deployed. Rules go by the type they define, or by their label."""
        with self._lock:
            self._deployments.remove(self._meant(what))
            self._set(replace(self.program, queries=tuple(d.query for d in self._deployments.present)))

    def _set(self, program: Program) -> None:
        self.program = program
        self._names = program.names

    def _meant(self, what: Sequence[str | Deployment]) -> list[Deployed]:
        present = self._deployments.present
        meant: list[Deployed] = []
        for item in what:
            if isinstance(item, Deployment):
                own = [deployed for deployed in item.deployed if deployed in present]
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
        self, type: str, to: Callable[[Match], object] | Queue | str | Path, where: str | None = None
    ) -> Subscription:
        """Deliver the matches of a type (`*`: of all) to a function, a queue or a file, from now on.

        The type is a query's name; for a rule the type that it defines. `where` is a condition on the fields of the
        match's event: `area = 'hall' and temp > 50`. A file's format is told by its ending (`.jsonl`, `.csv`,
        `.parquet`). What a receiver raises is counted and kept in the subscription, and stops nobody.
        """
        with self._lock:
            fields = self._fields(type)
            wanted = None if where is None else compile_filter(where, fields)
            if isinstance(to, str | Path):
                file = MatchFile(to)
                subscription = Subscription(type, None, file.write, wanted, file.close)
            elif isinstance(to, Queue):
                subscription = Subscription(type, to.put_nowait, wanted=wanted)
            elif callable(to):
                subscription = Subscription(type, to, wanted=wanted)
            else:
                raise UsageError(f"matches go to a function, a queue or a file, not to a {to.__class__.__name__}")
            self._subscriptions.add(subscription)
            return subscription

    def _fields(self, type: str) -> Fields | None:
        """The fields that matches of a type have now; None: any may be there."""
        if type == EVERY_TYPE:
            return None
        if type not in self.program.names:
            hint = did_you_mean(type, self.program.names) or "nothing is deployed"
            raise UsageError(f"no query or rule gives {type!r}: deploy it first; {hint}")
        fields: dict[str, Any] = {}
        for query in self.program.queries:
            if query.name == type:
                for name, kind in query.field_kinds.items():
                    fields[name] = kind if fields.get(name, kind) == kind else None
        return fields


def live(
    program: Programs | None = None,
    *,
    time: str = "ts",
    type: str = "type",
    rejects: list[Rejected] | None = None,
    order: str | Sequence[str] = (),
    key: str | Sequence[str] = (),
    optimize: bool = True,
    statistics: Known = None,
) -> LiveProgram:
    """Start a program in this process: push events, and deploy and remove queries while it runs.

    With `with weft.live(program) as running:` the stream ends with the block. Events that cannot be read take no
    part: they are appended to `rejects`, or warned about if it is None. `order` names columns that decide between
    equal times of one push, `key` those that ids are made of instead of positions; for these, `optimize` and
    `statistics` see `detect`.
    """
    columns = ([names] if isinstance(names, str) else list(names) for names in (order, key))
    running = LiveProgram(time, type, rejects, choices(optimize, statistics), *columns)
    if program is not None:
        running.deploy(program)
    return running
