"""What a live program is while it runs; how it is changed, saved and loaded, so that nothing it waits for is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from weft.algebra.query import AnyQuery, Program
from weft.algebra.stored import program_from_plain, program_to_plain
from weft.api import Known, Programs, merge_programs
from weft.connectors.saved import read_saved, write_saved
from weft.described.checking import check
from weft.errors import InputError, UsageError
from weft.live_programs.set_aside import SetAside
from weft.optimizer.pipeline import Choices
from weft.plan.changes import Change, changed
from weft.runtime.data import blocks
from weft.runtime.data.events import Rejected
from weft.runtime.execution.layer_state import with_name
from weft.runtime.lanes.sharing import Sharing
from weft.runtime.limits.budgets import Given
from weft.runtime.limits.guarding import Guard, Limits
from weft.runtime.limits.shedding import Shed
from weft.runtime.live.deployments import Deployments
from weft.runtime.live.lanes import LANES, LanedDeployments, deployments_of
from weft.runtime.options import USUAL, EventColumns, Options
from weft.runtime.reading.fronts import Front
from weft.runtime.store.pages import pages_below, pages_under
from weft.schema import Catalog

EMPTY = Program("", ())
HELD = "held"  # the page of events that are set aside
SAVED = 1  # the layout of saved programs: another number for another one


class LiveState:
    """The running queries with their state, and the progress of the stream."""

    def __init__(self, options: Options = USUAL, rejects: list[Rejected] | None = None) -> None:
        self._options, self._rejects, self._guard = options, rejects, Guard(())
        self._set(EMPTY)
        self.events = 0  # taken so far: the position of the next one
        self.rejected = 0
        self._deployments = self._no_deployments()
        self._since: tuple[int, int] | None = None  # the end and start of the last event
        self._aside = SetAside(options.arrival.max_jump)
        self._lock = threading.RLock()
        self._is_at_work = False
        self._is_finished = False
        self._pages: dict[str, bytes] = {}  # of the state as it was saved last: the next time only what changed is made

    @property
    def max_jump(self) -> float | None:
        """The seconds by which an event may be ahead of all others without being set aside, or None for any number."""
        return self._aside.max_jump

    @max_jump.setter
    def max_jump(self, seconds: float | None) -> None:
        with self._lock:
            self._aside.max_jump = seconds

    def join(self) -> None:
        """Wait until all pushed events are processed."""

    def _changing(self) -> AbstractContextManager[None]:
        """What new queries wait for."""
        return nullcontext()

    @property
    def lanes(self) -> int:
        """The number of lanes that share the work."""
        return self._deployments.lane_count

    @property
    def state_bytes(self) -> int:
        """The bytes of memory that all queries hold now, counted."""
        return self._deployments.state_bytes

    def _no_deployments(self) -> Deployments | LanedDeployments:
        deployments = deployments_of(self._options.sharing, self._options.choices)
        deployments.identify_by(self._options.columns.key)
        return deployments

    def _begin_anew(self) -> None:
        """Restart all queries at the next event, whatever its time."""
        self._deployments, self._pages, self._since = self._no_deployments(), {}, None
        self._deployments.deploy(self.program)
        self._aside.begin_anew()

    def _set(self, program: Program) -> None:
        self.program = program
        self._names = program.names
        if not self._options.limits.is_none:
            self._guard = self._options.limits.guard(program.queries, self._guard)

    def change(self, program: Programs) -> Change:
        """Replace the running program by another one; return what becomes of each query.

        Queries that stay the same keep their state, under another name too; new ones begin with the next event, and
        those that are not in it end. No match of a query that stays is lost or duplicated. Subscriptions stay.
        """
        with self._changing(), self._lock:
            wanted = merge_programs(program)
            if self.program.queries and wanted.time_unit != self.program.time_unit:
                raise UsageError("the programs count time in different units: compile them with one time_unit")
            change = changed(self.program.queries, wanted.queries)
            ending = {id(self.program.queries[place]) for place in change.gone}
            gone = [one for one in self._deployments.present if id(one.query) in ending]
            self._deployments.check(wanted, [wanted.queries[place] for place in change.begins], gone)
            self._deployments.remove(gone)
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

    def save(self, path: str | Path, *, compressed: bool = True) -> None:
        """Write the running queries with their state to a file, which `weft.LiveProgram.load` restores.

        Subscriptions are not saved: they belong to this process. Without compression it is quicker, and the file
        larger.
        """
        self.join()
        with self._lock:
            if self._is_at_work:
                raise UsageError("a receiver cannot save: save when this push is done")
            about = {
                "version": SAVED,
                "program": program_to_plain(self.program),
                "events": self.events,
                "rejected": self.rejected,
                "since": self._since,
                "columns": list(self._options.columns.named.values()),
                "finished": self._is_finished,
                "deployments": self._deployments.structure(),
                "max_jump": self._aside.max_jump,
                "front": self._aside.front.to_plain(),
                "before": self._aside.before,
            }
            held = {} if self._aside.held is None else {HELD: blocks.pack(self._aside.held)}
            write_saved(path, about, self._snapshot() | held, compressed=compressed)

    def _snapshot(self) -> dict[str, bytes]:
        """Return all pages of the state."""
        pages = pages_under("matcher/", self._deployments.snapshot())
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
        budget: Given = None,
        shed: Shed | None = None,
        threads: int | None = None,
    ) -> Self:
        """Restore a saved program; with another `program`, change to it.

        See `change` for what is kept then. The other options are as for `weft.live`; there are as many lanes as before.
        """
        check(locals())
        sharing, chosen = Sharing(threads=threads), Choices.of(optimize, statistics)
        options = Options(sharing=sharing, choices=chosen, limits=Limits(budget, shed))
        running = cls.restored(path, options, rejects)
        if program is not None:
            running.change(program)
        return running

    @classmethod
    def restored(cls, path: str | Path, options: Options, rejects: list[Rejected] | None) -> Self:
        """Restore a saved program with its columns and its number of lanes; the other options may be new."""
        about, pages = read_saved(path)
        with _told_of(path):
            if about["version"] != SAVED:
                raise UsageError("it was saved by another version of weft, whose state this one cannot read")
            time, type, order, key = about["columns"]
            columns = EventColumns(time, type, tuple(order), tuple(key))
            lanes = len(about["deployments"].get(LANES, [None]))
            sharing = Sharing(lanes=lanes, threads=options.sharing.threads)
            running = cls(replace(options, columns=columns, sharing=sharing), rejects)
            running._load_aside(about, pages.pop(HELD, None))
            running._set(program_from_plain(about["program"]))
            running._deployments.restore(
                about["deployments"], pages_below("matcher/", pages), running.program.time_unit
            )
            running._set(running._with_running_queries())
            running.events, running.rejected = about["events"], about["rejected"]
            running._since = None if about["since"] is None else (about["since"][0], about["since"][1])
            running._is_finished, running._pages = about["finished"], pages
        return running

    def _load_aside(self, about: Mapping[str, Any], held: bytes | None) -> None:
        """Restore the events that were set aside."""
        self._aside.max_jump = about["max_jump"]
        self._aside.front = replace(Front.from_plain(about["front"]), agree=1)
        self._aside.held = None if held is None else blocks.unpack(held)
        self._aside.before = about.get("before")

    def _with_running_queries(self) -> Program:
        """The program, with the queries as they are deployed in place of equal ones."""
        left = [one.query for one in self._deployments.present]
        queries = self.program.queries
        found = [left.pop(next(at for at, other in enumerate(left) if other == query)) for query in queries]
        return replace(self.program, queries=tuple(found))


@contextmanager
def _told_of(path: str | Path) -> Iterator[None]:
    """Report errors in a saved program with the name of its file."""
    try:
        yield
    except (UsageError, InputError) as problem:
        raise type(problem)(f"{path}: {problem}") from None
    except Exception:
        raise InputError(f"{path} is damaged: it is not what live.save(path) writes") from None
