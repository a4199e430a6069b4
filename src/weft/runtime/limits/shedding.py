"""Load shedding: drop the least important events among those whose loss never adds a match.

The importance of events is learnt: by the place of the pattern that they fit, whether a match of their key has reached
that place, how much of the window remains, and how often events there became part of a match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.query import AnyQuery
from weft.errors import UsageError
from weft.plan.shedding import STARTS, QueryLeaves, shed_plan
from weft.runtime.classify.classifier import Classifier
from weft.runtime.classify.keys import key_hashes
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.data.matches import MatchBatch
from weft.runtime.watching.left_out import counter_name

Policy = Literal["utility", "random", "oldest"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
STEP = 0.1  # by which the share rises and falls
MOST = 0.9
KEYS = 1 << 16  # rows of what is remembered by key: two keys in one row look like one that has got further
LONG_AGO = -(1 << 62)
ROUNDS = 4  # in which events are looked for that a match would need besides
MOST_PAIRS = 32  # for each event: where windows hold more, it is not looked who goes with whom
OPERATORS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
OPERATORS |= {"=": np.equal, "<>": np.not_equal}

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shed:
    """When to shed events, and which.

    Always a `share` of them; those `above` a number per batch; or as many as keep the work on a batch below a number of
    `seconds`. `policy` selects the least important (`utility`), any (`random`), or the first of a batch (`oldest`).
    """

    share: float | None = None
    above: int | None = None
    seconds: float | None = None
    policy: Policy = "utility"

    def __post_init__(self) -> None:
        if [self.share, self.above, self.seconds].count(None) != 2:
            raise UsageError(
                "Shed takes one of share=0.5, above=100_000 (events of a batch) and seconds=2.0 (for a batch)"
            )
        if self.share is not None and not 0 <= self.share <= 1:
            raise UsageError(f"the share of events to shed is between 0 and 1, not {self.share}")
        if self.above is not None and self.above < 0:
            raise UsageError(f"events are shed above a number, not above {self.above}")
        if self.seconds is not None and not self.seconds > 0:
            raise UsageError(f"a batch may take more than 0 seconds, not {self.seconds}")
        if self.policy not in POLICIES:
            raise UsageError(f"events are shed by {', '.join(POLICIES)}, not by {self.policy!r}")


class Shedder:
    """Sheds events, batch by batch, and counts them by query and place of the pattern."""

    def __init__(self, shed: Shed, queries: Sequence[AnyQuery]) -> None:
        self.shed = shed
        self.share = shed.share or 0.0
        self.plan = shed_plan(queries)
        self.dropped: Counter[tuple[str, str]] = Counter()  # by query and leaf
        self.events = self.seen = 0  # left out, and all
        self.looks = True  # whether events are looked at; if not, none is shed
        leaves = [leaf for own in self.plan for leaf in own.leaves]
        self._unsafe = np.array([not leaf.safe for leaf in leaves], bool)
        types = {leaf.type for leaf in leaves if not leaf.safe}
        # The types of events that must not be left out, whatever else they have; None: any.
        self.risky = None if None in types else frozenset(type_ for type_ in types if type_ is not None)
        self._classifier = Classifier([[leaf.predicate] for leaf in leaves])
        self._progress = [Progress(own) for own in self.plan]

    def take(self, batch: EventBatch) -> EventBatch:
        """Return the events to match; they keep their positions."""
        self.seen += len(batch)
        if not len(batch) or not self.looks:
            return batch
        fits = self._fits(batch)
        risky = np.logical_or.reduce(fits[self._unsafe]) if self._unsafe.any() else np.zeros(len(batch), bool)
        opened = self._opened(batch, fits)
        gone = self._chosen(np.flatnonzero(~risky), opened, batch.positions, self._excess(len(batch)))
        kept = np.ones(len(batch), bool)
        kept[gone] = False
        for progress, seen in zip(self._progress, opened, strict=True):
            progress.keep(seen, kept[seen.rows])
        if not len(gone):
            return batch
        self._count(fits[:, gone])
        return blocks.take(batch, np.flatnonzero(kept))

    def _excess(self, count: int) -> int:
        """Return how many events of a batch are too many."""
        if self.shed.above is not None:
            return max(0, count - self.shed.above)
        return int(count * self.share)

    def took(self, seconds: float) -> None:
        """Record the time of a batch, and adjust the share: up while it is too long, down when it is shorter again."""
        limit = self.shed.seconds
        if limit is not None:
            if seconds > limit:
                self.share = min(MOST, self.share + STEP)
            elif seconds < limit / 2:
                self.share = max(0.0, self.share - STEP)

    def found(self, matches: Iterable[MatchBatch]) -> None:
        """Learn from matches which events became part of them."""
        for batch in matches if self.looks else ():
            for progress in self._progress:
                if progress.query in batch.query_names:
                    progress.used_by(batch)

    @property
    def counters(self) -> dict[str, int]:
        """Numbers of shed events, in all and by query and leaf."""
        named = {counter_name("shed", query, leaf): count for (query, leaf), count in sorted(self.dropped.items())}
        return {"shed": self.events, **named} if self.events else {}

    # -- which ----------------------------------------------------------------------------------

    def _fits(self, batch: EventBatch) -> npt.NDArray[np.bool_]:
        """Return for each leaf which events fit it."""
        found = np.zeros((len(self._unsafe), len(batch)), bool)
        for number, letters in enumerate(self._classifier.letters(batch)):
            count = self._classifier.letter_count(number)
            truths = np.array([self._classifier.truths(number, letter)[0] for letter in range(count)], bool)
            found[number] = truths[letters]
        return found

    def _opened(self, batch: EventBatch, fits: Mask) -> list[Seen]:
        """Return the part of the batch that each query reads."""
        firsts = np.cumsum([0, *(progress.count for progress in self._progress)])
        return [
            progress.look(batch, fits[first : first + progress.count])
            for progress, first in zip(self._progress, firsts, strict=False)
        ]

    def _chosen(self, free: Int64s, opened: Sequence[Seen], positions: Int64s, excess: int) -> Int64s:
        """Return the rows to shed, among those that may be shed."""
        count = min(excess, len(free))
        if self.shed.policy == "oldest" or not count:
            return free[:count]
        chance = _mixed(positions[free])
        if self.shed.policy == "random":
            return free[np.argsort(chance, kind="stable")[:count]]
        utility, keys = np.zeros(len(positions)), np.zeros(len(positions), np.int64)
        for seen in opened:
            own = seen.worth.max(axis=0, initial=0.0)
            better = own > utility[seen.rows]
            keys[seen.rows[better]], utility[seen.rows[better]] = seen.keys[better], own[better]
        apart = free[np.lexsort((chance, utility[free]))[:count]]
        if utility[apart[-1]] == 0:
            return apart
        # If the least that go were all events of one place, those of other places would be worth nothing any more.
        together = free[np.lexsort((free, keys[free], utility[free] > 0))[:count]]
        lost = sum(_lost_apart(seen, apart) for seen in opened)
        return together if sum(_lost_together(seen, together) for seen in opened) < lost else apart

    def _count(self, fits: Mask) -> None:
        self.events += fits.shape[1]
        first = 0
        for own in self.plan:
            for place, leaf in enumerate(own.leaves):
                count = int(np.count_nonzero(fits[first + place]))
                if count:
                    self.dropped[own.query, leaf.name] += count
            first += len(own.leaves)


@dataclass
class Seen:
    """The events of a batch that fit a query, with their keys."""

    rows: Int64s  # of the batch
    events: EventBatch
    keys: Int64s
    live: Mask  # which go on with a match, at which leaf
    worth: Floats  # how much those matter there; others nothing

    def lost(self, gone: Int64s) -> Floats:
        """Return for each leaf the share of its utility that is lost with some rows of the batch."""
        total = self.worth.sum(axis=1)
        left = self.worth[:, ~np.isin(self.rows, gone)].sum(axis=1)
        shares: Floats = np.divide(total - left, total, out=np.zeros_like(total), where=total > 0)
        return shares


class Progress:
    """The progress of one query's matches by key, and the utility of events at its leaves."""

    def __init__(self, leaves: QueryLeaves) -> None:
        self.query = leaves.query
        self.count = len(leaves.leaves)
        self._leaves = leaves
        self._after = [leaf.after for leaf in leaves.leaves]
        tested = {name for tie in leaves.ties for left, _, right in tie.tests for name in (left, right)}
        self._read = tested.union(*leaves.key)
        self._last = np.full((self.count, KEYS), LONG_AGO, np.int64)  # when an event at a leaf came last, by key
        self._seen = np.ones(self.count)
        self._used = np.ones(self.count)
        steps = self._depths()
        self._prior = np.array(steps, float) / max(steps, default=1)

    def _depths(self) -> list[int]:
        """Return for each leaf the least number of events in a match with an event there."""
        depth = [1 if STARTS in after else self.count for after in self._after]
        for _ in range(self.count):
            for place, after in enumerate(self._after):
                known = [depth[before] + 1 for before in after if before != STARTS and before != place]
                if STARTS not in after and known:
                    depth[place] = min(depth[place], min(known))
        return depth

    def look(self, whole: EventBatch, fits: Mask) -> Seen:
        """Return the events that fit, which of them continue a match, and the importance of each."""
        picked = np.flatnonzero(fits.any(axis=0))
        columns = {name: column for name, column in whole.columns.items() if name in self._read}
        batch, fits = blocks.take(replace(whole, columns=columns, rows=None), picked), fits[:, picked]
        found, high, _ = key_hashes(batch, self._leaves.key)
        has, rows = found.astype(bool), (high & np.uint64(KEYS - 1)).astype(np.int64)
        live, worth = np.zeros_like(fits), np.zeros(fits.shape)
        order = np.argsort(rows.astype(np.uint16), kind="stable")  # of so short numbers it counts
        for place in np.argsort(self._prior, kind="stable").tolist():
            own = fits[place] & has
            left = np.ones(len(batch))
            if STARTS not in self._after[place]:
                since = np.full(len(batch), LONG_AGO, np.int64)
                for before in self._after[place]:
                    since = np.maximum(since, self._since(batch, live[before], rows, order, before))
                within = self._leaves.within
                if within is not None:
                    left = 1.0 - (batch.ends - np.maximum(since, batch.ends - within)) / max(within, 1)
                    own &= since >= batch.ends - within
                own &= since > LONG_AGO
            live[place] = own
            worth[place] = self._prior[place] * self._used[place] / self._seen[place] * (0.5 + 0.5 * left)
        if len(picked):
            live = self._refined(batch, live, rows, order, int(whole.ends[-1]))
        return Seen(picked, batch, rows, live, np.where(live, worth, 0.0))

    def _refined(self, batch: EventBatch, live: Mask, rows: Int64s, order: Int64s, until: int) -> Mask:
        """Remove events for which the batch lacks other events that a match would need, as far as this is visible."""
        within = self._leaves.within
        pairs = None if within is None or not self._leaves.ties else pairs_in(batch, rows, order, within)
        if within is None or pairs is None:
            return live
        earlier, later = pairs
        open_end = until - batch.starts < within  # what follows may be in the next batch
        holds = [_holding(batch, tie.tests, earlier, later) for tie in self._leaves.ties]
        reaches_back = [self._last[tie.first][rows] >= batch.ends - within for tie in self._leaves.ties]
        for _ in range(ROUNDS):
            before = live.copy()
            for tie, holding, past in zip(self._leaves.ties, holds, reaches_back, strict=True):
                fits = holding & live[tie.first][earlier] & live[tie.second][later]
                after = np.bincount(earlier[fits], minlength=len(batch)) >= self._leaves.least[tie.second]
                prior = np.bincount(later[fits], minlength=len(batch)) >= self._leaves.least[tie.first]
                live[tie.first] &= after | open_end
                live[tie.second] &= prior | past
            if np.array_equal(before, live):
                break
        return live

    def _since(self, batch: EventBatch, live: Mask, rows: Int64s, order: Int64s, before: int) -> Int64s:
        """Return for each event when the last event of its key arrived that is live at a leaf."""
        marks = np.where(live[order], np.arange(len(order)), -1)
        starts = np.flatnonzero(np.diff(rows[order], prepend=-1))
        segment = np.repeat(starts, np.diff(np.append(starts, len(order))))
        latest = np.maximum.accumulate(np.append(-1, marks))[:-1]  # strictly before
        inside = latest >= segment
        found = np.where(inside, batch.ends[order[np.maximum(latest, 0)]], self._last[before][rows[order]])
        since = np.empty(len(order), np.int64)
        since[order] = found
        return since

    def keep(self, seen: Seen, kept: Mask) -> None:
        """Record the events that are matched."""
        live = seen.live & kept
        self._seen += np.count_nonzero(live, axis=1)
        for place in range(self.count):
            chosen = np.flatnonzero(live[place])
            np.maximum.at(self._last[place], seen.keys[chosen], seen.events.ends[chosen])

    def used_by(self, found: MatchBatch) -> None:
        """Learn from matches: each of their events counts once."""
        pairs = np.unique(np.stack([found.positions, np.asarray(found.labels, np.int64)]), axis=1)
        for label, count in zip(*np.unique(pairs[1], return_counts=True), strict=True):
            names = found.names[int(label)]
            for place, leaf in enumerate(self._leaves.leaves):
                if leaf.name in names:
                    self._used[place] += count


