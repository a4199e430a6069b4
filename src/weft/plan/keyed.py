"""Situations that are sequences of events with equal keys: the parameters of their kernel."""

from __future__ import annotations

from dataclasses import dataclass

from weft.algebra.analysis.normal_form import clauses, equality_of
from weft.algebra.contexts import Whole, Windows
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.predicates import And, Attribute, Predicate
from weft.algebra.situations import Situation
from weft.algebra.terms import Elapsed, mentioned
from weft.plan.atoms import IsType
from weft.tree import Node

_ALIKE = ({Repeated.EVERY}, {Repeated.FIRST, Repeated.LAST})


@dataclass(frozen=True)
class KeyedSequence(Node):
    """Slots in order, each with what its events satisfy; all events of a set agree in the attributes `key`.

    Partitions are [k * step, k * step + length) and do not overlap; a step of 0 is one partition.
    """

    guards: tuple[Predicate, ...]
    consumes: tuple[bool, ...]
    repeated: tuple[Repeated, ...]  # all EVERY, or each FIRST or LAST
    key: tuple[str, ...]
    length: int
    step: int


def keyed_sequence(situation: Situation) -> KeyedSequence | None:
    """Convert a situation to a keyed sequence, or return None."""
    slots = situation.participants
    spans = _spans(situation)
    if (
        situation.kind != "sequence"
        or situation.evaluation is not Evaluation.IMMEDIATE
        or situation.cardinality is not Cardinality.UNRESTRICTED
        or spans is None
        or not 2 <= len(slots) <= 100
        or len({slot.type for slot in slots}) < len(slots)
        or not any({slot.repeated for slot in slots} <= alike for alike in _ALIKE)
    ):
        return None
    shared = [clause for clause in clauses(situation.assertion) if len(mentioned(clause)) != 1]
    keys = _common_attributes(situation, shared)
    if keys is None or any(isinstance(node, Elapsed) for node in situation.walk()):
        return None
    own = [clause for clause in clauses(situation.assertion) if len(mentioned(clause)) == 1]
    guards = tuple(
        And(
            (
                IsType(slot.type),
                *map(_of_the_event, (*slot.where, *(c for c in own if mentioned(c) == {slot.variable}))),
            )
        )
        for slot in slots
    )
    consumes = tuple(slot.consumption is Consumption.CONSUME for slot in slots)
    key = tuple(dict.fromkeys((*situation.context.by, *keys)))
    return KeyedSequence(guards, consumes, tuple(slot.repeated for slot in slots), key, *spans)


def _spans(situation: Situation) -> tuple[int, int] | None:
    match situation.context:
        case Whole():
            return 0, 0
        case Windows(length=length, step=step) if step >= length:
            return length, step
    return None


def _common_attributes(situation: Situation, shared: list[Predicate]) -> list[str] | None:
    """The attributes in which all slots must agree, when the clauses say that and nothing else."""
    tied: dict[str, list[set[str]]] = {}
    for clause in shared:
        equality = equality_of(clause)
        if equality is None or equality.left.name != equality.right.name:
            return None
        groups = tied.setdefault(equality.left.name, [])
        merged = {str(equality.left.variable), str(equality.right.variable)}
        for group in [group for group in groups if group & merged]:
            merged |= group
            groups.remove(group)
        groups.append(merged)
    everything = [set(situation.variables)]
    return list(tied) if all(groups == everything for groups in tied.values()) else None


def _of_the_event(clause: Predicate) -> Predicate:
    """The clause about the current event instead of a variable."""
    changed = clause.transform(lambda node: Attribute(node.name) if isinstance(node, Attribute) else node)
    assert isinstance(changed, Predicate)
    return changed
