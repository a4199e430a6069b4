"""Conditions over several events: when each is tested, and which slots and attributes of events it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft.algebra.predicates import Aggregate, Attribute, Comparison, ComparisonOperator, Expression, Monotone
from weft.plan.automaton.cea import Automaton, AutomatonCondition, Slot
from weft.plan.automaton.determinize import Label

Kind = str  # "pair", "last", "general", "rising", "whole" or "same"


@dataclass(frozen=True)
class CompiledCondition:
    """One condition: when it is tested, what it reads, and its two sides, of which "rising" and "same" have one."""

    kind: Kind
    operator: ComparisonOperator
    scoped: bool
    slots: tuple[int, ...]  # all its slots
    singles: tuple[int, ...]  # those read event by event
    wholes: tuple[int, ...]  # those without whose events it says nothing
    left: Expression
    right: Expression | None
    number: int  # that its slots are known by

    @property
    def sides(self) -> tuple[Expression, ...]:
        """The sides there are."""
        return (self.left,) if self.right is None else (self.left, self.right)


@dataclass(frozen=True)
class CompiledConditions:
    """All conditions of a query, and which attributes of an event they read."""

    slots: tuple[Slot, ...]
    attributes: tuple[str, ...]
    conditions: tuple[CompiledCondition, ...]
    label_slots: tuple[tuple[int, ...], ...]
    label_enters: tuple[tuple[int, ...], ...]
    same: Mapping[Slot, Slot]  # slots that others stand for

    def slot(self, condition: CompiledCondition, attribute: Attribute) -> int:
        """Return the slot with the events of an attribute."""
        slot = condition.number, attribute.variable or ""
        return self.slots.index(self.same.get(slot, slot))

    def column(self, attribute: Attribute) -> int:
        """The number of an attribute among those that are read; -1 where events are counted."""
        return -1 if attribute.name == "*" else self.attributes.index(attribute.name)

    def in_order(self, order: Sequence[int]) -> CompiledConditions:
        """Return the conditions in another order, given by their numbers; slots and attributes stay."""
        places = {number: place for place, number in enumerate(order)}
        implied = self.conditions[len(order) :]
        return replace(
            self,
            conditions=(*(self.conditions[number] for number in order), *implied),
            label_enters=tuple(tuple(sorted(places[number] for number in own)) for own in self.label_enters),
        )


@dataclass
class _Compiler:
    same: Mapping[Slot, Slot]
    slots: dict[Slot, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)

    def slot(self, condition: int, attribute: Attribute) -> int:
        """The slot of an attribute's variable; slot and attribute are there from then on."""
        assert attribute.variable is not None
        if attribute.name != "*":
            self.attributes.setdefault(attribute.name, len(self.attributes))
        slot = condition, attribute.variable
        return self.slots.setdefault(self.same.get(slot, slot), len(self.slots))

    def read(self, condition: int, node: Expression) -> Iterable[tuple[int, str]]:
        """The slots that an expression reads, each with the function of all its events, or nothing."""
        match node:
            case Attribute():
                yield self.slot(condition, node), ""
            case Aggregate(function, attribute):
                yield self.slot(condition, attribute), function
            case _:
                for child in node.children():
                    assert isinstance(child, Expression)
                    yield from self.read(condition, child)


def compile_conditions(automaton: Automaton, labels: Sequence[Label]) -> CompiledConditions:
    """Compile a query's conditions to tables."""
    compiler = _Compiler(_same_slots(automaton))
    conditions = automaton.conditions
    compiled = [_compile(compiler, number, condition) for number, condition in enumerate(conditions)]
    slots = tuple(compiler.slots)
    compiled += [implied for condition in compiled for implied in _implied(condition, automaton)]
    return CompiledConditions(
        slots,
        tuple(compiler.attributes),
        tuple(compiled),
        tuple(tuple(sorted({compiler.slots[compiler.same[slot]] for slot in label.slots})) for label in labels),
        tuple(tuple(sorted(label.enters)) for label in labels),
        compiler.same,
    )


