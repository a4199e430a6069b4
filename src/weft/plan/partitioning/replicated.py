"""Strategy `replicate` (Step 4.4.1): the events of one leaf of a pattern are shared out, all others are copied.

A leaf is *pointwise* if every occurrence is made of one event of it, and no occurrence depends on another event of it:
then each lane finds the occurrences of its own events, and together they find all, each once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from weft.algebra.composites import (
    After,
    Composite,
    CompositeQuery,
    Filter,
    Follow,
    Overlap,
    Repeat,
    Source,
    Union,
    Without,
)
from weft.algebra.predicates import Attribute, Comparison, Literal
from weft.algebra.query import AnyQuery
from weft.plan.partitioning.splits import Family, Refused, Split, Strategy
from weft.tree import Node

# Attributes that events have in a lane, and nowhere else: whether the event is the lane's own, and not a copy; whether
# the lane is the first.
OWN, FIRST = "\0own", "\0first"


class Leaves(NamedTuple):
    """Variables of sources: of which each lane takes its own events, and which only the first lane looks at at all."""

    own: frozenset[str]
    first: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Replicated(Split):
    """An event is the own one of the lane `position % lanes`, and a copy in the others.

    Events of types in `shared` are nobody's copies. With `by_start` no leaf is shared out, but the matches are: those
    that begin at a lane's own events are the lane's.
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
                case Source(_, variable, where) if variable in self.leaves.own:
                    return replace(node, where=(*where, _holds(OWN, variable)))
                case Source(_, variable, where) if variable in self.leaves.first:
                    return replace(node, where=(*where, _holds(FIRST, variable)))
            return node

        pattern = query.pattern.transform(change, Composite)
        assert isinstance(pattern, Composite)
        return replace(query, pattern=pattern)


def _holds(name: str, variable: str) -> Comparison:
    return Comparison("=", Attribute(name, variable), Literal(True))


def replicated(family: Family) -> Replicated | Refused:
    """The pointwise leaf of which the other leaves read least besides."""
    if len(family.queries) > 1:
        return Refused(f"{', '.join(sorted(family.read))} is read by others, which see what all lanes find together")
    (query,) = family.queries
    if not isinstance(query, CompositeQuery):
        return Refused("it has no leaf to share out: that is for patterns of EQL and Step")
    found = _chosen(query.pattern)
    if isinstance(found, Refused):
        return found
    types = {node.variable: node.type for node in query.pattern.walk(Composite) if isinstance(node, Source)}
    if not found.own:
        return Replicated("matches shared out by where they start, all events copied", found, by_start=True)
    others = {type_ for variable, type_ in types.items() if variable not in found.own}
    shared = tuple(sorted({types[variable] for variable in found.own} - others))
    reason = f"events of {', '.join(f'{types[name]} ({name})' for name in sorted(found.own))} shared out"
    return Replicated(f"{reason}, all others copied", found, shared)


def _chosen(pattern: Composite) -> Leaves | Refused:
    """Pointwise leaves of a pattern, or the operator that has none; no leaf at all: of runs their start is one."""
    match pattern:
        case Source(variable=variable):
            return Leaves(frozenset((variable,)))
        case Filter(inner) | After(inner) | Without(inner):
            return _chosen(inner)
        case Follow(left, right, "each") | Overlap(left, right):
            return _better(_chosen(left), _chosen(right), pattern)
        case Follow(left):
            return _chosen(left)
        case Union(left, right):
            return _both(left, right)
        case Repeat(pick="longest"):
            return Refused("a greedy iteration (Repeat longest) makes each run depend on the one before it")
    return Leaves(frozenset())


def _better(left: Leaves | Refused, right: Leaves | Refused, pattern: Composite) -> Leaves | Refused:
    """Of two sides the one whose events are copied for fewer other leaves; the left one if they are equal."""
    sides = [side for side in (left, right) if isinstance(side, Leaves) and side.own]
    if not sides:
        return left if isinstance(left, Leaves) or isinstance(right, Refused) else right
    types = [(node.variable, node.type) for node in pattern.walk(Composite) if isinstance(node, Source)]
    return min(sides, key=lambda side: _copied(side.own, types))


def _copied(own: Collection[str], types: Collection[tuple[str, str]]) -> int:
    """How many types are read by leaves that are not shared out."""
    return len({type_ for variable, type_ in types if variable not in own})


def _both(left: Composite, right: Composite) -> Leaves | Refused:
    """Leaves of both branches; a branch without one is the first lane's alone."""
    branches = [(_chosen(branch), branch) for branch in (left, right)]
    own, first = frozenset[str](), frozenset[str]()
    for found, branch in branches:
        if isinstance(found, Leaves) and found.own:
            own, first = own | found.own, first | found.first
        else:
            first |= {node.variable for node in branch.walk(Composite) if isinstance(node, Source)}
    refused = next((found for found, _ in branches if isinstance(found, Refused)), None)
    return refused if not own and refused is not None else Leaves(own, first if own else frozenset())
