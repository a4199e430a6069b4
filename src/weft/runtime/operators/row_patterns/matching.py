"""Find the matches of a query in sorted rows: letters, the backward pass, then the preferred match of each attempt."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.row_patterns import RowExpression, RowPattern
from weft.errors import BudgetError, InputError
from weft.kernels.row_patterns import conditions as condition_kernel
from weft.kernels.row_patterns import tables as t
from weft.kernels.row_patterns.search import BY_ZERO, ENTRY, search
from weft.kernels.row_patterns.success import earliest_ends, succeeding, within_limits
from weft.kernels.row_patterns.walk import walk
from weft.plan.row_patterns.conditions import RowConditions
from weft.plan.row_patterns.program import ACCEPT, ACCEPT_AT_END, RowProgram
from weft.runtime.operators.row_patterns.conditions import ConditionCompiler
from weft.runtime.operators.row_patterns.evaluation import RowScope, broadcast, evaluate
from weft.runtime.operators.row_patterns.layout import RowLayout, plain
from weft.runtime.operators.row_patterns.matches import FoundMatches, MatchScope
from weft.runtime.operators.row_patterns.sql_types import cast

MOST_STEPS = 10_000_000  # of one attempt
_SKIPS = {"past last": t.PAST_LAST, "next": t.NEXT_ROW, "first": t.TO_FIRST, "last": t.TO_LAST}
_WORD = 64
_BYTE = 8  # conditions by which letters are extended at a time
_ROOM = 1 << 16  # least capacity of the buffers for matches and matched rows


@dataclass
class Attempts:
    """The progress of each partition: its rows, the next attempt, the matches so far."""

    partitions: t.Int64s
    is_open: bool = False  # more rows may arrive
    passed: int = -(2**62)  # the watermark in microseconds


def whole_partitions(layout: RowLayout) -> Attempts:
    """Return the initial progress of complete partitions."""
    words = np.zeros((len(layout.begins), t.PARTITION), np.int64)
    words[:, t.FIRST] = words[:, t.ATTEMPT] = layout.begins
    words[:, t.LAST] = words[:, t.SEEN] = layout.ends
    words[:, t.WHOLE] = 1
    return Attempts(words.reshape(-1))


@dataclass
class Letters:
    """The truths of row-local conditions by row, as one small number, and the states that each number allows."""

    codes: t.Int32s
    takers: t.Int64s


@dataclass
class RowMatcher:
    """Finds matches of one query."""

    query: RowPattern
    program: RowProgram
    conditions: RowConditions
    most_steps: int = MOST_STEPS
    _tables: t.PatternTables = field(init=False)

    def __post_init__(self) -> None:
        program, skip = self.program, self.query.skip
        offsets = np.zeros(len(program.transitions) + 1, np.int64)
        np.cumsum([len(targets) for targets in program.transitions], out=offsets[1:])
        named = [program.variables[v] in skip.variables for v in program.variable_of]
        self._tables = t.PatternTables(
            offsets,
            np.array([target for targets in program.transitions for target in targets], np.int64),
            program.states,
            max(1, -(-program.states // _WORD)),
            np.array(program.variable_of, np.int64),
            np.array(named, np.uint8),
            _SKIPS[skip.mode],
        )

    def find(self, layout: RowLayout, attempts: Attempts) -> tuple[FoundMatches, npt.NDArray[np.bool_]]:
        """Return the matches, and a mask of the rows where an attempt failed; update `attempts`."""
        scope = RowScope(layout)
        letters = self._letters(layout, scope)
        rows = self._rows(layout, letters, attempts)
        longest = int(np.max(layout.ends - layout.begins, initial=0))
        found = t.MatchedRows(
            np.zeros(t.CURSOR, np.int64),
            np.zeros((_ROOM + len(layout) // 8) * t.MATCH, np.int64),
            np.zeros(max(_ROOM, longest, len(layout) + 1), np.int32),
            np.zeros(len(layout), np.uint8),
        )
        found.cursor[t.START] = -1
        facts, states = self._run(layout, scope, rows, found, longest)
        return FoundMatches(layout, self.program, facts, states), found.failed.astype(np.bool_)

    # ------------------------------------------------------------ before matching

    def _letters(self, layout: RowLayout, scope: RowScope) -> Letters:
        """Evaluate each row-local condition once for all rows, and encode the truths as letters."""
        names, parts = self.program.variables, self.conditions.local
        distinct = list(dict.fromkeys(part for name in names for part in parts[name]))
        codes, masks = np.zeros(len(layout), np.int64), [0]
        for first in range(0, len(distinct), _BYTE):
            parts_here = [_truths(part, scope) for part in distinct[first : first + _BYTE]]
            codes, masks = _with_conditions(codes, masks, parts_here, first)
        needed = [sum({1 << distinct.index(part) for part in parts[name]}) for name in names]
        takers = []
        for mask in masks:
            allowed = [need & ~mask == 0 for need in needed]
            takers.append(sum(1 << q for q, v in enumerate(self.program.variable_of) if allowed[v]))
        return Letters(codes.astype(np.int32), _as_words(takers, self._tables.words))

    def _rows(self, layout: RowLayout, letters: Letters, attempts: Attempts) -> t.PartitionedRows:
        """Run the backward pass, and compute the limits of WITHIN."""
        program, tables = self.program, self._tables
        words, states = tables.words, program.states
        bits = 8 if words == 1 else 4
        always = sum(1 << q for q in range(states) if ACCEPT in program.transitions[q])
        closing = sum(1 << q for q in range(states) if ACCEPT_AT_END in program.transitions[q])
        at_end = (1 << states) - 1 if attempts.is_open else always | closing
        sets = np.zeros(len(layout) * words, np.int64)
        succeeding(
            letters.codes,
            letters.takers,
            _leading_to(program, bits, words),
            bits,
            _as_words([at_end], words),
            _as_words([always], words),
            attempts.partitions,
            sets,
        )
        limits, earliest = np.empty(0, np.int64), np.empty(0, np.int32)
        if self.query.within is not None:
            limits = np.zeros(len(layout), np.int64)
            within_limits(
                self._times(layout), attempts.partitions, self.query.within, attempts.passed, attempts.is_open, limits
            )
            if self.conditions.are_local:
                earliest = np.zeros(len(layout) * states, np.int32)
                earliest_ends(
                    tables.offsets, tables.targets, states, words, attempts.partitions, sets, attempts.is_open, earliest
                )
        return t.PartitionedRows(attempts.partitions, sets, limits, earliest, attempts.is_open)

    def _times(self, layout: RowLayout) -> t.Int64s:
        """Return the first ordering column in microseconds; rows without a time sort first."""
        values = layout.column(self.query.order[0].column)
        if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
            values = values.cast(pa.timestamp("us", getattr(values.type, "tz", None)), safe=False).cast(pa.int64())
        elif not pa.types.is_integer(values.type):
            raise InputError(f"WITHIN needs a time as the first column of ORDER BY, not {values.type}")
        return np.asarray(values.cast(pa.int64()).fill_null(-(2**61)).to_numpy(zero_copy_only=False), np.int64)

    # ------------------------------------------------------------ matching

    def _run(
        self, layout: RowLayout, scope: RowScope, rows: t.PartitionedRows, found: t.MatchedRows, longest: int
    ) -> tuple[t.Int64s, t.Int32s]:
        """Run the kernel until all partitions are done; return the matches and the states of their rows."""
        facts: list[t.Int64s] = []
        states: list[t.Int32s] = []
        written, reason = 0, t.FULL
        searching = None if self.conditions.are_local else self._searching(scope, longest)
        while reason != t.DONE:
            if searching is None:
                reason = walk(self._tables, rows, found)
            else:
                reason = search(self._tables, rows, found, *searching, self.most_steps)
            if reason == t.ASK:
                assert searching is not None
                self._answer(layout, found, searching[1], rows.partitions)
            elif reason in (t.DONE, t.FULL):
                written += self._emptied(found, facts, states, written)
            else:
                raise self._failure(reason, layout, found, rows.partitions)
        if not facts:
            return np.zeros((0, t.MATCH), np.int64), np.zeros(0, np.int32)
        return np.concatenate(facts), np.concatenate(states)

    def _emptied(self, found: t.MatchedRows, facts: list[t.Int64s], states: list[t.Int32s], written: int) -> int:
        """Copy the matches out of the kernel's buffers; return their number of rows."""
        matches, taken = int(found.cursor[t.MATCHES]), int(found.cursor[t.TAKEN])
        new = found.matches[: matches * t.MATCH].reshape(-1, t.MATCH).copy()
        new[:, t.PLACE] += written
        facts.append(new)
        states.append(found.states[:taken].copy())
        found.cursor[t.MATCHES] = found.cursor[t.TAKEN] = 0
        return taken

    def _searching(
        self, scope: RowScope, longest: int
    ) -> tuple[condition_kernel.ConditionCode, condition_kernel.SearchRoom]:
        code = ConditionCompiler(self.program, scope).compiled(self.conditions)
        depth, width = longest + 2, len(code.aggregates) // condition_kernel.AGGREGATE
        stack = len(code.code) // condition_kernel.INSTRUCTION + 1
        memo = 1 << min(20, max(10, int(depth * self.program.states * 2).bit_length()))
        room = condition_kernel.SearchRoom(
            np.zeros(depth, np.int64),
            np.zeros(depth, np.int64),
            np.zeros(depth * 2, np.int64),
            np.zeros(depth * width, np.int64),
            np.zeros(depth * width, np.int64),
            np.zeros(depth * width, np.float64),
            np.zeros(depth * code.sets, np.int64),
            np.zeros(depth * code.sets, np.int64),
            depth,
            np.zeros(stack, np.int64),
            np.zeros(stack, np.float64),
            np.zeros(stack, np.uint8),
            np.zeros(memo * ENTRY, np.int64),
        )
        return code, room

    def _answer(
        self, layout: RowLayout, found: t.MatchedRows, room: condition_kernel.SearchRoom, partitions: t.Int64s
    ) -> None:
        """Evaluate a condition on one row that the kernel could not evaluate."""
        cursor = found.cursor
        taken = int(cursor[t.DEPTH]) + 1
        part = int(cursor[t.PART])
        number = int(partitions[part * t.PARTITION + t.NUMBER]) + 1
        facts = np.array([[part, cursor[t.START], taken, number, 0]], np.int64)
        sofar = FoundMatches(layout, self.program, facts, room.states[1 : taken + 1].astype(np.int32))
        scope = MatchScope(sofar, np.zeros(1, np.int64), np.array([taken - 1]))
        parts = self.conditions.others[self.program.variables[int(cursor[t.CONDITION])]]
        holds = all(cast(broadcast(evaluate(part, scope), 1), pa.bool_())[0].as_py() is True for part in parts)
        cursor[t.ANSWER], cursor[t.PHASE] = int(holds), t.ANSWERED

    def _failure(self, reason: int, layout: RowLayout, found: t.MatchedRows, partitions: t.Int64s) -> InputError:
        """Return the error for the reason and the place at which the kernel stopped."""
        part = int(found.cursor[t.PART])
        start = int(found.cursor[t.START])
        number = int(partitions[part * t.PARTITION + t.NUMBER])
        where = self._place(layout, start)
        name = self.query.skip.name or ", ".join(self.query.skip.variables)
        if reason == t.NOT_MAPPED:
            return InputError(f"AFTER MATCH SKIP TO {name}: the match has no row of {name} ({where}, match {number})")
        if reason == t.NO_PROGRESS:
            return InputError(
                f"AFTER MATCH SKIP TO {name} would start at the match's first row again ({where}, match {number})"
            )
        if reason == BY_ZERO:
            return InputError(f"division by zero in DEFINE ({where}): use NULLIF(divisor, 0)")
        called = f" of {self.query.name}" if getattr(self.query, "name", "") else ""
        return BudgetError(
            f"the pattern{called} took more than {self.most_steps:,} steps for one attempt, or for failing attempts "
            f"one after the other ({where}): its conditions leave too many ways to map the rows. Make conditions read "
            "fewer variables, bound quantifiers, or add WITHIN; max_steps sets the limit"
        )

    def _place(self, layout: RowLayout, row: int) -> str:
        """Describe a row for messages by its partition and its number in it."""
        part = int(np.searchsorted(layout.begins, row, side="right")) - 1
        names = self.query.partition
        values = ", ".join(f"{name} = {layout.column(name)[row].as_py()!r}" for name in names) or "the only partition"
        return f"partition {values}, row {row - int(layout.begins[part]) + 1}"


