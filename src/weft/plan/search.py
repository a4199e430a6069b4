"""How the matching sets of a situation are searched: who may fill a slot, in which order slots are bound, and when.

A clause of the assertion is tested as soon as its variables are bound. Equalities with slots bound earlier are looked
up. Slots are bound in declared order, for that is the order in which policies choose; where every set is selected the
order is free, and those slots come first that conditions tie to what is bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.algebra.analysis.normal_form import clauses, equality_of
from weft.algebra.policies import Cardinality, Evaluation, Repeated
from weft.algebra.predicates import And, Attribute, Predicate
from weft.algebra.situations import Situation
from weft.algebra.terms import mentioned
from weft.algebra.text.program import to_text
from weft.plan.atoms import IsType

MISSING = "\0"  # an attribute that no event has
Reads = tuple[int, str]  # a slot and an attribute


@dataclass(frozen=True)
class Lookup:
    """Events of a slot are found by the value of `attribute`: what the event in slot `other` has as `value`."""

    attribute: str
    other: int
    value: str


@dataclass(frozen=True)
class Step:
    """Bind a slot: where its events are looked up, and what is tested then."""

    slot: int
    lookup: Lookup | None
    tests: tuple[Predicate, ...]


@dataclass(frozen=True)
class Search:
    """The search for the sets of a situation.

    `exists` and `fills` tell of each slot which events it sees, and which of these can be in a set. `ways` are the
    steps by the slot that the new event takes: None when nothing is new, or it may take several.
    """

    exists: tuple[Predicate, ...]
    fills: tuple[Predicate, ...]
    ways: dict[int | None, tuple[Step, ...]]

    @property
    def indexed(self) -> tuple[tuple[str, ...], ...]:
        """For each slot the attributes that are looked up."""
        names: list[set[str]] = [set() for _ in self.exists]
        for steps in self.ways.values():
            for step in steps:
                if step.lookup is not None:
                    names[step.slot].add(step.lookup.attribute)
        return tuple(tuple(sorted(own)) for own in names)


def search_of(situation: Situation) -> Search:
    """The search for the sets of a situation."""
    slots = situation.participants
    exists = tuple(And((IsType(slot.type), *(_of_the_event(part) for part in slot.where))) for slot in slots)
    if situation.kind in ("any", "absence"):
        own = [[_alone(part, slot.variable) for part in situation.assertion] for slot in slots]
        ways: dict[int | None, tuple[Step, ...]] = {}
    else:
        parts = clauses(situation.assertion)
        own = [[_of_the_event(part) for part in parts if mentioned(part) == {slot.variable}] for slot in slots]
        shared = [part for part in parts if len(mentioned(part)) != 1]
        ways = {first: _steps(situation, shared, first) for first in _firsts(situation)}
    fills = tuple(And((seen, *parts)) for seen, parts in zip(exists, own, strict=True))
    return Search(exists, fills, ways)


def search_lines(situation: Situation, search: Search) -> Iterator[str]:
    """The search for people: how each slot is filled, and what is tested then."""
    names = situation.variables
    for first, steps in search.ways.items():
        yield (
            "when the partition closes"
            if first is None and _is_deferred(situation)
            else ("at an event for several slots" if first is None else f"at a new {names[first]}")
        )
        for step in steps:
            by = "" if step.slot != first else ", the new event"
            if step.lookup is not None and step.slot != first:
                by = f" by {step.lookup.attribute} = {names[step.lookup.other]}.{step.lookup.value}"
            tests = "; ".join(to_text(test).strip() for test in step.tests)
            yield f"  bind {names[step.slot]}{by}{f', test {tests}' if tests else ''}"


def _is_deferred(situation: Situation) -> bool:
    return situation.evaluation is Evaluation.DEFERRED


def _firsts(situation: Situation) -> list[int | None]:
    """The slots that a new event can be bound to first."""
    slots = situation.participants
    if _is_deferred(situation):
        return [None]
    if situation.kind == "sequence":  # nothing that has arrived is after the new event
        return [len(slots) - 1]
    types = [slot.type for slot in slots]
    return [*([None] if len(set(types)) < len(types) else []), *range(len(slots))]


def _steps(situation: Situation, shared: list[Predicate], first: int | None) -> tuple[Step, ...]:
    slots = {name: at for at, name in enumerate(situation.variables)}
    todo = [(frozenset(slots[name] for name in mentioned(part)), part) for part in shared]
    equal = equal_attributes(shared, slots)
    free = situation.cardinality is Cardinality.UNRESTRICTED and not any(
        slot.repeated in (Repeated.FIRST, Repeated.LAST) for slot in situation.participants
    )
    left = [slot for slot in range(len(slots)) if slot != first]
    bound: set[int] = set()
    steps = []
    slot = first
    while slot is not None or left:
        if slot is None:
            slot = max(left, key=lambda one: _worth(situation, one, bound, todo, equal)) if free else left[0]
            left.remove(slot)
        lookup = _lookup(slot, bound, equal, first)
        bound.add(slot)
        now = tuple(part for names, part in todo if names <= bound)
        todo = [(names, part) for names, part in todo if not names <= bound]
        steps.append(Step(slot, lookup, now))
        slot = None
    return tuple(steps)


def _worth(
    situation: Situation,
    slot: int,
    bound: set[int],
    todo: list[tuple[frozenset[int], Predicate]],
    equal: list[set[Reads]],
) -> tuple[object, ...]:
    """How much it narrows the search to bind a slot next: the greatest is best."""
    override = situation.participants[slot].repeated is Repeated.OVERRIDE
    tested = sum(names <= bound | {slot} for names, _ in todo)
    adjacent = situation.kind == "sequence" and bool(bound & {slot - 1, slot + 1})
    return override, _lookup(slot, bound, equal, None) is not None, tested, adjacent, -slot


def _lookup(slot: int, bound: set[int], equal: list[set[Reads]], first: int | None) -> Lookup | None:
    """How the events of a slot can be looked up by what is bound: best by what is bound first."""
    found = []
    for group in equal:
        own = sorted(name for at, name in group if at == slot)
        others = sorted((at != first, at, name) for at, name in group if at in bound)
        if own and others:
            found.append((*others[0], own[0]))
    if not found:
        return None
    _, other, value, name = min(found)
    return Lookup(name, other, value)


def equal_attributes(shared: Iterable[Predicate], slots: dict[str, int]) -> list[set[Reads]]:
    """Groups of attributes that must all be equal: equality of values is transitive."""
    groups: list[set[Reads]] = []
    for part in shared:
        equality = equality_of(part)
        if equality is not None:
            merged = {(slots[str(side.variable)], side.name) for side in equality}
            for group in [group for group in groups if group & merged]:
                merged |= group
                groups.remove(group)
            groups.append(merged)
    return groups


def _of_the_event(part: Predicate) -> Predicate:
    """A clause about the event at hand instead of a variable."""
    changed = part.transform(lambda node: Attribute(node.name) if isinstance(node, Attribute) else node)
    assert isinstance(changed, Predicate)
    return changed


def _alone(part: Predicate, variable: str) -> Predicate:
    """A clause about the event at hand in the slot of a variable, when all other slots are empty."""
    changed = part.transform(
        lambda node: (
            Attribute(node.name if node.variable == variable else MISSING) if isinstance(node, Attribute) else node
        )
    )
    assert isinstance(changed, Predicate)
    return changed
