"""Strategy `replicate` (Step 4.4.1): the events of one leaf of a pattern are partitioned, the rest is replicated.

A leaf is *pointwise* if every occurrence is made of one event of it, and no occurrence depends on another event of it:
then each lane finds the occurrences of its own events, and together they find all, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, NamedTuple

from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Overlap,
    Without,
)
from weft.algebra.predicates import Attribute, Comparison, Literal
from weft.algebra.query import AnyQuery
from weft.plan.partitioning.splits import Refused, Split, Strategy
from weft.plan.properties import Family
from weft.tree import Node

# Attributes that events have in a lane, and nowhere else: whether the event is the lane's own, and not a copy; whether
# the lane is the first.
OWN, FIRST = "\0own", "\0first"
COMPARED = 16  # choices of a branch of a union that are compared with those of the other: there may be very many


class Leaves(NamedTuple):
    """Variables of sources: of which each lane takes its own events, and which only the first lane looks at at all."""

    own: frozenset[str]
    first: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Replicated(Split):
    """Each event is owned by one lane, determined by its times, and copied to the remaining lanes.

    Events of types in `shared` are not copied. With `by_start` no leaf is partitioned, but the matches are: each lane
    owns the matches that begin at its own events.
    """

    strategy: ClassVar[Strategy] = "replicate"
    copies: ClassVar[bool] = True
    leaves: Leaves
    shared: tuple[str, ...] = ()
    by_start: bool = False

    def rewritten(self, query: AnyQuery) -> AnyQuery:
        """The query as lanes run it: its leaves look at what they are to look at."""
        if not isinstance(query, CompositeQuery):
            return query

        def change(node: Node) -> Node:
            match node:
                case CompositeEvent(_, variable, where) if variable in self.leaves.own:
                    return replace(node, where=(*where, _holds(OWN, variable)))
                case CompositeEvent(_, variable, where) if variable in self.leaves.first:
                    return replace(node, where=(*where, _holds(FIRST, variable)))
            return node

        pattern = query.pattern.transform(change, Composite)
        assert isinstance(pattern, Composite)
        return replace(query, pattern=pattern)


def _holds(name: str, variable: str) -> Comparison:
    return Comparison("=", Attribute(name, variable), Literal(True))


def replicated(family: Family, rate: Callable[[str], float]) -> Replicated | Refused:
    """The pointwise leaf beside which the fewest events are copied, by the rates of types; of equal ones the first."""
    if len(family.queries) > 1:
        return Refused(
            f"{', '.join(sorted(family.read))} is read by other queries, which need the matches of all lanes"
        )
    (query,) = family.queries
    if not isinstance(query, CompositeQuery):
        return Refused("it has no leaf to share out: that is for patterns of EQL and Step")
    types = {node.variable: node.type for node in query.pattern.walk(Composite) if isinstance(node, CompositeEvent)}
    choices = _choices(query.pattern)
    if not choices and any(
        isinstance(node, CompositeRepeat) and node.pick == "longest" for node in query.pattern.walk()
    ):
        return Refused("a greedy iteration (Repeat longest) makes each run depend on the one before it")
    if not choices:
        nothing = Leaves(frozenset())
        return Replicated("matches shared out by where they start, all events copied", nothing, by_start=True)
    found = min(choices, key=lambda leaves: sum(map(rate, sorted(_copied(leaves, types)))))
    shared = tuple(sorted({types[variable] for variable in found.own} - _copied(found, types)))
    reason = f"events of {', '.join(f'{types[name]} ({name})' for name in sorted(found.own))} shared out"
    return Replicated(f"{reason}, the rest copied", found, shared)


def _copied(leaves: Leaves, types: Mapping[str, str]) -> set[str]:
    """The types that leaves read which are not shared out."""
    return {type_ for variable, type_ in types.items() if variable not in leaves.own}


def _choices(pattern: Composite) -> list[Leaves]:
    """The pointwise leaves of a pattern, from left to right; below a union they are leaves of both branches."""
    match pattern:
        case CompositeEvent(variable=variable):
            return [Leaves(frozenset((variable,)))]
        case CompositeFilter(inner) | After(inner) | Without(inner):
            return _choices(inner)
        case CompositeSequence(left, right, "each") | Overlap(left, right):
            return [*_choices(left), *_choices(right)]
        case CompositeSequence(left):
            return _choices(left)
        case CompositeUnion(left, right):
            return [Leaves(a.own | b.own, a.first | b.first) for a, b in _pairs(left, right)]
    return []  # every member of a run decides about the runs of others


def _pairs(left: Composite, right: Composite) -> Iterable[tuple[Leaves, Leaves]]:
    """Choices of both branches of a union; a branch without any is the first lane's alone."""
    of_left, of_right = _choices(left), _choices(right)
    if not of_left and not of_right:
        return []
    return product(of_left[:COMPARED] or [_only_first(left)], of_right[:COMPARED] or [_only_first(right)])


def _only_first(branch: Composite) -> Leaves:
    names = {node.variable for node in branch.walk(Composite) if isinstance(node, CompositeEvent)}
    return Leaves(frozenset(), frozenset(names))
