"""Operators of a graph with one input occurrence at a time; each reads its inputs' output and emits occurrences by end.

`watermark` is an operator's output watermark: what it emits later ends then or later. Operators read only what ends
before the watermarks of all their inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from weft.algebra.composites import After, CompositeEvent, CompositeFilter, CompositeRepeat
from weft.algebra.predicates import Predicate
from weft.kernels.joins import buckets, joining, occurrences
from weft.plan.graph import Graph
from weft.plan.one_event import source_predicates
from weft.plan.spans import greatest_tails, useful_spans
from weft.runtime.data.buffers import with_room
from weft.runtime.data.events import Int64s
from weft.runtime.operators.joins.code import Compiler
from weft.runtime.operators.joins.compile import order_matters, view_of
from weft.runtime.operators.joins.layout import Layouts
from weft.runtime.operators.joins.occurrence_store import OccurrenceStore

ENDLESS = int(occurrences.MOST)
BEGINNING = int(occurrences.FEWEST)
NOTHING: Int64s = np.empty(0, np.int64)
ALL = 0, 1  # share 0 of 1
_MOST_TRUTHS = 62  # bits of a word, without its sign
# Fields of the control block of `LongestOperator`: the open run's first and last member and its length.
RUN_FIRST, RUN_LAST, RUN_LENGTH = range(joining.OWN, joining.OWN + 3)


@dataclass
class Store:
    """Occurrences of one side by key, in the layout of `weft.kernels.joins.buckets`."""

    side: int
    limit: int = -1  # ticks after the relevant start for which an occurrence can matter; -1: no limit
    marks: bool = False  # whether a marked entry has been decided
    entries: Int64s = field(default_factory=lambda: np.empty(64 * buckets.ENTRY, np.int64))
    table: Int64s = field(default_factory=lambda: np.zeros(16 * buckets.PLACE, np.int64))
    control: Int64s = field(default_factory=lambda: np.zeros(buckets.STORE, np.int64))

    @property
    def buckets(self) -> buckets.Buckets:
        """The arrays, for kernels."""
        return buckets.Buckets(self.entries, self.table, self.control)

    def used(self) -> Int64s:
        """Return all segments, one entry per row."""
        return self.entries[: self.control[buckets.USED] * buckets.ENTRY].reshape(-1, buckets.ENTRY)

    def live(self) -> Int64s:
        """Return the numbers of the entries in use."""
        places = self.table.reshape(-1, buckets.PLACE)
        counts = places[:, buckets.TAIL] - places[:, buckets.HEAD]
        before = np.cumsum(counts) - counts
        found: Int64s = np.repeat(places[:, buckets.HEAD] - before, counts) + np.arange(counts.sum())
        return found


class JoinNode:
    """Execution of one node of the graph."""

    def __init__(self, build: Build, number: int) -> None:
        node = build.graph.nodes[number]
        self.number = number
        self.inputs = node.inputs
        self.control = np.zeros(joining.CONTROL + 1, np.int64)
        self.out: Int64s = np.empty(64, np.int64)
        self.watermark = BEGINNING
        self.emitted = 0  # occurrences emitted since it was created
        self.stores: list[Store] = []
        self.tests = self.key = NOTHING  # of the stores
        self.view = view_of(number, node)
        self.ordered = build.ordered[number]

    counted = 0  # occurrences that were only counted
    feeds_itself = False
    repeats = False  # whether the same occurrence can be found twice

    @property
    def waiting(self) -> int:
        """The number of stored occurrences that may still find a partner."""
        places = (store.table.reshape(-1, buckets.PLACE) for store in self.stores)
        return sum(int((place[:, buckets.TAIL] - place[:, buckets.HEAD]).sum()) for place in places)

    def waiting_since(self) -> Int64s:
        """Return for each stored occurrence the time from which its age counts."""
        return np.concatenate([NOTHING, *(store.used()[store.live(), buckets.SINCE] for store in self.stores)])

    def cursor(self, side: int) -> int:
        """Return the index in the control block of the number of rows read from an input."""
        return joining.RIGHT_AT if side == 1 else joining.LEFT_AT

    def link(self, build: Build) -> None:
        """Read the final layouts of rows, when all conditions are compiled."""
        self.spec = build.layouts.spec(self.number)

    def advance(self, run: Running) -> None:
        """Process the input rows that are complete, and emit occurrences."""
        raise NotImplementedError

    def emitted_rows(self) -> Int64s:
        """Return the rows that were emitted and are still stored."""
        return self.out[: self.control[joining.OUT]]

    def emit(self, rows: Int64s) -> None:
        """Append rows to the output."""
        used = int(self.control[joining.OUT])
        self.out = with_room(self.out, used, len(rows))
        self.out[used : used + len(rows)] = rows
        self.control[joining.OUT] += len(rows)

    def sort_new(self, row_store: OccurrenceStore, begin: int) -> None:
        """Sort the output from `begin` on into processing order where the order matters, and remove duplicates."""
        if self.ordered or self.repeats:
            end = self.control[joining.OUT]
            self.control[joining.OUT] = joining.order_new(
                row_store.rows, row_store.events, self.out, begin, end, self.repeats
            )

    def roots(self) -> list[Int64s]:
        """Return views of the rows that are needed besides the output of its inputs and its stores."""
        return []


class Truths:
    """Predicates on single events that joins test, stored as a bit for each with the event."""

    def __init__(self) -> None:
        self.predicates: list[Predicate] = []

    def bit(self, predicate: Predicate) -> int | None:
        """Return the bit of a predicate, or None if all bits are taken."""
        if predicate not in self.predicates and len(self.predicates) < _MOST_TRUTHS:
            self.predicates.append(predicate)
        return 1 << self.predicates.index(predicate) if predicate in self.predicates else None


@dataclass
class Build:
    """What operators are built from.

    Only share `share[0]` of `share[1]` of the matches, by first position, is emitted.
    """

    graph: Graph
    layouts: Layouts
    compiler: Compiler
    share: tuple[int, int] = ALL
    truths: Truths = field(default_factory=Truths)

    def __post_init__(self) -> None:
        graph = self.graph
        self.ordered = order_matters(graph)  # for each node, whether the order of occurrences with equal end matters
        self.spans = useful_spans(graph)  # for each node, the greatest span of a useful occurrence
        self.tails = greatest_tails(graph)  # for each node, the most ticks from the end of its first constituent on

    def extend(self, graph: Graph) -> None:
        """Continue with a graph that has further nodes after the same ones."""
        self.graph = graph
        self.layouts.extend(graph)
        self.__post_init__()

    def keep(self, numbers: Sequence[int], graph: Graph) -> None:
        """Continue with the graph of some of the nodes."""
        self.graph = graph
        self.layouts.keep(numbers, graph)
        self.__post_init__()


@dataclass
class Running:
    """What operators share while they run: the row store, all operators, and the clock."""

    row_store: OccurrenceStore
    operators: Sequence[JoinNode]
    clock: int  # no later event ends earlier
    finished: bool = False

    def bound(self, operator: JoinNode) -> int:
        """Return the watermark up to which all inputs of an operator are complete."""
        return min(self.operators[number].watermark for number in operator.inputs)

    def emitted_rows(self, operator: JoinNode, side: int) -> tuple[Int64s, int]:
        """Return the output array of an input, and the number of rows in use."""
        source = self.operators[operator.inputs[side]]
        return source.out, int(source.control[joining.OUT])

    def inputs(self, operator: JoinNode, bound: int) -> joining.Inputs:
        """Return the output of the first and the last input of an operator, up to a time."""
        return joining.Inputs(
            *self.emitted_rows(operator, 0), *self.emitted_rows(operator, len(operator.inputs) - 1), bound
        )

    def taken(self, operator: JoinNode, side: int, bound: int) -> Int64s:
        """Consume and return the unread rows of an input that end before the bound."""
        emitted_rows, count = self.emitted_rows(operator, side)
        cursor = operator.cursor(side)
        found = self.row_store.before(emitted_rows[operator.control[cursor] : count], bound)
        operator.control[cursor] += len(found)
        return found


class SourceOperator(JoinNode):
    """Single events that satisfy a predicate."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, CompositeEvent)
        self.predicate, rest = source_predicates(pattern)
        self.where = build.compiler.conditions(rest, self.view)
        self.chosen: Int64s = NOTHING

    def advance(self, run: Running) -> None:
        """Add rows for the chosen events."""
        rows = run.row_store.add_sources(self.chosen, len(self.spec) // 3)
        self.emit(rows[run.row_store.satisfied(self.where, rows, rows)] if len(self.where) else rows)
        self.chosen = NOTHING
        self.watermark = run.clock


class FilterOperator(JoinNode):
    """Occurrences that satisfy conditions."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, CompositeFilter)
        self.where = build.compiler.conditions(pattern.where, self.view)

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        self.watermark = run.bound(self)
        rows = run.taken(self, 0, self.watermark)
        self.emit(rows[run.row_store.satisfied(self.where, rows, rows)])


class SinceOperator(JoinNode):
    """Occurrences of another operator that consist of events from a position on."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        since = build.graph.nodes[number].since
        assert since is not None
        self.since = since

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        self.watermark = run.bound(self)
        rows = run.taken(self, 0, self.watermark)
        self.emit(rows[run.row_store.times(rows, occurrences.FIRST) >= self.since])


class LongEnoughOperator(JoinNode):
    """Runs with at least `low` members; longer runs than allowed do not exist, as they are not extended."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, CompositeRepeat)
        self.low = pattern.lengths.low

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        self.watermark = run.bound(self)
        rows = run.taken(self, 0, self.watermark)
        shorter = rows
        for _ in range(self.low - 1):  # a run is a row for its last member, which links to the run before it
            enough = run.row_store.times(shorter, occurrences.KIND) == occurrences.RUN
            rows, shorter = rows[enough], run.row_store.times(shorter[enough], occurrences.LEFT)
            if not len(rows):
                break
        self.emit(rows)


class AfterOperator(JoinNode):
    """Occurrences, each with a point in time after it."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, After)
        self.ticks = pattern.ticks

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        row_store, bound = run.row_store, run.bound(self)
        taken = run.taken(self, 0, bound)
        rows = row_store.join(taken, np.full(len(taken), -1), occurrences.POINT, 0, self.spec)
        ends = np.minimum(row_store.times(rows, occurrences.END), ENDLESS - self.ticks) + self.ticks
        for time in (occurrences.END, occurrences.LAST_START):
            row_store.rows[rows * occurrences.ROW + time] = ends
        self.emit(rows)
        self.watermark = max(
            self.watermark, min(bound + self.ticks if bound < ENDLESS - self.ticks else ENDLESS, run.clock)
        )


class UnionOperator(JoinNode):
    """The occurrences of both inputs."""

    def link(self, build: Build) -> None:
        """See `JoinNode.link`."""
        self.specs = build.layouts.spec(self.number, 0), build.layouts.spec(self.number, 1)

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        row_store, begin = run.row_store, int(self.control[joining.OUT])
        self.watermark = run.bound(self)
        lefts, rights = run.taken(self, 0, self.watermark), run.taken(self, 1, self.watermark)
        self.emit(row_store.branches(lefts, rights, len(self.view.variables[0]), *self.specs))
        self.sort_new(row_store, begin)


class LongestOperator(JoinNode):
    """Step's greedy iteration: every member extends the run of its predecessor, or begins a new one."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, CompositeRepeat)
        self.where = build.compiler.conditions(pattern.where, self.view)
        self.lengths = lengths = pattern.lengths
        allowed = (length for length in range(lengths.high or 0, lengths.low - 1, -1) if lengths.allow(length))
        self.most = ENDLESS if lengths.high is None else next(allowed, 1)

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        row_store, bound, control = run.row_store, run.bound(self), self.control
        open_length = int(control[RUN_LENGTH])
        known = control[RUN_LAST : RUN_LAST + 1] if open_length else NOTHING
        members = np.concatenate([known, run.taken(self, 0, bound)])
        self.watermark = bound
        if not len(members):
            return
        # The place of each member in its run; the last member of the open run comes first.
        breaks = np.flatnonzero(~self._extends(row_store, members[:-1], members[1:])) + 1
        heads = np.concatenate([[0], breaks])
        sizes = np.diff(heads, append=len(members))
        places = np.arange(len(members)) - np.repeat(heads, sizes)
        if open_length:
            places[: sizes[0]] += open_length - 1
        firsts = np.flatnonzero(places % self.most == 0)
        if open_length and (not len(firsts) or firsts[0] > 0):
            firsts = np.concatenate([[0], firsts])
        lasts = np.append(firsts[1:], len(members)) - 1
        counts = lasts - firsts + 1
        begins = members[firsts]
        if open_length:
            begins[0], counts[0] = control[RUN_FIRST], counts[0] + open_length - 1
        closed = len(firsts) if run.finished else len(firsts) - 1
        self._report(row_store, begins[:closed], members[lasts[:closed]], counts[:closed])
        control[RUN_FIRST], control[RUN_LAST], control[RUN_LENGTH] = begins[-1], members[-1], counts[-1]
        if run.finished:
            control[RUN_LENGTH] = 0
        else:
            self.watermark = min(bound, int(row_store.times(members[-1:], occurrences.END)[0]))

    def _extends(self, row_store: OccurrenceStore, lasts: Int64s, members: Int64s) -> npt.NDArray[np.bool_]:
        before = row_store.times(lasts, occurrences.END) < row_store.times(members, occurrences.START)
        extends: npt.NDArray[np.bool_] = before & row_store.satisfied(self.where, lasts, members)
        return extends

    def _report(self, row_store: OccurrenceStore, begins: Int64s, ends: Int64s, counts: Int64s) -> None:
        lengths = self.lengths
        allowed = (counts >= lengths.low) & ~np.isin(counts, list(lengths.excluded))
        if lengths.high is not None:
            allowed &= counts <= lengths.high
        rows, ends = begins[allowed], ends[allowed]
        several = rows != ends
        rows[several] = row_store.join(rows[several], ends[several], occurrences.RUN, 0, self.spec)
        self.emit(rows)

    def roots(self) -> list[Int64s]:
        """See `JoinNode.roots`."""
        return [self.control[RUN_FIRST : RUN_LAST + 1]] if self.control[RUN_LENGTH] else []