def order_of(written: Sequence[AutomatonCondition], changed: Sequence[AutomatonCondition]) -> list[int]:
    """Return the numbers of conditions in their new order; equal ones keep their order."""
    left = list(enumerate(written))
    order = []
    for condition in changed:
        place = next(at for at, (_, other) in enumerate(left) if other == condition)
        order.append(left.pop(place)[0])
    return order


def _same_slots(automaton: Automaton) -> dict[Slot, Slot]:
    """For each slot the first that is always filled by the same events, so that one is enough."""
    holders: dict[Slot, set[int]] = {}
    for number, atom in enumerate(automaton.atoms):
        for slot in atom.slots:
            holders.setdefault(slot, set()).add(number)
    found: dict[object, Slot] = {}
    same: dict[Slot, Slot] = {}
    for slot in sorted(holders):
        scope = slot[0] if automaton.conditions[slot[0]].scoped else None
        same[slot] = found.setdefault((scope, slot[1], frozenset(holders[slot])), slot)
    return same


def _compile(compiler: _Compiler, number: int, condition: AutomatonCondition) -> CompiledCondition:
    predicate = condition.predicate
    if isinstance(predicate, Monotone):
        slot = compiler.slot(number, predicate.attribute)
        operator: ComparisonOperator = "<" if predicate.direction == "INCREASING" else ">"
        rising = predicate.attribute
        return CompiledCondition("rising", operator, condition.scoped, (slot,), (slot,), (), rising, None, number)
    assert isinstance(predicate, Comparison), f"not a condition: {predicate!r}"
    left, right = predicate.left, predicate.right
    read = [*compiler.read(number, left), *compiler.read(number, right)]
    singles = tuple(dict.fromkeys(slot for slot, function in read if not function))
    wholes = tuple(sorted({slot for slot, function in read if function and function != "COUNT"}))
    everything = tuple(sorted({slot for slot, _ in read}))
    if _is_last(left, right) and len(everything) == 2:
        kind = "last"
    elif any(function for _, function in read):
        kind = "whole"
    elif isinstance(left, Attribute) and isinstance(right, Attribute) and len(singles) == 2:
        kind = "pair"
    else:
        kind = "general"
    return CompiledCondition(
        kind, predicate.operator, condition.scoped, everything, singles, wholes, left, right, number
    )


def _is_last(left: Expression, right: Expression) -> bool:
    """Whether an attribute is compared with that of the last event of a variable."""
    match left, right:
        case (Aggregate("LAST"), Attribute()) | (Attribute(), Aggregate("LAST")):
            return True
    return False


def _implied(condition: CompiledCondition, automaton: Automaton) -> Iterable[CompiledCondition]:
    """Return what an equality of two variables implies for one of them alone.

    If every match binds a, then `a[x] = b[y]` for all pairs requires that all events of b have the same y. This can be
    tested before any a is known.
    """
    if condition.kind != "pair" or condition.operator != "=" or condition.scoped:
        return
    one, other = condition.sides
    assert isinstance(one, Attribute)
    assert isinstance(other, Attribute)
    for own, theirs in ((one, other), (other, one)):
        if _is_always_filled(automaton, (condition.number, theirs.variable or "")):
            slot = condition.singles[0 if own is one else 1]
            yield CompiledCondition("same", "=", False, (slot,), (slot,), (), own, None, condition.number)


def _is_always_filled(automaton: Automaton, slot: Slot) -> bool:
    """Whether no run can do without an event in the slot."""
    others = {number for number, atom in enumerate(automaton.atoms) if slot not in atom.slots}
    front: set[int] = others & automaton.first
    reached = front
    while front:
        front = {after for atom in front for after in automaton.near[atom] | automaton.far[atom]} & others - reached
        reached = reached | front
    return not reached & automaton.last
