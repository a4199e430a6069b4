"""Compile the conditions of a query to tables for its kernel, and extract the values of events that they read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from weft.algebra.predicates import MIRRORED, Aggregate, Attribute, Comparison, Expression, Literal, Predicate, Value
from weft.kernels.automaton import conditions as kernel
from weft.kernels.automaton.tecs import Path
from weft.kernels.machine import machine
from weft.kernels.machine.tagged import VALUE
from weft.kernels.memory.room import NOTE
from weft.plan.automaton.conditions import CompiledCondition, CompiledConditions
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.machine.code import OPERATORS, Code, Instruction, Quantified, Terms, refused
from weft.runtime.machine.evaluator import Evaluator
from weft.runtime.machine.values import only_used, tag, tag_events

_FUNCTIONS = {
    "COUNT": kernel.COUNT,
    "SUM": kernel.SUM,
    "AVG": kernel.AVERAGE,
    "MIN": kernel.LEAST,
    "MAX": kernel.GREATEST,
    "FIRST": kernel.FIRST,
    "LAST": kernel.LAST,
}


class _Bound(Terms):
    """Bindings of a condition: its slots are slots of the machine; aggregates over the events of a slot are results."""

    def __init__(self, compiled: CompiledConditions, condition: CompiledCondition) -> None:
        self._compiled = compiled
        self._condition = condition
        self.folds: dict[tuple[int, int, int], int] = {}

    def line(self, term: Expression) -> Instruction:
        """See `Terms.line`."""
        match term:
            case Attribute():
                slot, column = self._compiled.slot(self._condition, term), self._compiled.column(term)
                return machine.ATTRIBUTE, slot, column, 0
            case Aggregate(function, attribute):
                slot, column = self._compiled.slot(self._condition, attribute), self._compiled.column(attribute)
                fold = _FUNCTIONS[function], slot, column
                return machine.RESULT, self.folds.setdefault(fold, len(self.folds)), 0, 0
        raise refused(term)

    def quantified(self, atom: Predicate) -> Quantified:
        """See `Terms.quantified`."""
        return Quantified(self._condition.wholes, self._condition.singles)


class ConditionTables(Evaluator):
    """The conditions of one query and the payload of its events."""

    def __init__(self, compiled: CompiledConditions) -> None:
        self._written = compiled
        self.width = VALUE * len(compiled.attributes)
        super().__init__(self._lay(compiled))

    def _lay(self, compiled: CompiledConditions) -> Code:
        code = Code()
        self.compiled = compiled
        self.tables = _tables(compiled, code)
        self.cuts = _cuts(compiled, self.tables)
        self.no_cuts = self.cuts._replace(tests=np.zeros(0, np.int32), fewest=0)
        code.slots, code.results = len(compiled.slots) + 1, len(self.tables.folds) + 1
        return code

    def reorder(self, order: Sequence[int]) -> None:
        """Test the conditions in another order, given by their original numbers; stored payload stays valid."""
        self.read(self._lay(self._written.in_order(order)))

    def __bool__(self) -> bool:
        return bool(self.compiled.conditions)

    def machine(self, path: Path) -> machine.Machine:
        """Return the arguments of the condition machine while the kernel works on a path."""
        if len(self._lists) < len(path.latest) + len(path.earlier):
            self._lists = np.zeros(4 * (len(path.latest) + len(path.earlier)), np.int64)
        return self.machine_on(path.payload, self.width)

    def payload(self, batch: EventBatch) -> Int64s:
        """Return the values that conditions read of each event, as one flat array."""
        values = np.empty(len(batch) * self.width, np.int64)
        tag_events(batch, None, self.compiled.attributes, self.texts, values)
        return values

    def tagged(self, value: Value) -> tuple[int, int]:
        """Encode a constant in the form that conditions compare."""
        return tag(value, self.texts)

    def drop_texts(self, stored: Int64s, live: npt.NDArray[np.bool_]) -> None:
        """Remove texts that no live row of the payload uses; all texts get new ids."""
        self.use_texts(only_used(self.texts, stored, np.repeat(live, len(self.compiled.attributes))))


def _offsets(groups: Sequence[Sequence[object]]) -> npt.NDArray[np.int32]:
    return np.cumsum([0, *map(len, groups)]).astype(np.int32)


def _flat(groups: Iterable[Iterable[int]]) -> npt.NDArray[np.int32]:
    return np.array([item for group in groups for item in group], np.int32)


def _tables(compiled: CompiledConditions, code: Code) -> kernel.Conditions:
    items: tuple[CompiledCondition, ...] = compiled.conditions
    tests = [
        [test for slot in own for item in items for test in _tests(compiled, item, slot)]
        for own in compiled.label_slots
    ]
    general = [
        [
            (number, slot)
            for slot in own
            for number, item in enumerate(items)
            if item.kind == "general" and slot in item.slots
        ]
        for own in compiled.label_slots
    ]
    folds: list[list[tuple[int, int, int]]] = []
    pieces: list[tuple[int, int]] = []
    for item in items:
        bound = _Bound(compiled, item)
        slow = item.kind in ("general", "whole") and item.right is not None
        pieces.append(code.add(Comparison(item.operator, item.left, item.right), bound) if slow else (0, 0))  # type: ignore[arg-type]
        folds.append(list(bound.folds))
    return kernel.Conditions(
        slot_count=len(compiled.slots),
        fewest=max(map(_fewest, items), default=0),
        label_slots_at=_offsets(compiled.label_slots),
        label_slots=_flat(compiled.label_slots),
        label_tests_at=_offsets(tests),
        label_tests=_flat(test for group in tests for test in group),
        label_general_at=_offsets(general),
        label_general=_flat(pair for group in general for pair in group),
        label_enters_at=_offsets(compiled.label_enters),
        label_enters=_flat(compiled.label_enters),
        slow=np.array([bool(a or b) for a, b in zip(general, compiled.label_enters, strict=True)], bool),
        last_tests=_flat([[n for n, item in enumerate(items) if item.kind == "whole" and not item.scoped]]),
        whole=np.array([item.kind == "whole" for item in items], bool),
        own_slots_at=_offsets([item.slots for item in items]),
        own_slots=_flat(item.slots for item in items),
        singles_at=_offsets([item.singles for item in items]),
        singles=_flat(item.singles for item in items),
        folds_at=_offsets(folds),
        folds=_flat(fold for own in folds for fold in own),
        code_at=_flat(pieces),
        room=np.zeros(machine.NOTES * NOTE, np.int64),
    )


def _fewest(item: CompiledCondition) -> int:
    """Return the least number of events with which a match can satisfy a condition on a COUNT, else 0."""
    match item.sides:
        case (Aggregate("COUNT"), Literal(least)):
            operator = item.operator
        case (Literal(least), Aggregate("COUNT")):
            operator = MIRRORED[item.operator]
        case _:
            return 0
    if item.scoped or operator not in (">", ">=", "=") or isinstance(least, bool | str) or not 0 <= least < 2**31:
        return 0
    return math.floor(least) + 1 if operator == ">" else math.ceil(least)


def _cuts(compiled: CompiledConditions, tables: kernel.Conditions) -> kernel.Cuts:
    """Return the tests on pairs of events that no later event can repair, so that failing partial matches are cut."""
    items = [item for item in compiled.conditions if not item.scoped]
    tests = [
        [test for slot in own for item in items for test in _tests(compiled, item, slot) if test[-1] != kernel.OF_LAST]
        for own in compiled.label_slots
    ]
    fills = [slot in own for own in compiled.label_slots for slot in range(len(compiled.slots))]
    flat = _flat(test for group in tests for test in group)
    return kernel.Cuts(_offsets(tests), flat, np.array(fills, bool), len(compiled.slots), tables.fewest, tables.room)


def _tests(compiled: CompiledConditions, item: CompiledCondition, slot: int) -> Iterable[tuple[int, ...]]:
    """Yield the quick tests of a condition at the event that fills a slot."""
    if item.kind not in ("rising", "same", "pair", "last"):
        return
    read = [side.attribute if isinstance(side, Aggregate) else side for side in item.sides]
    places = [(compiled.slot(item, side), compiled.column(side)) for side in read if isinstance(side, Attribute)]
    if len(places) == 1:
        if slot == places[0][0]:
            yield OPERATORS[item.operator], *places[0], *places[0], kernel.AGAINST_NEXT
        return
    lasts = [isinstance(side, Aggregate) for side in item.sides]
    for own, other, operator in ((0, 1, item.operator), (1, 0, MIRRORED[item.operator])):
        which = kernel.OF_LAST if lasts[own] else kernel.AGAINST_LAST if lasts[other] else kernel.OF_ALL
        if slot == places[own][0]:
            yield OPERATORS[operator], *places[own], *places[other], which
