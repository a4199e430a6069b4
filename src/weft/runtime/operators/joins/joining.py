"""Join operators: sequences, all iterations, overlap, and absence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from weft.algebra.analysis.one_event import own_predicate
from weft.algebra.analysis.spans import Span, is_implied, least, waiting_limit
from weft.algebra.composites import Composite, CompositeRepeat, CompositeSequence, Lengths, Overlap, Without
from weft.algebra.predicates import Predicate
from weft.algebra.terms import conjuncts
from weft.kernels.joins import buckets, follow, iterate, joining, occurrences, overlap
from weft.kernels.warming import compile_first
from weft.plan.graph import source_types
from weft.runtime.data.events import Int64s
from weft.runtime.operators.joins.compile import key_columns, operands_of, start_view
from weft.runtime.operators.joins.operators import ALL, NOTHING, Build, JoinNode, Running, Store

_PICKS = {"each": follow.EACH, "first": follow.FIRST_ONE, "next": follow.NEXT_ONES}
INTERRUPT_CHECK_EVERY = 1 << 22  # visited partners between two checks for Ctrl-C
_WHEN = {"before": overlap.BEFORE_IT, "during": overlap.DURING, "between": overlap.BETWEEN}


class JoinOperator(JoinNode):
    """Shared part of the operators with stored occurrences."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        self.pattern = build.graph.nodes[number].pattern
        self.operands = operands_of(self.pattern)
        self.span = build.spans[number]
        self.parameters = self.where = self.among = self.first = NOTHING

    @property
    def asked(self) -> joining.Asked:
        """The arguments of the kernels that describe this join."""
        return joining.Asked(self.parameters, self.tests, self.where, self.among, self.first, self.key, self.spec)

    def turns(self) -> Iterator[None]:
        """Iterate once for each call of a kernel: the first, and one more each time that it paused."""
        self.control[joining.STEPS_LEFT] = -1
        while self.control[joining.STEPS_LEFT] < 0:
            self.control[joining.STEPS_LEFT] = INTERRUPT_CHECK_EVERY
            yield

    def compile(self, build: Build, decisive: tuple[Predicate, ...], limit: Span = None) -> Int64s:
        """Extract key and tests from the conditions that decide about a pair, and compile the other conditions.

        A condition that the time limit of the store implies is left out.
        """
        key = key_columns(self.pattern, decisive, self.operands, self.view, build.compiler)
        self.key = np.array(key, np.int64)
        needed = tuple(test for test in conjuncts(decisive) if not is_implied(test, self.pattern, limit))
        self.tests, rest = build.compiler.tests(needed, self.view)
        return build.compiler.conditions(rest, self.view)


