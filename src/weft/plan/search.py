"""The search for the matching sets of a situation: who may fill a slot, and in which order and when slots are bound.

A clause of the assertion is tested as soon as its variables are bound. Equalities with slots bound earlier are looked
up. Slots are bound in declared order, because that is the order in which policies choose; where every set is selected
the order is free, and slots with conditions on bound ones come first.

Blocks of slots without conditions between them are searched separately (EPN §3.6). In `all` they are bound in order:
when one of them has no candidate, there is no set. In a sequence, the time before which each block must end so that the
following ones can be filled is computed in advance, from the last block to the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from weft.algebra.analysis.dependencies import Slots, dependencies
from weft.algebra.analysis.normal_form import clauses, equality_of
from weft.algebra.policies import Cardinality, Evaluation, Repeated
from weft.algebra.predicates import And, Attribute, Predicate, calls_of_several
from weft.algebra.situations import Situation
from weft.algebra.terms import mentioned
from weft.algebra.text.program import to_text
from weft.plan.atoms import IsType

MISSING = "\0"  # an attribute that no event has
Reads = tuple[int, str]  # a slot and an attribute
Told = tuple[frozenset[int], Predicate]  # a clause, and the slots that it tells about
_MOST_ORDERED = 24  # slots; to find a good order of more takes longer than it saves


@dataclass(frozen=True)
class Lookup:
    """Events of a slot are found by the value of `attribute`: what the event in slot `other` has as `value`."""

    attribute: str
    other: int
    value: str


@dataclass(frozen=True)
class SearchStep:
    """Bind a slot: where its events are looked up, and which conditions are tested then.

    When a step `opens` a block for which there is no candidate, backtracking into earlier steps is pointless.
    """

    slot: int
    lookup: Lookup | None
    tests: tuple[Predicate, ...]
    opens: bool = False


@dataclass(frozen=True)
class Block:
    """A range of slots in a sequence without conditions on other slots, bound backwards from its last event."""

    slots: Slots
    steps: tuple[SearchStep, ...]


@dataclass(frozen=True)
class SituationSearch:
    """The search for the sets of a situation.

    `exists` and `fills` say for each slot which events it sees, and which of these can be in a set. `ways` are the
    steps by the slot that the new event takes: None when nothing is new, or it may take several. `blocks` are those
    of a sequence, if it has several, and `free_blocks` those of `all`, with each of whose slots a search can begin.
    """

    exists: tuple[Predicate, ...]
    fills: tuple[Predicate, ...]
    ways: dict[int | None, tuple[SearchStep, ...]]
    blocks: tuple[Block, ...] = ()
    residual: tuple[Predicate, ...] = ()  # tested on whole sets
    free_blocks: tuple[Slots, ...] = ()

    @property
    def indexed(self) -> tuple[tuple[str, ...], ...]:
        """For each slot the attributes that are looked up."""
        names: list[set[str]] = [set() for _ in self.exists]
        for steps in (*self.ways.values(), *(block.steps for block in self.blocks)):
            for step in steps:
                if step.lookup is not None:
                    names[step.slot].add(step.lookup.attribute)
        return tuple(tuple(sorted(own)) for own in names)


def search_of(situation: Situation, *, in_blocks: bool = True) -> SituationSearch:
    """The search for the sets of a situation; slot by slot over all of it, when not in blocks."""
    slots = situation.participants
    exists = tuple(And((IsType(slot.type), *(_of_the_event(part) for part in slot.where))) for slot in slots)
    if situation.kind in ("any", "absence"):
        own = [[_alone(part, slot.variable) for part in situation.assertion] for slot in slots]
        ways: dict[int | None, tuple[SearchStep, ...]] = {}
        runs: tuple[Block, ...] = ()
        residual: tuple[Predicate, ...] = ()
        free: tuple[Slots, ...] = ()
    else:
        at = {name: number for number, name in enumerate(situation.variables)}
        parts = clauses(situation.assertion)
        residual = tuple(part for part in parts if calls_of_several(part))
        told = [(frozenset(at[name] for name in mentioned(part)), part) for part in parts if part not in residual]
        own = [[] for _ in slots]
        for about, part in told:
            if len(about) == 1:
                own[min(about)].append(_of_the_event(part))
        shared = [(about, part) for about, part in told if len(about) != 1]
        equal = equal_attributes([part for _, part in shared], at)
        blocks = dependencies(situation).blocks if in_blocks else (tuple(range(len(slots))),)
        ways = {first: _steps(situation, shared, equal, first, blocks) for first in _firsts(situation)}
        in_sequence = situation.kind == "sequence" and len(blocks) > 1
        runs = tuple(_block(shared, equal, block) for block in blocks) if in_sequence else ()
        free = blocks if situation.kind == "all" and len(blocks) > 1 and 0 in ways else ()
    fills = tuple(And((seen, *tests)) for seen, tests in zip(exists, own, strict=True))
    return SituationSearch(exists, fills, ways, runs, residual, free)


def search_lines(situation: Situation, search: SituationSearch) -> Iterator[str]:
    """The search for people: how each slot is filled, and what is tested then."""
    names = situation.variables
    if search.blocks:
        blocks = (" ".join(names[slot] for slot in block.slots) for block in search.blocks)
        yield f"blocks {' | '.join(blocks)}, from the last back: when must one end so that the next can begin"
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
            opens = ", alone" if step.opens else ""
            yield f"  bind {names[step.slot]}{by}{opens}{f', test {tests}' if tests else ''}"
    if search.residual:
        yield f"test whole sets: {'; '.join(to_text(test).strip() for test in search.residual)}"


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


def _steps(
    situation: Situation, shared: list[Told], equal: list[set[Reads]], first: int | None, blocks: Sequence[Slots]
) -> tuple[SearchStep, ...]:
    """Return the steps of a search: first the new event's slot, then the rest, in `all` block by block."""
    count = len(situation.participants)
    free = (
        count <= _MOST_ORDERED
        and situation.cardinality is Cardinality.UNRESTRICTED
        and not any(slot.repeated in (Repeated.FIRST, Repeated.LAST) for slot in situation.participants)
    )
    if situation.kind == "sequence":
        blocks = [tuple(range(count))]
    order: list[int] = [] if first is None else [first]
    opening: set[int] = set()
    for block in sorted(blocks, key=lambda block: first not in block):
        left = [slot for slot in block if slot != first]
        if first not in block and order:
            opening.add(len(order))
        while left:
            slot = left[0]
            if free:
                slot = max(left, key=lambda one: _worth(situation, one, set(order), shared, equal))
            left.remove(slot)
            order.append(slot)
    return tuple(_bound_in_order(order, shared, equal, first, opening))


