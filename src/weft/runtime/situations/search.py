"""Which candidates the policies select, found slot by slot without making the others.

The search binds slots in declared order and tests a clause as soon as its variables are bound. At a `first` or `last`
slot it stops after the first event that leads to a candidate: the walk is in the order in which candidates stand,
so nothing later can come before. Equalities with slots bound earlier are looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from weft.algebra.normal_form import clauses, equality_of
from weft.algebra.policies import Cardinality, Repeated
from weft.algebra.predicates import Attribute, Predicate, Value
from weft.algebra.situations import Situation
from weft.algebra.terms import mentioned
from weft.runtime.situations.formulas import Attributes, Test, index_key, test_of
from weft.runtime.situations.happenings import Happening

Members = tuple[Happening, ...]
Chosen = tuple[Happening | None, ...]
Reads = tuple[int, str]  # a slot and an attribute
_NOTHING: Attributes = {}
_NEVER = 1 << 62


class SlotRows:
    """The events that a slot can hold now, by place; and by the value of an attribute where that is looked up."""

    __slots__ = ("index", "rows")

    def __init__(self, indexed: Iterable[str]) -> None:
        self.rows: list[Happening] = []
        self.index: dict[str, dict[tuple[bool, Value], list[Happening]]] = {name: {} for name in indexed}

    def add(self, event: Happening) -> None:
        """One more event, the newest."""
        self.rows.append(event)
        for name, table in self.index.items():
            value = event.attributes.get(name)
            if value is not None:
                table.setdefault(index_key(value), []).append(event)

    def clear(self) -> None:
        """No events."""
        self.rows.clear()
        for table in self.index.values():
            table.clear()

    def remove(self, event: Happening) -> None:
        """One event less, if it is here."""
        if not _remove(self.rows, event):
            return
        for name, table in self.index.items():
            value = event.attributes.get(name)
            if value is not None:
                rows = table[index_key(value)]
                _remove(rows, event)
                if not rows:
                    del table[index_key(value)]

    def found(self, name: str, value: Value | None) -> Sequence[Happening]:
        """The events with a value in an attribute."""
        return () if value is None else self.index[name].get(index_key(value), ())


def _remove(rows: list[Happening], event: Happening) -> bool:
    """Take an event out of a list that is ordered by place, and say whether it was there."""
    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if rows[middle].place < event.place else (low, middle)
    if low == len(rows) or rows[low] is not event:
        return False
    del rows[low]
    return True


@dataclass(frozen=True)
class _Step:
    """Bind a slot: where its events are looked up, and what is tested then."""

    slot: int
    lookup: tuple[str, int, str] | None  # own attribute; slot and attribute that it must equal
    tests: tuple[Test, ...]
    repeated: Repeated


@dataclass
class _Walk:
    """One search: the slots of a partition, the events bound so far, and the one that must be a member."""

    slots: Sequence[SlotRows]
    bound: list[Happening | None]
    attributes: list[Attributes]
    new: Happening | None
    new_slots: tuple[int, ...]  # those that the new one may still take; empty when it is bound
    single: bool
    found: list[Members] = field(default_factory=list)


class Searcher:
    """Selection for one situation."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.in_sequence = situation.kind == "sequence"
        self.slots: dict[str | None, int] = {name: at for at, name in enumerate(situation.variables)}
        self.count = len(situation.participants)
        self.where = [
            [test_of(part, self.slots) for part in (*slot.where, *self._own_clauses(number))]
            for number, slot in enumerate(situation.participants)
        ]
        self.assertion = [test_of(part, self.slots) for part in situation.assertion]
        self._clauses = self._shared_clauses()
        self._equal = _equal_attributes(self._clauses, self.slots)
        self._plans = {fixed: self._steps(fixed) for fixed in (None, *range(self.count))}
        self.indexed = self._indexed()

    def _is_override(self, slot: int) -> bool:
        return self.situation.participants[slot].repeated is Repeated.OVERRIDE

    def _own_clauses(self, slot: int) -> list[Predicate]:
        """Clauses about one slot alone: other events need not be kept, unless the newest counts whatever it is."""
        if self.situation.kind in ("any", "absence") or self._is_override(slot):
            return []
        name = {self.situation.variables[slot]}
        return [clause for clause in clauses(self.situation.assertion) if mentioned(clause) == name]

    def _shared_clauses(self) -> list[Predicate]:
        if self.situation.kind in ("any", "absence"):
            return []
        kept = []
        for clause in clauses(self.situation.assertion):
            names = mentioned(clause)
            if len(names) != 1 or self._is_override(self.slots[next(iter(names))]):
                kept.append(clause)
        return kept

    def _steps(self, fixed: int | None) -> list[_Step]:
        bound = set() if fixed is None else {fixed}
        todo = [({self.slots[name] for name in mentioned(clause)}, clause) for clause in self._clauses]
        steps = []
        order = [*([] if fixed is None else [fixed]), *(slot for slot in range(self.count) if slot != fixed)]
        for slot in order:
            lookup = next(
                (
                    (name, other, other_name)
                    for group in self._equal
                    for own, name in group
                    for other, other_name in group
                    if own == slot and other in bound and other != slot
                ),
                None,
            )
            bound.add(slot)
            now = [clause for names, clause in todo if names <= bound]
            todo = [(names, clause) for names, clause in todo if not names <= bound]
            tests = tuple(test_of(clause, self.slots) for clause in now)
            steps.append(_Step(slot, lookup, tests, self.situation.participants[slot].repeated))
        return steps

    def _indexed(self) -> list[tuple[str, ...]]:
        names: list[set[str]] = [set() for _ in range(self.count)]
        for steps in self._plans.values():
            for step in steps:
                if step.lookup is not None:
                    names[step.slot].add(step.lookup[0])
        return [tuple(sorted(own)) for own in names]

    # -- what a partition keeps -----------------------------------------------------------------

    def slots_of(self, event: Happening) -> tuple[int, ...]:
        """The slots that an event exists for."""
        found = []
        bound: list[Attributes] = [_NOTHING] * self.count
        for number, slot in enumerate(self.situation.participants):
            if slot.type == event.type:
                bound[number] = event.attributes
                if all(test(bound) for test in self.where[number]):
                    found.append(number)
                bound[number] = _NOTHING
        return tuple(found)

    def is_candidate(self, event: Happening, slot: int) -> bool:
        """In `any` and `absence`: whether the event alone satisfies the assertion in this slot."""
        bound: list[Attributes] = [_NOTHING] * self.count
        bound[slot] = event.attributes
        return all(test(bound) for test in self.assertion)

    # -- selection ------------------------------------------------------------------------------

    def select(self, slots: Sequence[SlotRows], new: Happening | None, own: tuple[int, ...]) -> list[Chosen]:
        """The sets selected at one moment, in order; with a new event (in its slots `own`) those it is in."""
        single = self.situation.cardinality is Cardinality.SINGLE
        if self.situation.kind == "any":
            chosen = self._alternatives(slots, new)
            return chosen[:1] if single else chosen
        walk = _Walk(slots, [None] * self.count, [_NOTHING] * self.count, new, own, single)
        if new is not None and self.in_sequence:
            # Nothing that has arrived is after the new event.
            walk.new_slots = own = (self.count - 1,) if self.count - 1 in own else ()
        if new is not None and not own:
            return []
        if any(not rows.rows for rows in slots):
            return []
        if new is not None and len(own) == 1:
            steps, walk.new_slots = self._plans[own[0]], ()
            if not self._bind(walk, steps[0], new):
                return []
            self._walk(walk, steps, 1)
        else:
            self._walk(walk, self._plans[None], 0)
        return list(walk.found)

    def _bind(self, walk: _Walk, step: _Step, event: Happening) -> bool:
        walk.bound[step.slot] = event
        walk.attributes[step.slot] = event.attributes
        return all(test(walk.attributes) for test in step.tests)

    def _walk(self, walk: _Walk, steps: Sequence[_Step], at: int) -> bool:
        """Bind the slots from step `at` on; say whether that gave a candidate."""
        if at == len(steps):
            members = tuple(event for event in walk.bound if event is not None)
            walk.found.append(members)
            return True
        step = steps[at]
        some = False
        before = walk.new_slots
        for event in self._events(walk, step):
            if self._bind(walk, step, event):
                walk.new_slots = () if event is walk.new else before
                some |= self._walk(walk, steps, at + 1)
                walk.new_slots = before
            walk.bound[step.slot] = None
            walk.attributes[step.slot] = _NOTHING
            if some and (walk.single or step.repeated in (Repeated.FIRST, Repeated.LAST)):
                break
        return some

    def _events(self, walk: _Walk, step: _Step) -> Iterator[Happening]:
        """The events that may be bound to a slot now, in the order of its policy."""
        slot = step.slot
        if step.lookup is None:
            rows: Sequence[Happening] = walk.slots[slot].rows
        else:
            own, other, name = step.lookup
            rows = walk.slots[slot].found(own, walk.attributes[other].get(name))
        must = walk.new if walk.new_slots and slot == walk.new_slots[-1] else None
        low, high = self._times(walk.bound, slot)
        for event in reversed(rows) if step.repeated is Repeated.LAST else rows:
            if must is not None and event is not must:
                continue
            if self.in_sequence:
                if event.start > low and event.end < high:
                    yield event
            elif event not in walk.bound:
                yield event

    def _times(self, bound: Sequence[Happening | None], slot: int) -> tuple[int, int]:
        """In a sequence: after what and before what an event in the slot must be."""
        if not self.in_sequence:
            return -_NEVER, _NEVER
        before = bound[slot - 1] if slot else None
        after = next((event for event in bound[slot + 1 :] if event is not None), None)
        return -_NEVER if before is None else before.end, _NEVER if after is None else after.start

    def _alternatives(self, slots: Sequence[SlotRows], new: Happening | None) -> list[Chosen]:
        """In `any`: the earliest in slots under `first`, the latest in slots under `last`, and all others."""
        by_policy: dict[Repeated, list[tuple[int, int, Happening]]] = {repeated: [] for repeated in Repeated}
        for number, slot in enumerate(self.situation.participants):
            rows = slots[number].rows if new is None else [row for row in slots[number].rows[-1:] if row is new]
            by_policy[slot.repeated] += [(row.place, number, row) for row in rows if self.is_candidate(row, number)]
        first, last = sorted(by_policy[Repeated.FIRST])[:1], sorted(by_policy[Repeated.LAST])[-1:]
        taken = sorted([*first, *last, *by_policy[Repeated.EVERY], *by_policy[Repeated.OVERRIDE]])
        return [tuple(row if at == number else None for at in range(self.count)) for _, number, row in taken]


def _equal_attributes(parts: Iterable[Predicate], slots: dict[str | None, int]) -> list[list[Reads]]:
    """Groups of attributes that must all be equal: equality of values is transitive."""
    groups: list[set[Reads]] = []
    for clause in parts:
        equality = equality_of(clause)
        if equality is not None:
            merged = {_reads(equality.left, slots), _reads(equality.right, slots)}
            for group in [group for group in groups if group & merged]:
                merged |= group
                groups.remove(group)
            groups.append(merged)
    return [sorted(group) for group in groups]


def _reads(attribute: Attribute, slots: dict[str | None, int]) -> Reads:
    return slots[attribute.variable], attribute.name
