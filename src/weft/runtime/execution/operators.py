"""Operators of a layer at run time, one for each kind; a kind is loaded when a plan uses it."""

from __future__ import annotations

from collections.abc import Iterator

from weft.plan.operators import AutomatonOp, JoinOp, Layer, RuleOp, SituationOp
from weft.plan.partitioning.splits import Lane
from weft.runtime.classify.classifier import Predicates
from weft.runtime.classify.layer_keys import Keys
from weft.runtime.operators.operator import Operator

AUTOMATON = "automaton"
SITUATIONS = "situations"
JOINS = "joins"
RULES = "rules"


def operators_of(
    layer: Layer, predicates: Predicates, keys: Keys, lane: Lane | None = None
) -> Iterator[tuple[str, Operator, tuple[int, ...]]]:
    """Yield the operators of a layer by kind, with the numbers of their queries. All share predicates and keys.

    `lane`: the share of the work that is done here, or None for all of it.
    """
    automata = [op for op in layer.operators if isinstance(op, AutomatonOp)]
    situations = [op for op in layer.operators if isinstance(op, SituationOp)]
    if automata:
        from weft.runtime.operators.automaton.operator import AutomatonOperator

        yield AUTOMATON, AutomatonOperator(automata, predicates, keys, lane), tuple(op.number for op in automata)
    if situations:
        from weft.runtime.operators.situations.operator import SituationOperator

        operator = SituationOperator(situations, predicates, keys, fed=bool(layer.feeders))
        yield SITUATIONS, operator, tuple(op.number for op in situations)
    for op in layer.operators:
        if isinstance(op, JoinOp):
            from weft.runtime.operators.joins.operator import JoinOperator

            yield JOINS, JoinOperator(op.graph, predicates, keys, lane), op.numbers
        elif isinstance(op, RuleOp):
            from weft.runtime.operators.rules.operator import RuleOperator

            yield RULES, RuleOperator(op.rules), op.numbers
