"""The operators of a graph, each of the class that its pattern asks for."""

from __future__ import annotations

from weft.algebra.composites import After, Composite, Filter, Follow, Overlap, Repeat, Source, Union, Without
from weft.plan.graph import reports_some_runs
from weft.runtime.joins.chains import ChainOperator
from weft.runtime.joins.joining import FollowOperator, OverlapOperator, SequencesOperator, WithoutOperator
from weft.runtime.joins.operators import (
    AfterOperator,
    Build,
    FilterOperator,
    LongEnoughOperator,
    LongestOperator,
    Operator,
    SourceOperator,
    UnionOperator,
)

_OPERATORS: dict[type[Composite], type[Operator]] = {
    Source: SourceOperator,
    Filter: FilterOperator,
    After: AfterOperator,
    Union: UnionOperator,
    Follow: FollowOperator,
    Overlap: OverlapOperator,
    Without: WithoutOperator,
}
_REPEATS: dict[str, type[Operator]] = {"next": FollowOperator, "each": SequencesOperator, "longest": LongestOperator}


def build_operators(build: Build) -> list[Operator]:
    """The operators of all nodes, in their order."""
    made: list[Operator] = []
    for number, node in enumerate(build.graph.nodes):
        kind = ChainOperator if node.chain is not None else _operator_of(node.pattern)
        made.append(kind(build, number))
    for operator in made:
        operator.link(build)
    return made


def _operator_of(pattern: Composite) -> type[Operator]:
    if reports_some_runs(pattern):
        return LongEnoughOperator
    return _REPEATS[pattern.pick] if isinstance(pattern, Repeat) else _OPERATORS[type(pattern)]
