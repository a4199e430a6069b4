"""The conditions of a row pattern: row-local ones become letters, the rest is tested during the search for a match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.algebra.analysis.row_conditions import split_condition
from weft.algebra.row_patterns import (
    At,
    RowAggregate,
    RowCall,
    RowExpression,
    RowField,
    RowLabel,
    RowPattern,
    Variables,
)


@dataclass(frozen=True)
class RowConditions:
    """For each variable: the conjuncts that read a row and its neighbours, and those that depend on the match."""

    local: Mapping[str, tuple[RowExpression, ...]]
    others: Mapping[str, tuple[RowExpression, ...]]

    @property
    def are_local(self) -> bool:
        """Whether no condition depends on the match."""
        return not any(self.others.values())

    def told_apart(self, variables: tuple[str, ...]) -> list[int]:
        """A number for each variable, the same for those that no condition can tell apart in a match."""
        nodes = [node for parts in self.others.values() for part in parts for node in part.walk()]
        if any(isinstance(node, RowLabel) for node in nodes):
            return list(range(len(variables)))
        sets: list[Variables] = [node.variables for node in nodes if isinstance(node, At | RowAggregate)]
        known: dict[tuple[bool, ...], int] = {}
        return [
            known.setdefault(tuple(found is None or name in found for found in sets), len(known)) for name in variables
        ]


def reach_of(query: RowPattern) -> tuple[int, int]:
    """How many rows of the partition before and after those of a match its conditions and measures read."""
    parts = [*(define.condition for define in query.conditions), *(measure.value for measure in query.measures)]
    shifts = [node.shift for part in parts for node in part.walk() if isinstance(node, At)]
    return -min([0, *shifts]), max([0, *shifts])


def conditions_of(query: RowPattern) -> RowConditions:
    """The conditions of a query's variables."""
    split = {name: split_condition(query, name) for name in query.variables}
    timed: tuple[RowExpression, ...] = ()
    if query.within is not None and query.order:  # no row without a time is within anything
        timed = (RowCall("not", (RowCall("is null", (At(RowField(query.order[0].column)),)),)),)
    return RowConditions(
        {name: (*timed, *parts.local) for name, parts in split.items()},
        {name: parts.others for name, parts in split.items()},
    )
