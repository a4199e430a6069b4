"""A program that runs in this process and can change while it does, and those who subscribe to its matches.

A query that is deployed sees the events that come after it, as if the stream began there. A query that is removed
sees nothing more. Neither changes what the others find.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from weft import inputs
from weft.algebra.query import AnyQuery, Program
from weft.algebra.stored import program_from_plain, program_to_plain
from weft.api import Known, Programs, Schema, choices, compile_with_findings, report_rejected, together
from weft.connectors.saved import read_saved, write_saved
from weft.connectors.writers import MatchFile
from weft.errors import Diagnostic, InputError, UsageError, did_you_mean
from weft.languages.content.lower import Fields, compile_filter
from weft.languages.defined import Defined, defined_types
from weft.live_matches import Deployment, Matches, Queue
from weft.optimizer.pipeline import DEFAULT, Choices
from weft.plan.changes import Change, changed
from weft.runtime.events import Rejected
from weft.runtime.live.deployments import Deployed, Deployments
from weft.runtime.live.subscriptions import EVERY_TYPE, Subscription, Subscriptions
from weft.runtime.matches import Match, MatchBatch
from weft.runtime.results.event_keys import EventKeys
from weft.runtime.running import pages_below, pages_under
from weft.runtime.state.structure import with_name
from weft.schema import Catalog
from weft.statistics import Statistics

EMPTY = Program("", ())
SAVED = 1  # the layout of saved programs: another number for another one


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
        self._pages: dict[str, bytes] = {}  # of the state as it was saved last: the next time only what changed is made

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
    def statistics(self) -> Statistics:
        """Rates by type and how often conditions hold, measured in a sample of what passed since a query came or went.

        It begins after a thousand events; give it to `weft.explain`, or `write` it for `--statistics`.
        """
        with self._lock:
            return self._deployments.statistics

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
            left = {id(deployed.query) for deployed in self._deployments.present}
            self._set(replace(self.program, queries=tuple(q for q in self.program.queries if id(q) in left)))

    def change(self, program: Programs) -> Change:
        """Let another program take the place of the one that runs; what it says of each query is given back.

        Queries that stay the same keep their state, under another name too; the others begin with the next event, and
        those that are not in it end. Nothing is lost or doubled for queries that stay. Subscriptions stay.
        """
        with self._lock:
            wanted = together(program)
            if self.program.queries and wanted.time_unit != self.program.time_unit:
                raise UsageError("the programs count time in different units: compile them with one time_unit")
            change = changed(self.program.queries, wanted.queries)
            self._deployments.check(wanted)
            gone = {id(self.program.queries[place]) for place in change.gone}
            self._deployments.remove([one for one in self._deployments.present if id(one.query) in gone])
            if change.renamed:
                self._rename(change.renamed)
            stays = [with_name(self.program.queries[place], change.renamed) for place, _ in change.stays]
            kept = replace(self.program, queries=tuple(self._running(query) for query in stays))
            addition = replace(wanted, queries=tuple(wanted.queries[place] for place in change.begins))
            both = kept.extended(replace(addition, catalog=Catalog())) if addition.queries else kept
            added = both.queries[len(kept.queries) :]
            if added:
                self._deployments.deploy(replace(addition, queries=added))
            places = [*(place for _, place in change.stays), *change.begins]
            ordered = [query for _, query in sorted(zip(places, both.queries, strict=True), key=lambda item: item[0])]
            self._set(replace(wanted, queries=tuple(ordered)))
            return change

    def _running(self, query: AnyQuery) -> AnyQuery:
        """The query as it is deployed: the very one."""
        return next(one.query for one in self._deployments.present if one.query == query)

    def _rename(self, names: Mapping[str, str]) -> None:
        pages, structure = pages_below("matcher/", self._snapshot()), self._deployments.structure()
        self._deployments.restore(structure, pages, self.program.time_unit, names)

    # -- state ----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write all that runs and what it waits for to a file, from which `weft.live.load` goes on.

        Subscriptions are not saved: they are this process's.
        """
        with self._lock:
            if self._is_at_work:
                raise UsageError("a receiver cannot save: save when this push is done")
            about = {
                "version": SAVED,
                "program": program_to_plain(self.program),
                "events": self.events,
                "rejected": self.rejected,
                "since": self._since,
                "columns": [self._time, self._type, self._order, self._keys.names],
                "finished": self._is_finished,
                "deployments": self._deployments.structure(),
            }
            write_saved(path, about, self._snapshot())

    def _snapshot(self) -> dict[str, bytes]:
        """All pages of the state."""
        pages = pages_under("matcher/", self._deployments.snapshot()) | pages_under("keys/", self._keys.snapshot())
        self._pages.update({name: page for name, page in pages.items() if page is not None})
        for name in [name for name, page in pages.items() if page is None]:
            self._pages.pop(name, None)
        return self._pages

    @classmethod
    def load(
        cls,
        path: str | Path,
        program: Programs | None = None,
        *,
        rejects: list[Rejected] | None = None,
        optimize: bool = True,
        statistics: Known = None,
    ) -> LiveProgram:
        """A program that goes on where the one stood that was saved; with another `program`, changed to that.

        See `change` for what is kept then. `rejects`, `optimize` and `statistics` are as for `weft.live`.
        """
        about, pages = read_saved(path)
        try:
            if about["version"] != SAVED:
                raise UsageError(f"{path} was saved by another version of weft, whose state this one cannot read")
            time, type_, order, key = about["columns"]
            running = cls(time, type_, rejects, choices(optimize, statistics), order, key)
            running._set(program_from_plain(about["program"]))
            running._deployments.restore(
                about["deployments"], pages_below("matcher/", pages), running.program.time_unit
            )
            running._set(running._with_running_queries())
            running._keys.load(pages_below("keys/", pages))
            running.events, running.rejected = about["events"], about["rejected"]
            running._since = None if about["since"] is None else (about["since"][0], about["since"][1])
            running._is_finished, running._pages = about["finished"], pages
        except (LookupError, ValueError, TypeError, AttributeError):
            raise InputError(f"{path} is damaged: it is not what live.save(path) writes") from None
        if program is not None:
            running.change(program)
        return running

    def _with_running_queries(self) -> Program:
        """The program, with the queries as they are deployed in place of equal ones."""
        left = [one.query for one in self._deployments.present]
        queries = self.program.queries
        found = [left.pop(next(at for at, other in enumerate(left) if other == query)) for query in queries]
        return replace(self.program, queries=tuple(found))

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


live.load = LiveProgram.load  # type: ignore[attr-defined] # next to what it belongs to
