"""Descriptions of placed plans: the lanes of each node and stage, as JSON values and as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.algebra.composites import CompositeEvent
from weft.errors import plural
from weft.plan.graph import Graph
from weft.plan.operators import JoinOp, Plan
from weft.plan.partitioning.lane_groups import LaneGroup
from weft.plan.text.graph import node_text

INDENT = " " * 12


def placement_lines(plan: Plan) -> Iterator[str]:
    """The nodes with their loads and lanes, for people."""
    found = placement_json(plan)
    counts = [plural(found["lanes"], "lane"), plural(len(found["nodes"]), "node"), plural(found["stages"], "stage")]
    yield f"  nodes     {counts[0]} on {counts[1]}, in {counts[2]}"
    for node in found["nodes"]:
        capacity = "" if len({own.capacity for own in plan.placed}) == 1 else f", capacity {node['capacity']:g}"
        yield f"{INDENT}{node['node']}: load {node['load']:,.1f}{capacity}" + (
            "" if node["lanes"] else "; nothing to do"
        )
        for lane in node["lanes"]:
            yield f"{INDENT}   stage {lane['stage']}{_share_text(lane)}: {'; '.join(lane['operators'])}{_ways(lane)}"


def _share_text(lane: dict[str, Any]) -> str:
    """Which share of the work a lane has, if it is not all."""
    return "" if lane["shares"] == 1 else f", share {lane['share'] + 1} of {lane['shares']} {lane['reason']}"


def _ways(lane: dict[str, Any]) -> str:
    """Where occurrences come from and go to."""
    named = {"from": lane["receives"], "to": lane["sends"]}
    told = [
        f"{way} channel{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
        for way, numbers in named.items()
        if numbers
    ]
    return f"   ({'; '.join(told)})" if told else ""


def placement_json(plan: Plan) -> dict[str, Any]:
    """The nodes with their loads and lanes, as JSON values."""
    nodes: list[dict[str, Any]] = [
        {"node": node, "load": own.load, "capacity": own.capacity, "lanes": []} for node, own in enumerate(plan.placed)
    ]
    graphs = {op.numbers: op.graph for op in plan.operators if isinstance(op, JoinOp)}
    for group in plan.lanes:
        for share, node in enumerate(group.nodes):
            nodes[node]["lanes"].append(_lane(plan, group, share, graphs.get(group.queries)))
    return {
        "stages": 1 + max((group.stage for group in plan.lanes), default=0),
        "lanes": sum(len(group.nodes) for group in plan.lanes),
        "nodes": nodes,
    }


def _lane(plan: Plan, group: LaneGroup, share: int, graph: Graph | None) -> dict[str, Any]:
    own = [plan.queries[number].name for number in group.queries if number < len(plan.queries)]
    receives, sends, operators = list[int](), list[int](), own
    if graph is not None:
        nodes = list(enumerate(graph.nodes))
        receives = sorted(node.received for _, node in nodes if node.received is not None)
        sends = sorted(output.channel.number for output in graph.outputs if output.channel is not None)
        working = [number for number, node in nodes if node.received is None]
        joins = [number for number in working if not isinstance(graph.nodes[number].pattern, CompositeEvent)]
        operators = [node_text(graph, number) for number in joins or working]
    return {
        "stage": group.stage,
        "strategy": group.split.strategy,
        "reason": group.reason,
        "share": share,
        "shares": len(group.nodes),
        "queries": own,
        "operators": operators,
        "receives": receives,
        "sends": sends,
    }