def _truths(condition: RowExpression, scope: RowScope) -> npt.NDArray[np.bool_]:
    values = cast(broadcast(evaluate(condition, scope), scope.size), pa.bool_())
    return np.asarray(pc.fill_null(plain(values), False).to_numpy(zero_copy_only=False), np.bool_)


def _with_conditions(
    codes: t.Int64s, masks: list[int], truths: list[npt.NDArray[np.bool_]], first: int
) -> tuple[t.Int64s, list[int]]:
    """Extend letters by up to eight further conditions, keeping only letters that occur."""
    holding = np.zeros(len(codes), np.uint8)
    for number, truth in enumerate(truths):
        holding |= truth.view(np.uint8) << np.uint8(number)
    size = 1 << len(truths)
    codes = codes * size + holding
    occurs = np.zeros(len(masks) * size, np.bool_)
    occurs[codes] = True
    kept = np.flatnonzero(occurs)
    if len(kept) < len(occurs):
        numbers = np.zeros(len(occurs), np.int64)
        numbers[kept] = np.arange(len(kept))
        codes = numbers[codes]
    return codes, [masks[k // size] | (k % size) << first for k in kept.tolist()]


def _as_words(sets: list[int], words: int) -> t.Int64s:
    """Encode sets of states as words of 64 bits."""
    raw = b"".join(found.to_bytes(words * 8, "little") for found in sets)
    return np.frombuffer(raw, np.int64).copy()


def _leading_to(program: RowProgram, bits: int, words: int) -> t.Int64s:
    """Return the predecessors of every subset of each group of states."""
    before = [0] * (words * _WORD)
    for q in range(program.states):
        for target in program.transitions[q]:
            if target >= 0:
                before[target] |= 1 << q
    found = []
    for group in range(0, words * _WORD, bits):
        unions = [0] * (1 << bits)
        for subset in range(1, 1 << bits):
            low = subset & -subset
            unions[subset] = unions[subset ^ low] | before[group + low.bit_length() - 1]
        found += unions
        if words == 1 and group + bits >= program.states:
            break
    return _as_words(found, words)
