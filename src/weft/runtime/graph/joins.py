"""Operators that join at work: one after the other, iterations, at the same time, and not at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from weft.algebra.composites import Composite, Follow, Lengths, Overlap, Repeat, Without
from weft.kernels import follow, iterate, occurrences, overlap
from weft.plan.graph import source_types
from weft.runtime.events import Int64s
from weft.runtime.graph.compile import (
    key_columns,
    left_limit,
    operands_of,
    span_limit,
    start_view,
)
from weft.runtime.graph.operators import Build, Operator, Running, Store, few

_NONE: Int64s = np.empty(0, np.int64)
_PICKS = {"each": follow.EACH, "first": follow.FIRST_ONE, "next": follow.NEXT_ONES}
_WHEN = {"before": overlap.BEFORE_IT, "during": overlap.DURING, "between": overlap.BETWEEN}


class FollowOperator(Operator):
    """One after the other; also runs of pick `next`, whose left operand is what they gave out themselves."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, Follow | Repeat)
        operands = operands_of(pattern)
        runs = isinstance(pattern, Repeat)
        among, where = pattern.among, pattern.where
        compiler, view = build.compiler, self.view
        self.where = compiler.conditions(where, view)
        self.among = compiler.conditions(among, view)
        self.first = compiler.conditions((*among, *where), start_view(view)) if runs else _NONE
        decisive = among if pattern.pick == "next" else where
        self.key = np.array(key_columns(pattern, decisive, operands, view, compiler), np.int64)
        self.limit, self.limit_slot = left_limit(pattern, operands, view, build.layouts)
        kind, shift = (occurrences.RUN, 0) if runs else (occurrences.PAIR, len(view.variables[0]))
        repeats = runs and repeats_itself(operands[0])
        self.parameters = np.array(
            [_PICKS[pattern.pick], kind, shift, self.limit, self.limit_slot, repeats, runs, build.ordered[number]],
            np.int64,
        )
        self.stores = [Store()]
        self.marks = pattern.pick == "next"
        self.feeds_itself = runs

    def cursor(self, side: int) -> int:
        """See `Operator.cursor`."""
        return follow.RIGHT_AT if self.feeds_itself or side == 1 else follow.LEFT_AT

    def link(self, build: Build) -> None:
        """See `Operator.link`."""
        self.spec = build.layouts.spec(self.number)

    def advance(self, run: Running) -> None:
        """See `Operator.advance`."""
        arena, bound, (store,) = run.arena, run.bound(self), self.stores
        arena.rows, arena.slots, self.out, store.entries, store.table = follow.follow(
            self.parameters,
            self.where,
            self.among,
            self.first,
            self.key,
            self.spec,
            arena.facts(),
            arena.rows,
            arena.slots,
            arena.control,
            arena.events,
            *run.given(self, 0),
            *run.given(self, len(self.inputs) - 1),
            bound,
            self.control,
            store.control,
            self.out,
            store.entries,
            store.table,
        )
        self.safe = bound


def repeats_itself(pattern: Composite) -> bool:
    """Whether two runs of the pattern's occurrences can be the same occurrence: only runs of runs can."""
    return any(isinstance(node, Repeat) for node in pattern.walk())