def _lost_apart(seen: Seen, gone: Int64s) -> float:
    """Return the share of matches that is lost if events are chosen individually: a match needs one at each leaf."""
    return 1.0 - float(np.prod(1.0 - seen.lost(gone)))


def _lost_together(seen: Seen, gone: Int64s) -> float:
    """Return the share of matches that is lost with whole keys, or ranges of time, at all leaves."""
    return float(seen.lost(gone).max(initial=0.0))


def pairs_in(batch: EventBatch, rows: Int64s, order: Int64s, within: int) -> tuple[Int64s, Int64s] | None:
    """Return pairs of events with one key, in order and within the window, or None if there are too many."""
    ends, count = batch.ends[order], len(order)
    span = int(ends.max()) - int(ends.min()) + within + 2
    if span > (1 << 62) // KEYS:
        return None
    scale = rows[order] * span - int(ends.min())
    last = np.searchsorted(scale + ends, scale + batch.starts[order] + within, side="right")
    sizes = np.maximum(last - np.arange(count) - 1, 0)
    total = int(sizes.sum())
    if total > MOST_PAIRS * count:
        return None
    first = np.repeat(np.arange(count), sizes)
    second = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first + 1
    return order[first], order[second]


def _holding(batch: EventBatch, tests: Sequence[tuple[str, str, str]], earlier: Int64s, later: Int64s) -> Mask:
    """Return for which pairs all comparisons hold; comparisons of values that are not numbers count as true."""
    found = np.ones(len(earlier), bool)
    for left, operator, right in tests:
        one, other = _numbers(batch, left), _numbers(batch, right)
        if one is not None and other is not None:
            found &= OPERATORS[operator](one[earlier], other[later])
    return found


def _numbers(batch: EventBatch, name: str) -> Floats | None:
    """The values of an attribute, if some are numbers."""
    column = batch.columns.get(name)
    if column is None or column.numbers is None:
        return None
    return np.asarray(column.numbers.cast(pa.float64(), safe=False).fill_null(np.nan), np.float64)


def _mixed(positions: Int64s) -> npt.NDArray[np.uint64]:
    """Return pseudo-random numbers, the same for the same positions."""
    word = positions.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    return word ^ (word >> np.uint64(32))
