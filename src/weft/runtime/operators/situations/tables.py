"""Compile a situation to tables for its kernel (see `partitions` and `select` of `weft.kernels.situations`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.algebra.contexts import Context, Forgetting, FromFor, FromUntil, Whole, Windows
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.predicates import And, Attribute, Call, Comparison, Expression, Predicate, variables_of
from weft.algebra.situations import Situation
from weft.algebra.terms import conjuncts
from weft.kernels.machine import machine
from weft.kernels.situations import blocks as kernel
from weft.kernels.situations import participants as p
from weft.kernels.situations import partitions
from weft.plan.search import SearchStep, SituationSearch
from weft.runtime.machine.code import OPERATORS, Code, Instruction, Terms, refused
from weft.runtime.operators.event_store import Columns
from weft.tree import Node

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


_SCRATCH = (p.CURRENT, p.SOME, p.HOLDS_NEW, p.BOUND, p.HELD, p.LOW, p.HIGH, p.WALK)


class _Bound(Terms):
    """Bindings of conditions: the slots of a situation are slots of the machine."""

    def __init__(self, variables: Sequence[str], columns: Columns) -> None:
        self._variables = variables
        self._columns = columns

    def read(self, term: Expression) -> tuple[int, int] | None:
        """Return the slot and column of an attribute, or of a call on one event, or None for other terms."""
        match term:
            case Attribute(name, variable):
                return self._variables.index(variable or ""), self._columns.number(name)
            case Call() if len(names := variables_of(term)) == 1:
                (variable,) = names
                value = term.transform(_of_the_event)
                assert isinstance(value, Expression)
                return self._variables.index(variable), self._columns.number_of_value(value)
        return None

    def line(self, term: Expression) -> Instruction:
        """See `Terms.line`."""
        found = self.read(term)
        if found is None:
            raise refused(term)
        return machine.ATTRIBUTE, *found, 0


def _of_the_event(node: Node) -> Node:
    return Attribute(node.name) if isinstance(node, Attribute) else node


class SituationTables:
    """The constant description of a situation for the kernel; classes of events are added as they occur."""

    def __init__(self, situation: Situation, search: SituationSearch, columns: Columns) -> None:
        self.situation = situation  # the original one: see `slots`
        self.count = len(situation.participants)
        context = situation.context
        self.forget = context.forget if isinstance(context, Forgetting) else None  # ticks
        self._search = search
        self.code = Code()
        self._columns = columns
        self._bound = _Bound(situation.variables, columns)
        self._index_at = np.cumsum([0, *map(len, search.indexed)])
        self._quick: list[int] = []
        self._class_at = [0]
        self._class_slots: list[int] = []
        looked_up = [columns.number(name) for own in search.indexed for name in own]
        steps, block_steps = self._steps(), self._block_steps()
        runs = [block.slots for block in search.blocks]
        firsts = np.cumsum([0, *map(len, runs)]).tolist()
        self.blocks: dict[int, list[int]] = {
            p.SLOTS: self.slots(situation),
            p.COLUMNS: looked_up,
            p.STEPS: steps,
            p.BLOCK_STEPS: block_steps,
            p.BLOCKS: [n for run, first in zip(runs, firsts, strict=False) for n in (run[0], run[-1], first)],
            p.QUICK: self._quick,
            **{scratch: [0] * self.count for scratch in _SCRATCH},
        }
        self.numbers = {
            **_shape(situation),
            p.COUNT: self.count,
            p.ENTRY_SIZE: p.ENTRY + p.CHAINED * max(map(len, search.indexed)),
            p.PART_SIZE: p.PARTITION + p.SIDE * self.count,
            p.INDEXED: len(looked_up),
            p.BLOCK_COUNT: len(runs),
        }

    def slots(self, situation: Situation) -> list[int]:
        """Return the slots of the situation, or of one that differs only in what is evaluated eagerly or shared."""
        return [part for slot in range(self.count) for part in self._slot(situation, slot)]

    def class_blocks(self) -> dict[int, list[int]]:
        """Return the tables of the classes of events so far."""
        return {p.CLASS_AT: self._class_at, p.CLASS_SLOTS: self._class_slots}

    def forget_classes(self) -> None:
        """Remove all classes, since events are classified differently from now on."""
        self._class_at, self._class_slots = [0], []

    def add_class(self, truths: Sequence[bool]) -> bool:
        """Add a class of events, by the truth of `exists` and `fills` of each slot; return whether it has a slot."""
        for slot in range(self.count):
            exists, fills = truths[2 * slot], truths[2 * slot + 1]
            override = self.situation.participants[slot].repeated is Repeated.OVERRIDE
            if fills or (exists and override):
                self._class_slots.append(2 * slot + int(fills))
        self._class_at.append(len(self._class_slots))
        return self._class_at[-1] > self._class_at[-2]

    def _slot(self, situation: Situation, slot: int) -> tuple[int, ...]:
        participant = situation.participants[slot]
        consumes = int(participant.consumption is Consumption.CONSUME)
        first, after = int(self._index_at[slot]), int(self._index_at[slot + 1])
        ends = [block.slots[-1] for block in self._search.blocks[: situation.split]]
        # The ends of a shared prefix are known already.
        eager = 1 + ends.index(slot) if slot in ends and slot >= situation.shared else 0
        own = next((block for block in self._search.free_blocks if slot in block), ())
        if own:
            eager = int(own in self._search.free_blocks[: situation.split])
        return (
            _REPEATED[participant.repeated],
            consumes,
            first,
            after - first,
            eager,
            (own[0] + 1 if own else 0),
            len(own),
        )

    def _steps(self) -> list[int]:
        """Return all steps by the slot that a new event takes, after those for no slot in particular."""
        nothing = [0] * (self.count * kernel.STEPPED)
        table = [nothing] * (1 + self.count)
        for first, steps in self._search.ways.items():
            table[0 if first is None else 1 + first] = self._rows(steps)
        return [number for way in table for number in way]

    def _block_steps(self) -> list[int]:
        return [number for block in self._search.blocks for number in self._rows(block.steps)]

    def _rows(self, steps: Sequence[SearchStep]) -> list[int]:
        bound: set[int] = set()
        rows: list[int] = []
        for step in steps:
            rows += self._step(step, bound)
            bound.add(step.slot)
        return rows

    def _step(self, step: SearchStep, bound: set[int]) -> list[int]:
        types = [slot.type for slot in self.situation.participants]
        row = [0] * kernel.STEPPED
        row[kernel.SLOT_OF], row[kernel.INDEX_OF], row[kernel.LINK_OF] = step.slot, -1, p.LINK
        if step.lookup is not None:
            place = self._search.indexed[step.slot].index(step.lookup.attribute)
            row[kernel.INDEX_OF] = int(self._index_at[step.slot]) + place
            row[kernel.LINK_OF] = p.ENTRY + p.CHAINED * place + 1
            row[kernel.OTHER] = step.lookup.other
            row[kernel.OTHER_COLUMN] = self._columns.number(step.lookup.value)
        in_sequence = self.situation.kind == "sequence"
        row[kernel.AFTER] = max((slot for slot in bound if in_sequence and slot < step.slot), default=-1)
        row[kernel.BEFORE] = min((slot for slot in bound if in_sequence and slot > step.slot), default=-1)
        row[kernel.SHARES] = int(not in_sequence and types.count(types[step.slot]) > 1)
        row[kernel.OPENS_BLOCK] = int(step.opens)
        row[kernel.QUICK_AT] = len(self._quick)
        row[kernel.CODE_AT], row[kernel.CODE_END] = self._add_tests(step)
        row[kernel.QUICK_END] = len(self._quick)
        return row

    def _add_tests(self, step: SearchStep) -> tuple[int, int]:
        """Add the quick tests, and return the range of the code of the others."""
        slow: list[Predicate] = []
        for part in conjuncts(step.tests):
            sides = (part.left, part.right) if isinstance(part, Comparison) else ()
            read = [found for side in sides if (found := self._bound.read(side)) is not None]
            if isinstance(part, Comparison) and len(read) == 2:
                self._quick += [OPERATORS[part.operator], *read[0], *read[1]]
            else:
                slow.append(part)
        return self.code.add(And(tuple(slow)), self._bound) if slow else (0, 0)


def _shape(situation: Situation) -> dict[int, int]:
    context = situation.context
    kind, length, step = _spans(context)
    windows = isinstance(context, Windows)
    # A set may be found twice: in several partitions, or as a reused event alone when others are consumed.
    overlaps = isinstance(context, FromUntil | FromFor) or (windows and step < length) or situation.kind == "any"
    forgets = isinstance(context, Forgetting)
    counts_empty = int(situation.kind == "absence" and windows)
    return {
        p.KIND: _KINDS[situation.kind],
        p.DEFERRED: int(situation.evaluation is Evaluation.DEFERRED),
        p.SINGLE: int(situation.cardinality is Cardinality.SINGLE),
        p.CONTEXT: kind,
        p.LENGTH: length,
        p.STEP: step,
        p.COUNTS_EMPTY: partitions.FORGETS if forgets else counts_empty,
        p.OVERLAPS: int(overlaps and not forgets),
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