class FollowOperator(JoinOperator):
    """Sequence of two operands; also runs of pick `next`, whose left operand is their own output."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        compile_first(follow.follow)
        pattern, compiler, view = self.pattern, build.compiler, self.view
        assert isinstance(pattern, CompositeSequence | CompositeRepeat)
        runs = isinstance(pattern, CompositeRepeat)
        limit, variable = waiting_limit(pattern, self.operands, self.span)
        _, node, place = view.find(variable) if variable else (0, 0, 0)
        slot = build.layouts.slot(node, "start", place) if variable else -1
        implied = limit if variable is None and not runs else None
        is_found_here = build.graph.nodes[build.graph.nodes[number].inputs[-1]].received is None
        needed, where = (0, pattern.where) if runs or not is_found_here else self._needed(build, pattern.where)
        if pattern.pick == "next":
            self.among = self.compile(build, pattern.among, implied)
            self.where = compiler.conditions(where, view)
        else:
            self.among, self.where = NOTHING, self.compile(build, where, implied)
        self.first = compiler.conditions((*pattern.among, *pattern.where), start_view(view)) if runs else NOTHING
        kind, shift = (occurrences.RUN, 0) if runs else (occurrences.PAIR, len(view.variables[0]))
        store = Store(0, -1 if limit is None else limit, pattern.pick == "next")
        longest = (pattern.lengths.high or 0) if isinstance(pattern, CompositeRepeat) else 0
        self.parameters = np.array(
            [_PICKS[pattern.pick], kind, shift, store.limit, slot, runs, needed, longest], np.int64
        )
        self.stores = [store]
        self.feeds_itself = runs
        self.repeats = runs and repeats_itself(self.operands[0])

    def _needed(self, build: Build, where: tuple[Predicate, ...]) -> tuple[int, tuple[Predicate, ...]]:
        """Return the truths that the right operand's event must have, as bits, and the other conditions."""
        needed, rest = 0, []
        for test in conjuncts(where):
            own = own_predicate(self.operands[1], test)
            bit = None if own is None else build.truths.bit(own)
            needed |= bit or 0
            if bit is None:
                rest.append(test)
        return needed, tuple(rest)

    def cursor(self, side: int) -> int:
        """See `JoinNode.cursor`."""
        return joining.RIGHT_AT if self.feeds_itself or side == 1 else joining.LEFT_AT

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        bound = run.bound(self)
        if self.repeats:  # runs that end at one time must be deduplicated before they are extended
            emitted_rows, count = run.emitted_rows(self, 0)
            ends = run.row_store.times(emitted_rows[self.control[joining.RIGHT_AT] : count], occurrences.END)
            for end in np.unique(ends[ends < bound]).tolist():
                self._advance(run, end + 1)
        self._advance(run, bound)
        self.watermark = bound

    def _advance(self, run: Running, bound: int) -> None:
        row_store, (store,), begin = run.row_store, self.stores, int(self.control[joining.OUT])
        for _ in self.turns():
            row_store.rows, row_store.slots, self.out, store.entries, store.table = follow.follow(
                self.asked, *row_store.memory(), run.inputs(self, bound), self.control, store.buckets, self.out
            )
        self.sort_new(row_store, begin)


def repeats_itself(pattern: Composite) -> bool:
    """Whether two runs of the pattern's occurrences can be the same occurrence, as only runs of runs can."""
    return any(isinstance(node, CompositeRepeat) for node in pattern.walk())


