"""Enforcement of limits around a matcher: sheds its events, counts and samples its matches, watches its state."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from weft.algebra.query import AnyQuery
from weft.errors import BudgetError, UsageError
from weft.plan.dropping import kept_whole
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.limits.budgets import EVERYTHING, NO_BUDGET, Budget, Budgets, Given, budgets_of
from weft.runtime.limits.shedding import MOST, STEP, Shed, Shedder
from weft.runtime.watching.left_out import counter_name

Clock = Callable[[], float]
Rows = npt.NDArray[np.int64]


class Held(Protocol):
    """Owner of state: a matcher, or several."""

    @property
    def state_bytes(self) -> int:
        """The bytes of memory that all queries use."""

    def bytes_of_query(self, name: str) -> int:
        """Return the bytes that one query uses."""

    def seconds_of_query(self, name: str) -> float:
        """Return the seconds spent for one query since the first call."""

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """Evict the oldest partial matches of queries that exceed `limit` bytes; return how many, by query."""


LOOK_EVERY = 8  # batches: to count all bytes costs about as much as a small batch


@dataclass(frozen=True)
class Limits:
    """All limits of a program, as a user sets them."""

    budget: Given = None
    shed: Shed | None = None

    @property
    def is_none(self) -> bool:
        """Whether there is no limit."""
        return self.budget is None and self.shed is None

    def shared(self, lanes: int) -> Limits:
        """Return the limits of each lane: its part of the bytes, of the events and of the matches of a batch."""
        if self.is_none or lanes == 1:
            return self
        shed = self.shed
        if shed is not None and shed.above is not None:
            shed = replace(shed, above=-(-shed.above // lanes))
        budget = self.budget
        if isinstance(budget, Mapping):
            return Limits({name: _parts(own, lanes) for name, own in budget.items()}, shed)
        return Limits(None if budget is None else _parts(budget, lanes), shed)

    def guard(self, queries: Sequence[AnyQuery], before: Guard | None = None) -> Guard:
        """Create the guard of a program; `before` is the guard of its previous version, whose counts continue."""
        if before is not None and isinstance(self.budget, Mapping):
            # Queries come and go: a budget by name is for one that is there.
            names = {query.name for query in queries}
            kept = {name: own for name, own in self.budget.items() if name == EVERYTHING or name in names}
            return Guard(queries, budgets_of(kept, list(names)), self.shed, before=before)
        return Guard(queries, budgets_of(self.budget, [query.name for query in queries]), self.shed, before=before)


NO_LIMITS = Limits()


def _parts(given: Budget | Sequence[Budget], lanes: int) -> list[Budget]:
    def part(whole: int | None) -> int | None:
        return None if whole is None else -(-whole // lanes)

    budgets = [given] if isinstance(given, Budget) else given
    return [
        replace(own, state_bytes=part(own.state_bytes), matches_per_batch=part(own.matches_per_batch))
        for own in budgets
    ]


class Guard:
    """Enforces the budgets of a program. Events pass through `events`, matches through `matches`, batch by batch."""

    def __init__(
        self,
        queries: Sequence[AnyQuery],
        budgets: Budgets = NO_BUDGET,
        shed: Shed | None = None,
        clock: Clock = time.perf_counter,
        before: Guard | None = None,
    ) -> None:
        self._queries, self._budgets = queries, budgets
        whole = budgets.get(EVERYTHING, ())
        self._state = [
            (name, budget) for name, given in budgets.items() for budget in given if budget.state_bytes is not None
        ]
        _check_counted(queries, [name for name, _ in self._state], "bytes")
        self._seconds = [budget for budget in whole if budget.seconds_per_batch is not None]
        self._own_seconds = [
            (name, budget.seconds_per_batch)
            for name, given in budgets.items()
            for budget in given
            if name != EVERYTHING and budget.seconds_per_batch is not None
        ]
        _check_counted(queries, [name for name, _ in self._own_seconds], "seconds")
        sheds = any(budget.action == "shed" for budget in whole)
        own = Shed(share=0.0) if sheds and shed is None else shed
        self.shedder = None if own is None else Shedder(own, queries)
        self._meters = [Meter(name, budget) for name, given in budgets.items() for budget in given if _counts(budget)]
        self._clock = clock
        self._started, self._batches = 0.0, 0
        self._counted: Counter[str] = Counter() if before is None else Counter(before.counters)
        self._told: Counter[str] = Counter()
        dropped = [(name, own) for name, own in self._state if own.action == "drop-oldest"]
        kept = kept_whole(queries) if dropped else {}
        _check_dropped(queries, kept, dropped)
        self._losing = {query.name for query in queries}.difference(kept)
        self._held: Held | None = None
        self._taken: dict[str, float] = {}  # seconds of queries, when the batch began

    @property
    def drops(self) -> bool:
        """Whether partial matches may be evicted."""
        return any(budget.action == "drop-oldest" for _, budget in self._state)

    @property
    def is_idle(self) -> bool:
        """Whether there is no limit to enforce."""
        return self.shedder is None and not self._budgets

    def events(self, batch: EventBatch, held: Held) -> EventBatch:
        """Return the events of a new batch that are to be matched."""
        self.begin(held)
        return batch if self.shedder is None else self.shedder.take(batch)

    def begin(self, held: Held) -> None:
        """Begin a batch, or work that time or the end of the input causes without events."""
        self._started, self._held = self._clock(), held
        self._taken = {name: held.seconds_of_query(name) for name, _ in self._own_seconds}
        for meter in self._meters:
            meter.begin()

    def newly_counted(self) -> dict[str, int]:
        """Return by how much the counters increased since the last call."""
        now = Counter(self.counters)
        fresh, self._told = now - self._told, now
        return dict(fresh)

    def matches(self, found: Iterator[MatchBatch]) -> Iterator[MatchBatch]:
        """Yield the matches that are emitted."""
        for piece in found:
            if self.shedder is not None:
                self.shedder.found([piece])
            left = piece
            for meter in self._meters:
                left = meter.kept(left)
            if len(left):
                yield left
            self._check_seconds()

    def done(self, held: Held) -> None:
        """Check the time that a batch took, and the size of the state after it."""
        seconds = self._clock() - self._started
        self._check_seconds()
        if self.shedder is not None:
            self.shedder.took(seconds)
        for budget in self._seconds:
            if budget.action == "shed" and budget.seconds_per_batch is not None:
                self._adjust(seconds / budget.seconds_per_batch)
        self._batches += 1
        if self._state and (self._batches <= 2 or self._batches % LOOK_EVERY == 0):
            self._check_state(held)

    def _check_seconds(self) -> None:
        seconds = self._clock() - self._started
        for budget in self._seconds:
            limit = budget.seconds_per_batch
            if budget.action == "stop" and limit is not None and seconds > limit:
                raise BudgetError(
                    f"a batch takes longer than the {limit:g} seconds of the budget: give it more, smaller batches, "
                    f"or let it shed events ({budget.choice('shed')})"
                )
        if self._held is None:
            return
        for name, limit in self._own_seconds:
            if self._held.seconds_of_query(name) - self._taken[name] > limit:
                raise BudgetError(
                    f"{name} takes longer for a batch than the {limit:g} seconds of its budget: give it more, or "
                    "smaller batches; a window or a key makes it look at less"
                )

    def _check_state(self, held: Held) -> None:
        for name, budget in self._state:
            limit = budget.state_bytes or 0
            if budget.action == "drop-oldest":
                names = self._losing if name == EVERYTHING else {name}
                for who, count in held.drop_oldest(limit, names).items():
                    self._counted.update({"dropped": count, counter_name("dropped", who): count})
                continue
            size = held.state_bytes if name == EVERYTHING else held.bytes_of_query(name)
            if budget.action == "shed":
                self._adjust(size / limit)
            elif size > limit:
                who = "the program" if name == EVERYTHING else name
                raise BudgetError(
                    f"{who} holds {size:,} bytes, and its budget is {limit:,}: windows bound what is kept, "
                    f"and so do {budget.choice('shed')} and {budget.choice('drop-oldest')}"
                )

    def _adjust(self, load: float) -> None:
        """Shed more while the load is above the limit, less when it is well below."""
        if self.shedder is not None:
            step = STEP if load > 1 else -STEP if load < 0.5 else 0.0
            self.shedder.share = min(MOST, max(0.0, self.shedder.share + step))

    @property
    def counter_names(self) -> list[str]:
        """Return the possible names of the counters by query."""
        names = [query.name for query in self._queries]
        sampled = [counter_name("sampled", name) for name in names if self._meters]
        dropped = [counter_name("dropped", name) for name in names if self.drops]
        plan = () if self.shedder is None else self.shedder.plan
        shed = [counter_name("shed", own.query, leaf.name) for own in plan for leaf in own.leaves]
        return list(dict.fromkeys([*shed, *sampled, *dropped]))

    @property
    def counters(self) -> dict[str, int]:
        """Numbers of lost items: events, matches by query, partial matches."""
        sampled: Counter[str] = Counter()
        for meter in self._meters:
            sampled.update({counter_name("sampled", name): count for name, count in meter.left_out.items()})
            sampled["sampled"] += meter.left_out.total()
        shed: Mapping[str, int] = {} if self.shedder is None else self.shedder.counters
        return dict(Counter(shed) + sampled + self._counted)


def _check_counted(queries: Sequence[AnyQuery], names: Sequence[str], counted: str) -> None:
    """Reject a budget of bytes or seconds for one of several queries that share them."""
    by_name = {query.name: query for query in queries}
    for query in (by_name[name] for name in names if name in by_name):
        alike = [other.name for other in queries if type(other) is type(query)]
        if query.shares_state is not None and len(alike) > 1:
            raise UsageError(
                f"the {counted} of {query.name!r} alone cannot be counted: {query.shares_state}; "
                "give the budget to all queries together"
            )


def _check_dropped(queries: Sequence[AnyQuery], kept: Mapping[str, str], dropped: Sequence[tuple[str, Budget]]) -> None:
    """Reject eviction where it could add a match, or where state cannot be attributed to a query."""
    for name, budget in dropped if queries else ():
        asked = [query.name for query in queries if name in (EVERYTHING, query.name)]
        if all(query in kept for query in asked):
            raise UsageError(
                f"no partial matches can be dropped of {', '.join(dict.fromkeys(asked))}: {kept[asked[0]]}, so that "
                f"a loss could invent a match; choose {budget.choice('stop')}, or {budget.choice('shed')} for all "
                "queries together"
            )


def _counts(budget: Budget) -> bool:
    return budget.matches_per_event is not None or budget.matches_per_batch is not None


class Meter:
    """Counts the matches of a query, or of all, against one budget."""

    def __init__(self, name: str, budget: Budget) -> None:
        self._name = name
        self._budget = budget
        self._batch = 0  # matches of this batch so far
        self._event: tuple[int, int] | None = None  # the last event, and how many matches of it were given out
        self.left_out: Counter[str] = Counter()

    def begin(self) -> None:
        """Begin a new batch."""
        self._batch, self._event = 0, None

    def kept(self, found: MatchBatch) -> MatchBatch:
        """Yield the matches that are within the budget."""
        own = self._own(found)
        if not len(own):
            return found
        kept = self._within_batch(self._within_event(own, found), found)
        if len(kept) == len(own):
            return found
        gone = np.setdiff1d(own, kept)
        lost = found.take(gone)
        self.left_out.update(lost.counts)
        return found.take(np.setdiff1d(np.arange(len(found)), gone))

    def _own(self, found: MatchBatch) -> Rows:
        if self._name == EVERYTHING:
            return np.arange(len(found))
        if found.codes is None:
            return np.arange(len(found) if found.query == self._name else 0)
        return np.flatnonzero(np.array([name == self._name for name in found.queries])[found.codes])

    def _within_event(self, rows: Rows, found: MatchBatch) -> Rows:
        limit = self._budget.matches_per_event
        if limit is None:
            return rows
        ends = found.ends if found.lasts is None else found.lasts
        events = np.asarray(ends, np.int64)[rows]
        kept = []
        edges = np.flatnonzero(np.diff(events)) + 1
        for part in np.split(rows, edges):
            event = int(ends[part[0]])
            before = self._event[1] if self._event is not None and self._event[0] == event else 0
            room = max(0, limit - before)
            if len(part) > room:
                self._stop(found, f"one event completes more than the {limit:,} matches of the budget")
                part = _some(part, room)
            self._event = event, before + len(part)
            kept.append(part)
        return np.concatenate(kept)

    def _within_batch(self, rows: Rows, found: MatchBatch) -> Rows:
        limit = self._budget.matches_per_batch
        if limit is None:
            return rows
        room = max(0, limit - self._batch)
        if len(rows) > room:
            self._stop(found, f"a batch completes more than the {limit:,} matches of the budget")
            rows = _some(rows, room)
        self._batch += len(rows)
        return rows

    def _stop(self, found: MatchBatch, what: str) -> None:
        if self._budget.action == "stop":
            names = ", ".join(dict.fromkeys(found.query_names))
            some = self._budget.choice("sample")
            raise BudgetError(f"{names}: {what}; a window or a condition makes them fewer, {some} gives some")


def _some(rows: Rows, count: int) -> Rows:
    """Return `count` of the rows, evenly spread."""
    return rows[(np.arange(count) * len(rows)) // max(count, 1)]
