"""Create the operator of each node of a graph, of the class that its pattern requires."""

from __future__ import annotations

from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Overlap,
    Without,
)
from weft.plan.graph import GraphNode, reports_some_runs
from weft.runtime.operators.joins.chains import ChainOperator
from weft.runtime.operators.joins.channels import ReceivedOperator
from weft.runtime.operators.joins.joining import FollowOperator, OverlapOperator, SequencesOperator, WithoutOperator
from weft.runtime.operators.joins.operators import (
    AfterOperator,
    Build,
    FilterOperator,
    JoinNode,
    LongEnoughOperator,
    LongestOperator,
    SinceOperator,
    SourceOperator,
    UnionOperator,
)

_OPERATORS: dict[type[Composite], type[JoinNode]] = {
    CompositeEvent: SourceOperator,
    CompositeFilter: FilterOperator,
    After: AfterOperator,
    CompositeUnion: UnionOperator,
    CompositeSequence: FollowOperator,
    Overlap: OverlapOperator,
    Without: WithoutOperator,
}
_REPEATS: dict[str, type[JoinNode]] = {"next": FollowOperator, "each": SequencesOperator, "longest": LongestOperator}


def build_operators(build: Build, first: int = 0) -> list[JoinNode]:
    """Create the operators of the nodes from `first` on, in their order."""
    return [_operator_of(node)(build, number) for number, node in enumerate(build.graph.nodes[first:], start=first)]


def _operator_of(node: GraphNode) -> type[JoinNode]:
    pattern = node.pattern
    if node.received is not None:
        return ReceivedOperator
    if node.since is not None:
        return SinceOperator
    if node.chain is not None:
        return ChainOperator
    if reports_some_runs(pattern):
        return LongEnoughOperator
    return _REPEATS[pattern.pick] if isinstance(pattern, CompositeRepeat) else _OPERATORS[type(pattern)]
