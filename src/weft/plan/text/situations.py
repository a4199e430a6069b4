"""Situations of a plan for people."""

from __future__ import annotations

from collections.abc import Container, Iterator

from weft.algebra.text.program import to_text
from weft.algebra.text.situations import situation_lines
from weft.plan.keyed import KeyedSequence
from weft.plan.operators import SituationOp
from weft.plan.search import search_lines


def stage_lines(op: SituationOp, defined: Container[str]) -> Iterator[str]:
    """Where the events of a situation come from, how it is worked out, and what it is."""
    situation = op.query.situation
    yield f"situation {op.query.name}"
    for type_ in sorted(situation.types):
        yield f"  {type_} from {f'query {type_}' if type_ in defined else 'the input'}"
    yield from (f"  {line}" for line in situation_lines(situation, lambda node: to_text(node).strip()))
    if isinstance(op.way, KeyedSequence):
        by = f" by [{', '.join(op.way.key)}]" if op.way.key else ""
        yield f"  kernel of sequences with equal keys: a chain for each slot{by}, walked from the last to the first"
    else:
        yield "  kernel of situations"
        if op.beginning is not None:
            names = " ".join(situation.variables[: situation.shared])
            yield f"    {names}: which events end them is found once, with all patterns that begin so"
        yield from (f"    {line}" for line in search_lines(situation, op.way))
