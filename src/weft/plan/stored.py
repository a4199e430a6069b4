"""Layers as plain data and back: their queries as they run, and who feeds them. The rest follows from these."""

from __future__ import annotations

from typing import Any

from weft.algebra.query import AnyQuery
from weft.algebra.stored import CLASSES as ALGEBRA
from weft.plan import operators
from weft.plan.layers import layer_of
from weft.plan.operators import AutomatonOp, GraphOp, Layer, RulesOp, SituationOp
from weft.stored import Plain, classes_in, from_plain, to_plain

CLASSES = {**ALGEBRA, **classes_in([operators])}


def layer_to_plain(layer: Layer) -> Plain:
    """A layer as plain data."""
    queries = queries_of(layer)
    return {
        "numbers": list(queries),
        "queries": [to_plain(query) for query in queries.values()],
        "silent": sorted(silent_of(layer)),
        "feeders": to_plain(layer.feeders),
        "network": layer.network,
    }


def layer_from_plain(plain: Plain) -> Layer:
    """The layer that was made into plain data."""
    queries: list[Any] = [from_plain(query, CLASSES) for query in plain["queries"]]
    return layer_of(
        dict(zip(plain["numbers"], queries, strict=True)),
        frozenset(plain["silent"]),
        from_plain(plain["feeders"], CLASSES),
        network=plain["network"],
    )


def queries_of(layer: Layer) -> dict[int, AnyQuery]:
    """The queries of a layer as they run, by number."""
    found: dict[int, AnyQuery] = {}
    for op in layer.operators:
        match op:
            case AutomatonOp() | SituationOp():
                found[op.number] = op.query
            case GraphOp():
                found |= dict(zip(op.numbers, (output.query for output in op.graph.outputs), strict=True))
            case RulesOp():
                found |= dict(zip(op.numbers, op.rules, strict=True))
    return dict(sorted(found.items()))


def silent_of(layer: Layer) -> frozenset[int]:
    """The numbers of the rules that run in a layer only to help others there."""
    return frozenset().union(*(op.silent for op in layer.operators if isinstance(op, RulesOp)))
