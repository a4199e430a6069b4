"""The structure of a running layer as plain data: its current queries, and those added and removed since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft.algebra.query import AnyQuery
from weft.plan.layers import layer_of
from weft.plan.operators import Layer
from weft.plan.partitioning.splits import Lane
from weft.plan.stored import CLASSES, layer_from_plain, layer_to_plain
from weft.runtime.classify.classifier import Predicates
from weft.runtime.execution.layers import Added, LayerExecution, ReplacedQuery
from weft.stored import Plain, from_plain, to_plain


def layer_to_plain_state(layer: LayerExecution) -> Plain:
    """Convert a running layer to plain data, without its state."""
    return {
        "number": layer.number,
        "layer": layer_to_plain(layer.node),
        "beginning": list(layer.beginning),
        "changes": [_change_to_plain(part) for part in layer.changes],
        "retired": [] if layer.graph is None else [output.before for output in layer.graph.outputs],
        "ended": dict(layer.ended),
    }


def layer_from_plain_state(
    plain: Plain, names: Mapping[str, str], predicates: Predicates, lane: Lane | None = None
) -> LayerExecution:
    """Create the layer without its state; its queries get new names by `names`, for the lane."""
    since, position = plain["beginning"]
    node = _named(layer_from_plain(plain["layer"]), names)
    run = LayerExecution(node, since, position, predicates, lane, plain["number"])
    for part in plain["changes"]:
        if isinstance(part, list):
            run.remove(part)
        elif "number" in part:
            run.replace_queries({part["number"]: with_name(from_plain(part["query"], CLASSES), names)})
        else:
            run.extended(_named(layer_from_plain(part["layer"]), names), part["position"])
    if run.graph is not None:
        for output, before in zip(run.graph.outputs, plain["retired"], strict=True):
            output.before = before
    run.ended = Counter(plain["ended"])
    return run


def _change_to_plain(part: Added | ReplacedQuery | tuple[int, ...]) -> Plain:
    match part:
        case Added():
            return {"layer": layer_to_plain(part.layer), "position": part.place}
        case ReplacedQuery():
            return {"number": part.number, "query": to_plain(part.query)}
    return list(part)


def _named(layer: Layer, names: Mapping[str, str]) -> Layer:
    queries = layer.queries
    if not any(query.name in names for query in queries.values()):
        return layer
    renamed: dict[int, Any] = {number: with_name(query, names) for number, query in queries.items()}
    return layer_of(renamed, layer.silent, layer.feeders, network=layer.network)


def with_name(query: AnyQuery, names: Mapping[str, str]) -> AnyQuery:
    """Rename a query if it has a new name. Rules keep theirs, which is the type that they define."""
    return query if query.is_rule or query.name not in names else replace(query, name=names[query.name])
