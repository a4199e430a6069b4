"""Situations as indented text: the situation, its slots with their policies, its conditions, its partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.algebra.contexts import Context, Forgetting, FromFor, FromUntil, Whole, Windows
from weft.algebra.situations import Participant, Situation, SituationQuery
from weft.tree import Node

INDENT = "  "
Show = Callable[[Node], str]  # an expression or predicate in one line


def query_lines(query: SituationQuery, show: Show) -> Iterator[str]:
    """A query: its name, its fields, its situation."""
    yield f"query {query.name}"
    if query.fields:
        yield f"{INDENT}fields " + ", ".join(f"{field.name} = {show(field.value)}" for field in query.fields)
    yield from (INDENT + line for line in situation_lines(query.situation, show))


def situation_lines(situation: Situation, show: Show) -> Iterator[str]:
    """A situation, and what it is made of below it."""
    split = f", blocks worked out early: {situation.split}" if situation.split else ""
    shared = f", first slots found once: {situation.shared}" if situation.shared else ""
    yield f"situation {situation.kind}, {situation.evaluation.value}, {situation.cardinality.value}{split}{shared}"
    for slot in situation.participants:
        yield f"{INDENT}slot {_slot(slot, show)}"
    for condition in situation.assertion:
        yield f"{INDENT}where {show(condition)}"
    yield f"{INDENT}partitions {context_text(situation.context)}"


def _slot(slot: Participant, show: Show) -> str:
    where = f" where [{'; '.join(map(show, slot.where))}]" if slot.where else ""
    return f"{slot.type} {slot.variable}, {slot.repeated.value}, {slot.consumption.value}{where}"


def context_text(context: Context) -> str:
    """A context in one line."""
    by = f" by {', '.join(context.by)}" if context.by else ""
    match context:
        case Whole():
            return f"whole stream{by}"
        case Forgetting(length=length, step=step, forget=forget):
            return f"of {length} ticks every {step}{by}, forgotten after {forget}"
        case Windows(length=length, step=step):
            return f"of {length} ticks every {step}{by}"
        case FromUntil(opener=opener, closer=closer):
            return f"from {opener} until {closer}{by}"
        case FromFor(opener=opener, length=length):
            return f"from {opener} for {length} ticks{by}"
    raise TypeError(f"not a context: {context!r}")