class SequencesOperator(Operator):
    """Step's any iteration."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, Repeat)
        operands = operands_of(pattern)
        self.where = build.compiler.conditions(pattern.where, self.view)
        self.key = np.array(key_columns(pattern, pattern.where, operands, self.view, build.compiler), np.int64)
        told_apart, self.allowed = length_bits(pattern.lengths)
        open_ended = pattern.lengths.high is None
        self.parameters = np.array(
            [told_apart, open_ended, repeats_itself(operands[0]), build.ordered[number]], np.int64
        )
        self.stores = [Store()]
        self.members: Int64s = few()
        self.reach: Int64s = few()

    def link(self, build: Build) -> None:
        """See `Operator.link`."""
        self.spec = build.layouts.spec(self.number)

    def advance(self, run: Running) -> None:
        """See `Operator.advance`."""
        arena, bound, (store,) = run.arena, run.bound(self), self.stores
        arena.rows, arena.slots, self.out, store.entries, store.table, self.members, self.reach = iterate.sequences(
            self.parameters,
            self.allowed,
            self.where,
            self.key,
            self.spec,
            arena.facts(),
            arena.rows,
            arena.slots,
            arena.control,
            arena.events,
            *run.given(self, 0),
            bound,
            self.control,
            store.control,
            self.out,
            store.entries,
            store.table,
            self.members,
            self.reach,
        )
        self.safe = bound

    def cursor(self, side: int) -> int:
        """See `Operator.cursor`."""
        return follow.RIGHT_AT

    @property
    def member_count(self) -> int:
        """Members seen."""
        return int(self.control[iterate.MEMBERS])

    @property
    def reach_count(self) -> int:
        """Numbers of `reach` that are used."""
        return int(self.control[iterate.REACHED])

    def roots(self) -> Iterator[Int64s]:
        """See `Operator.roots`."""
        yield from super().roots()
        yield self.members[: 3 * self.member_count].reshape(-1, 3)[:, 0]


def length_bits(lengths: Lengths) -> tuple[int, npt.NDArray[np.uint64]]:
    """How many lengths are told apart (without a bound, the last stands for all greater ones); which are allowed."""
    greatest = max([lengths.low, *(length + 1 for length in lengths.excluded)])
    told_apart = max(1, greatest if lengths.high is None else lengths.high)
    allowed = np.zeros((told_apart + 63) // 64, np.uint64)
    for length in range(1, told_apart + 1):
        if lengths.allow(length):
            allowed[(length - 1) // 64] |= np.uint64(1) << np.uint64((length - 1) % 64)
    return told_apart, allowed


class LongestOperator(Operator):
    """Step's greedy iteration."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, Repeat)
        self.where = build.compiler.conditions(pattern.where, self.view)
        lengths = pattern.lengths
        high = -1 if lengths.high is None else lengths.high
        allowed = [length for length in range(lengths.low, high + 1) if lengths.allow(length)]
        self.lengths = lengths.low, high, max(allowed, default=-1), np.array(sorted(lengths.excluded), np.int64)

    def link(self, build: Build) -> None:
        """See `Operator.link`."""
        self.spec = build.layouts.spec(self.number)

    def advance(self, run: Running) -> None:
        """See `Operator.advance`."""
        arena, bound = run.arena, run.bound(self)
        arena.rows, arena.slots, self.out = iterate.longest(
            *self.lengths,
            self.where,
            self.spec,
            arena.facts(),
            arena.rows,
            arena.slots,
            arena.control,
            arena.events,
            *run.given(self, 0),
            bound,
            run.finished,
            self.control,
            self.out,
        )
        self.safe = bound
        if self.control[iterate.RUN_LENGTH]:
            last = int(self.control[iterate.RUN_LAST])
            self.safe = min(bound, int(arena.rows[last * occurrences.ROW + occurrences.END]))

    def cursor(self, side: int) -> int:
        """See `Operator.cursor`."""
        return follow.RIGHT_AT

    def roots(self) -> Iterator[Int64s]:
        """See `Operator.roots`."""
        if self.control[iterate.RUN_LENGTH]:
            yield self.control[iterate.RUN_FIRST : iterate.RUN_LAST + 1]


class OverlapOperator(Operator):
    """Step's conjunction."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, Overlap)
        self.where = build.compiler.conditions(pattern.where, self.view)
        operands = operands_of(pattern)
        self.key = np.array(key_columns(pattern, pattern.where, operands, self.view, build.compiler), np.int64)
        self.limit = span_limit(pattern.where)
        share = bool(source_types(pattern.left) & source_types(pattern.right))
        self.parameters = np.array([len(self.view.variables[0]), self.limit, share, build.ordered[number]], np.int64)
        self.stores = [Store(), Store()]

    def link(self, build: Build) -> None:
        """See `Operator.link`."""
        self.spec = build.layouts.spec(self.number)

    def advance(self, run: Running) -> None:
        """See `Operator.advance`."""
        arena, bound, (left, right) = run.arena, run.bound(self), self.stores
        arena.rows, arena.slots, self.out, left.entries, left.table, right.entries, right.table = overlap.overlap(
            self.parameters,
            self.where,
            self.key,
            self.spec,
            arena.facts(),
            arena.rows,
            arena.slots,
            arena.control,
            arena.events,
            *run.given(self, 0),
            *run.given(self, 1),
            bound,
            self.control,
            left.control,
            right.control,
            self.out,
            left.entries,
            left.table,
            right.entries,
            right.table,
        )
        self.safe = bound


class WithoutOperator(Operator):
    """Occurrences with no unwanted one about them."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, Without)
        self.when = _WHEN[pattern.when]
        self.where = build.compiler.conditions(pattern.where, self.view)
        operands = operands_of(pattern)
        self.key = np.array(key_columns(pattern, pattern.where, operands, self.view, build.compiler), np.int64)
        self.stores = [Store()]

    def advance(self, run: Running) -> None:
        """See `Operator.advance`."""
        arena, bound, (store,) = run.arena, run.bound(self), self.stores
        self.out, store.entries, store.table = overlap.without(
            self.when,
            self.where,
            self.key,
            arena.facts(),
            arena.rows,
            arena.slots,
            arena.events,
            *run.given(self, 0),
            *run.given(self, 1),
            bound,
            self.control,
            store.control,
            self.out,
            store.entries,
            store.table,
        )
        self.safe = bound