class SequencesOperator(JoinOperator):
    """Runs of all subsequences of the operand's occurrences (Step's any iteration)."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = self.pattern
        assert isinstance(pattern, CompositeRepeat)
        self.where = self.compile(build, pattern.where)
        told_apart, self.allowed = length_bits(pattern.lengths)
        store = Store(0, -1 if self.span is None else self.span)
        beginnings = build.share if build.graph.leading[number] else ALL
        self.parameters = np.array([told_apart, pattern.lengths.high is None, store.limit, *beginnings], np.int64)
        self.item = 1 + len(self.allowed)
        self.repeats = repeats_itself(self.operands[0])
        self.stores = [store]
        self.members: Int64s = np.empty(64, np.int64)
        self.reach: Int64s = np.empty(64, np.int64)

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        row_store, bound, (store,), begin = run.row_store, run.bound(self), self.stores, int(self.control[joining.OUT])
        most = self.control[iterate.MEMBERS] + run.emitted_rows(self, 0)[1] - self.control[joining.RIGHT_AT] + 1
        scratch = iterate.scratch_for(int(most), len(self.allowed))
        for _ in self.turns():
            row_store.rows, row_store.slots, self.out, store.entries, store.table, self.members, self.reach = (
                iterate.sequences(
                    self.asked,
                    self.allowed,
                    scratch,
                    *row_store.memory(),
                    run.inputs(self, bound),
                    self.control,
                    store.buckets,
                    self.out,
                    iterate.Iterated(self.members, self.reach),
                )
            )
        self.sort_new(row_store, begin)
        self.watermark = bound

    def cursor(self, side: int) -> int:
        """See `JoinNode.cursor`."""
        return joining.RIGHT_AT

    def used_members(self) -> Int64s:
        """Return the members so far, one per row."""
        return self.members[: iterate.MEMBER * self.control[iterate.MEMBERS]].reshape(-1, iterate.MEMBER)

    def used_reach(self) -> Int64s:
        """Return the items of what the members reach, one per row."""
        return self.reach[: self.control[iterate.REACHED]].reshape(-1, self.item)

    def forget(self, before: int) -> None:
        """Remove the members that start before a time."""
        members, reach, (store,) = self.used_members(), self.used_reach(), self.stores
        kept = members[:, iterate.MEMBER_START] >= before
        numbers = np.cumsum(kept) - 1
        owners = np.repeat(np.arange(len(members)), members[:, iterate.REACH_COUNT])
        useful = kept[owners] & kept[reach[:, 0]]
        reach = reach[useful]
        reach[:, 0] = numbers[reach[:, 0]]
        members = members[kept]
        counts = np.bincount(numbers[owners[useful]], minlength=len(members))
        members[:, iterate.REACH_COUNT] = counts
        members[:, iterate.REACH_AT] = self.item * (np.cumsum(counts) - counts)
        entries, live = store.used(), store.live()
        entries[live, buckets.MARK] = numbers[entries[live, buckets.MARK]]
        self.members, self.reach = members.ravel(), reach.ravel()
        self.control[iterate.MEMBERS], self.control[iterate.REACHED] = len(members), reach.size

    def roots(self) -> list[Int64s]:
        """See `JoinNode.roots`."""
        return [self.used_members()[:, iterate.MEMBER_ROW]]


def length_bits(lengths: Lengths) -> tuple[int, npt.NDArray[np.uint64]]:
    """Return how many lengths are distinguished, and the allowed ones as bits.

    Without an upper bound the last length represents all greater ones.
    """
    greatest = max([lengths.low, *(length + 1 for length in lengths.excluded)])
    told_apart = max(1, greatest if lengths.high is None else lengths.high)
    allowed = np.zeros((told_apart + 63) // 64, np.uint64)
    for length in range(1, told_apart + 1):
        if lengths.allow(length):
            allowed[(length - 1) // 64] |= np.uint64(1) << np.uint64((length - 1) % 64)
    return told_apart, allowed


class OverlapOperator(JoinOperator):
    """Pairs of occurrences in any order (Step's conjunction)."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = self.pattern
        assert isinstance(pattern, Overlap)
        self.where = self.compile(build, pattern.where, self.span)
        limit = -1 if self.span is None else self.span
        share = bool(source_types(pattern.left) & source_types(pattern.right))
        self.parameters = np.array([len(self.view.variables[0]), limit, share], np.int64)
        self.stores = [Store(0, limit), Store(1, limit)]

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        row_store, bound, (left, right), begin = (
            run.row_store,
            run.bound(self),
            self.stores,
            int(self.control[joining.OUT]),
        )
        for _ in self.turns():
            row_store.rows, row_store.slots, self.out, left.entries, left.table, right.entries, right.table = (
                overlap.overlap(
                    self.asked,
                    *row_store.memory(),
                    run.inputs(self, bound),
                    self.control,
                    left.buckets,
                    right.buckets,
                    self.out,
                )
            )
        self.sort_new(row_store, begin)
        self.watermark = bound


class WithoutOperator(JoinOperator):
    """Occurrences without an excluded occurrence before, during or between them."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = self.pattern
        assert isinstance(pattern, Without)
        before = pattern.when == "before"
        self.where = self.compile(build, pattern.where)
        # An occurrence between constituents starts after the first of them has ended.
        limit = least(self.span, build.tails[number]) if pattern.when == "between" else self.span
        store = Store(1, -1 if before or limit is None else limit)
        self.parameters = np.array([_WHEN[pattern.when], before and not pattern.where, store.limit], np.int64)
        self.stores = [store]

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        row_store, bound, (store,) = run.row_store, run.bound(self), self.stores
        for _ in self.turns():
            self.out, store.entries, store.table = overlap.without(
                self.asked, *row_store.memory(), run.inputs(self, bound), self.control, store.buckets, self.out
            )
        self.watermark = bound
