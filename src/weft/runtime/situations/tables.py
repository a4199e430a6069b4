"""A situation as tables for its kernel (see `weft.kernels.partitions` and `weft.kernels.select`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weft.algebra.contexts import Context, FromFor, FromUntil, Whole, Windows
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.situations import Situation
from weft.kernels import joint, participants, partitions, select
from weft.kernels.partitions import Layout
from weft.plan.search import Search, Step
from weft.runtime.events import Int64s
from weft.runtime.graph.code import Compiler, Constants, View
from weft.runtime.graph.layout import What

_REPEATED = {
    Repeated.EVERY: participants.EVERY,
    Repeated.FIRST: participants.FIRST,
    Repeated.LAST: participants.LAST,
    Repeated.OVERRIDE: participants.OVERRIDE,
}
_KINDS = {
    "sequence": partitions.SEQUENCE,
    "all": partitions.ALL,
    "any": partitions.ANY,
    "absence": partitions.ABSENCE,
}


class _Participants:
    """The slots of a situation as slots of one occurrence."""

    def slot(self, node: int, what: What, variable: int) -> int:
        """The slot of a variable is its number."""
        return variable


class SituationTables:
    """What the kernel is told of a situation, once and for all; classes of events are added as they are met."""

    def __init__(self, situation: Situation, search: Search, constants: Constants) -> None:
        self.situation = situation
        self.count = len(situation.participants)
        self._search = search
        self._constants = constants
        self._view = View("alone", (0,), (situation.variables,))
        self._compiler = Compiler(_Participants(), constants)
        self._index_at = np.cumsum([0, *map(len, search.indexed)])
        self._quick: list[int] = []
        self._code: list[Int64s] = [np.empty(0, np.int64)]
        self._code_size = 0
        self._class_at = [0]
        self._class_slots: list[int] = []
        self.columns = np.array([constants.column(name) for own in search.indexed for name in own], np.int64)
        self.slots = np.array([part for slot in range(self.count) for part in self._slot(slot)], np.int64)
        self.shape = _shape(situation)
        self.steps = self._steps()
        self.quick = np.array(self._quick, np.int64)
        self.code = np.concatenate(self._code)

    @property
    def entry_size(self) -> int:
        """Numbers of an entry."""
        return participants.ENTRY + participants.CHAINED * self.most_indexes

    @property
    def most_indexes(self) -> int:
        """Attributes of one slot that are looked up, at most."""
        return max(map(len, self._search.indexed))

    @property
    def part_size(self) -> int:
        """Numbers of a partition."""
        return participants.PARTITION + participants.SIDE * self.count

    @property
    def overlaps(self) -> bool:
        """Whether an event may be in several partitions."""
        return bool(self.shape[partitions.OVERLAPS])

    def layout(self) -> Layout:
        """The tables as they are now."""
        at, slots = np.array(self._class_at, np.int64), np.array(self._class_slots, np.int64)
        return Layout(self.shape, at, slots, self.steps, self.quick, self.code)

    def add_class(self, truths: Sequence[bool]) -> bool:
        """Add a class of events, by the truth of `exists` and `fills` of each slot; say whether it has a slot."""
        for slot in range(self.count):
            exists, fills = truths[2 * slot], truths[2 * slot + 1]
            override = self.situation.participants[slot].repeated is Repeated.OVERRIDE
            if fills or (exists and override):
                self._class_slots.append(2 * slot + int(fills))
        self._class_at.append(len(self._class_slots))
        return self._class_at[-1] > self._class_at[-2]

    def _slot(self, slot: int) -> tuple[int, int, int, int]:
        participant = self.situation.participants[slot]
        consumes = int(participant.consumption is Consumption.CONSUME)
        first, after = int(self._index_at[slot]), int(self._index_at[slot + 1])
        return _REPEATED[participant.repeated], consumes, first, after - first

    def _steps(self) -> Int64s:
        """All steps: by the slot that a new event takes, after those for no slot in particular."""
        table: npt.NDArray[np.int64] = np.zeros((self.count + 1, self.count, select.STEPPED), np.int64)
        for first, steps in self._search.ways.items():
            bound: set[int] = set()
            for depth, step in enumerate(steps):
                table[0 if first is None else 1 + first, depth] = self._step(step, bound)
                bound.add(step.slot)
        return table.ravel()

    def _step(self, step: Step, bound: set[int]) -> Int64s:
        types = [slot.type for slot in self.situation.participants]
        row = np.zeros(select.STEPPED, np.int64)
        row[select.SLOT_OF], row[select.INDEX_OF], row[select.LINK_OF] = step.slot, -1, participants.LINK
        if step.lookup is not None:
            place = self._search.indexed[step.slot].index(step.lookup.attribute)
            row[select.INDEX_OF] = self._index_at[step.slot] + place
            row[select.LINK_OF] = participants.ENTRY + participants.CHAINED * place + 1
            row[select.OTHER] = step.lookup.other
            row[select.OTHER_COLUMN] = self._constants.column(step.lookup.value)
        in_sequence = self.situation.kind == "sequence"
        row[select.AFTER] = max((slot for slot in bound if in_sequence and slot < step.slot), default=-1)
        row[select.BEFORE] = min((slot for slot in bound if in_sequence and slot > step.slot), default=-1)
        row[select.SHARES] = not in_sequence and types.count(types[step.slot]) > 1
        row[select.QUICK], row[select.CODE] = len(self._quick), self._code_size
        self._add_tests(step)
        row[select.QUICK_END], row[select.CODE_END] = len(self._quick), self._code_size
        return row

    def _add_tests(self, step: Step) -> None:
        code = self._compiler.conditions(step.tests, self._view).reshape(-1, joint.WIDTH)
        quick = code[:, 0] == joint.QUICK
        for _, symbol, *operands in code[quick].tolist():
            read = [part for packed in operands for part in divmod(packed % joint.SIDE, joint.SLOT)]
            self._quick += [symbol, *read]
        self._code.append(code[~quick].ravel())
        self._code_size += self._code[-1].size


def _shape(situation: Situation) -> Int64s:
    shape = np.zeros(partitions.SHAPE, np.int64)
    context = situation.context
    shape[partitions.KIND] = _KINDS[situation.kind]
    shape[partitions.DEFERRED] = situation.evaluation is Evaluation.DEFERRED
    shape[partitions.SINGLE] = situation.cardinality is Cardinality.SINGLE
    shape[partitions.CONTEXT], shape[partitions.LENGTH], shape[partitions.STEP] = _spans(context)
    windows = isinstance(context, Windows)
    shape[partitions.COUNTS_EMPTY] = situation.kind == "absence" and windows
    shape[partitions.OVERLAPS] = isinstance(context, FromUntil | FromFor) or (
        isinstance(context, Windows) and context.step < context.length
    )
    return shape


def _spans(context: Context) -> tuple[int, int, int]:
    match context:
        case Whole():
            return partitions.WHOLE, 0, 0
        case Windows(length=length, step=step):
            return partitions.WINDOWS, length, step
        case FromUntil():
            return partitions.UNTIL, 0, 0
        case FromFor(length=length):
            return partitions.LASTING, length, 0
    raise TypeError(f"not a context: {context!r}")