def _block(shared: list[Told], equal: list[set[Reads]], block: Slots) -> Block:
    """A block of a sequence, bound from its last slot to its first."""
    own = [(about, part) for about, part in shared if about & set(block)]
    ties = [group for group in equal if any(slot in block for slot, _ in group)]
    return Block(block, tuple(_bound_in_order(block[::-1], own, ties, None, ())))


def _bound_in_order(
    order: Sequence[int],
    todo: list[Told],
    equal: list[set[Reads]],
    first: int | None,
    opening: Collection[int],
) -> Iterator[SearchStep]:
    bound: set[int] = set()
    for number, slot in enumerate(order):
        lookup = _lookup(slot, bound, equal, first)
        bound.add(slot)
        yield SearchStep(slot, lookup, tuple(part for names, part in todo if names <= bound), number in opening)
        todo = [(names, part) for names, part in todo if not names <= bound]


def _worth(
    situation: Situation,
    slot: int,
    bound: set[int],
    todo: list[Told],
    equal: list[set[Reads]],
) -> tuple[object, ...]:
    """How much it narrows the search to bind a slot next: the greatest is best."""
    override = situation.participants[slot].repeated is Repeated.OVERRIDE
    tested = sum(names <= bound | {slot} for names, _ in todo if not names <= bound)
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
    groups: dict[Reads, set[Reads]] = {}
    for part in shared:
        equality = equality_of(part)
        if equality is not None:
            one, other = ((slots[str(side.variable)], side.name) for side in equality)
            merged = groups.setdefault(one, {one})
            merged |= groups.get(other, {other})
            groups |= dict.fromkeys(groups.get(other, {other}), merged)
    return list({id(group): group for group in groups.values()}.values())


def _of_the_event(part: Predicate) -> Predicate:
    """A clause about the current event instead of a variable."""
    changed = part.transform(lambda node: Attribute(node.name) if isinstance(node, Attribute) else node)
    assert isinstance(changed, Predicate)
    return changed


def _alone(part: Predicate, variable: str) -> Predicate:
    """A clause about the current event in the slot of a variable, when all other slots are empty."""
    changed = part.transform(
        lambda node: (
            Attribute(node.name if node.variable == variable else MISSING) if isinstance(node, Attribute) else node
        )
    )
    assert isinstance(changed, Predicate)
    return changed
