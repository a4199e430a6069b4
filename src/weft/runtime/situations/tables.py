"""A situation as tables for its kernel (see `partitions` and `select` of `weft.kernels.situations`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.algebra.contexts import Context, FromFor, FromUntil, Whole, Windows
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.situations import Situation
from weft.errors import UsageError
from weft.kernels.joins import joint
from weft.kernels.situations import participants as p
from weft.kernels.situations import partitions, search
from weft.plan.search import Search, Step
from weft.runtime.joins.code import Compiler, Constants, View
from weft.runtime.joins.layout import What

_REPEATED = {
    Repeated.EVERY: p.EVERY,
    Repeated.FIRST: p.FIRST,
    Repeated.LAST: p.LAST,
    Repeated.OVERRIDE: p.OVERRIDE,
}
_KINDS = {
    "sequence": partitions.SEQUENCE,
    "all": partitions.ALL,
    "any": partitions.ANY,
    "absence": partitions.ABSENCE,
}


# What no pattern in text asks for, and the machine of `weft.kernels.situations.clauses` does not know.
_UNKNOWN = (joint.CONTAINS, joint.LOOKS, joint.ELAPSED, joint.SPAN, joint.EVERY, joint.VACUOUS)
_SCRATCH = (p.CURRENT, p.SOME, p.HOLDS_NEW, p.BOUND, p.HELD, p.LOW, p.HIGH)


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
        self._code: list[int] = []
        self._class_at = [0]
        self._class_slots: list[int] = []
        columns = [constants.column(name) for own in search.indexed for name in own]
        steps = self._steps()
        self.blocks: dict[int, list[int]] = {
            p.SLOTS: [part for slot in range(self.count) for part in self._slot(slot)],
            p.COLUMNS: columns,
            p.STEPS: steps,
            p.QUICK: self._quick,
            p.CODE: self._code,
            **{scratch: [0] * self.count for scratch in _SCRATCH},
        }
        self.numbers = {
            **_shape(situation),
            p.COUNT: self.count,
            p.ENTRY_SIZE: p.ENTRY + p.CHAINED * max(map(len, search.indexed)),
            p.PART_SIZE: p.PARTITION + p.SIDE * self.count,
            p.INDEXED: len(columns),
        }

    @property
    def code_size(self) -> int:
        """How much code there is."""
        return len(self._code)

    def class_blocks(self) -> dict[int, list[int]]:
        """The classes of events that have been met."""
        return {p.CLASS_AT: self._class_at, p.CLASS_SLOTS: self._class_slots}

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

    def _steps(self) -> list[int]:
        """All steps: by the slot that a new event takes, after those for no slot in particular."""
        nothing = [0] * (self.count * search.STEPPED)
        table = [nothing] * (1 + self.count)
        for first, steps in self._search.ways.items():
            bound: set[int] = set()
            own: list[int] = []
            for step in steps:
                own += self._step(step, bound)
                bound.add(step.slot)
            table[0 if first is None else 1 + first] = own
        return [number for way in table for number in way]

    def _step(self, step: Step, bound: set[int]) -> list[int]:
        types = [slot.type for slot in self.situation.participants]
        row = [0] * search.STEPPED
        row[search.SLOT_OF], row[search.INDEX_OF], row[search.LINK_OF] = step.slot, -1, p.LINK
        if step.lookup is not None:
            place = self._search.indexed[step.slot].index(step.lookup.attribute)
            row[search.INDEX_OF] = int(self._index_at[step.slot]) + place
            row[search.LINK_OF] = p.ENTRY + p.CHAINED * place + 1
            row[search.OTHER] = step.lookup.other
            row[search.OTHER_COLUMN] = self._constants.column(step.lookup.value)
        in_sequence = self.situation.kind == "sequence"
        row[search.AFTER] = max((slot for slot in bound if in_sequence and slot < step.slot), default=-1)
        row[search.BEFORE] = min((slot for slot in bound if in_sequence and slot > step.slot), default=-1)
        row[search.SHARES] = int(not in_sequence and types.count(types[step.slot]) > 1)
        row[search.QUICK_AT], row[search.CODE_AT] = len(self._quick), len(self._code)
        self._add_tests(step)
        row[search.QUICK_END], row[search.CODE_END] = len(self._quick), len(self._code)
        return row

    def _add_tests(self, step: Step) -> None:
        for operation, x, y, z in self._compiler.conditions(step.tests, self._view).reshape(-1, joint.WIDTH).tolist():
            if operation == joint.QUICK:
                read = [part for packed in (y, z) for part in divmod(packed % joint.SIDE, joint.SLOT)]
                self._quick += [x, *read]
            elif operation in _UNKNOWN:
                raise UsageError("this condition over several participants runs on the engine 'meaning' only")
            else:
                self._code += [operation, x, y, z]


def _shape(situation: Situation) -> dict[int, int]:
    context = situation.context
    kind, length, step = _spans(context)
    windows = isinstance(context, Windows)
    # A set may be found twice: in several partitions, or as a reused event alone when others are consumed.
    overlaps = isinstance(context, FromUntil | FromFor) or (windows and step < length) or situation.kind == "any"
    return {
        p.KIND: _KINDS[situation.kind],
        p.DEFERRED: int(situation.evaluation is Evaluation.DEFERRED),
        p.SINGLE: int(situation.cardinality is Cardinality.SINGLE),
        p.CONTEXT: kind,
        p.LENGTH: length,
        p.STEP: step,
        p.COUNTS_EMPTY: int(situation.kind == "absence" and windows),
        p.OVERLAPS: int(overlaps),
    }


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
