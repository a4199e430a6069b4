"""Layers as plain data and back: their queries as they run, and who feeds them. The rest follows from these."""

from __future__ import annotations

from typing import Any

from weft.algebra.stored import CLASSES as ALGEBRA
from weft.plan import operators
from weft.plan.layers import layer_of
from weft.plan.operators import Layer
from weft.stored import Plain, classes_in, from_plain, to_plain

CLASSES = {**ALGEBRA, **classes_in([operators])}


def layer_to_plain(layer: Layer) -> Plain:
    """A layer as plain data."""
    queries = layer.queries
    return {
        "numbers": list(queries),
        "queries": [to_plain(query) for query in queries.values()],
        "silent": sorted(layer.silent),
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
