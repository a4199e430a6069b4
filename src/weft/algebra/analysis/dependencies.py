"""Dependencies between the slots of a situation: the graph of its assertion, and its connected blocks.

Two slots are connected when a clause of the assertion in conjunctive normal form reads both (EPN §3.3). Slots that are
not connected, directly or through other slots, are chosen independently: a search never has to revisit the choices
made in another block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from weft.algebra.analysis.normal_form import clauses
from weft.algebra.policies import Evaluation
from weft.algebra.situations import Situation
from weft.algebra.terms import mentioned
from weft.tree import Node

Slots = tuple[int, ...]


@dataclass(frozen=True)
class Dependencies(Node):
    """The graph of an assertion over slots by number; components and blocks are ordered by their first slots.

    Blocks are components, joined where they are not independent: in a `sequence` when they interleave, so that each
    block is a run of slots; in `all` when slots of one type are in both, for these may not hold the same event.
    """

    variables: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]
    components: tuple[Slots, ...]
    blocks: tuple[Slots, ...]

    def to_text(self) -> str:
        """The blocks by their variables."""
        return " | ".join(" ".join(self.variables[slot] for slot in block) for block in self.blocks)


def dependencies(situation: Situation) -> Dependencies:
    """The graph of a situation's assertion."""
    slots = {name: number for number, name in enumerate(situation.variables)}
    tied = [sorted(slots[name] for name in mentioned(clause)) for clause in clauses(situation.assertion)]
    edges = sorted({pair for group in tied for pair in combinations(group, 2)})
    components = _joined([[slot] for slot in range(len(slots))], tied)
    if situation.kind == "sequence":
        blocks = _runs(components)
    else:
        types = [slot.type for slot in situation.participants]
        blocks = _joined(components, [[at for at, other in enumerate(types) if other == type_] for type_ in types])
    return Dependencies(situation.variables, tuple(edges), components, blocks)


def why_whole(situation: Situation) -> str | None:
    """Why a situation has no splits, or None if it has."""
    if situation.kind not in ("sequence", "all"):
        return f"only sequences and all are split, and this is {situation.kind}"
    if situation.kind == "all" and situation.evaluation is Evaluation.DEFERRED:
        return "all is searched once for each partition, when it closes"
    if len(dependencies(situation).blocks) < 2:
        return "its conditions tie all participants together"
    return None


def _joined(groups: Iterable[Iterable[int]], ties: Iterable[Iterable[int]]) -> tuple[Slots, ...]:
    """The groups, those with slots of one tie as one."""
    of: dict[int, set[int]] = {}
    for group in groups:
        own = set(group)
        of |= dict.fromkeys(own, own)
    for tie in ties:
        first, *others = [*tie] or [0]
        for other in others:
            if of[other] is not of[first]:
                of[first] |= of[other]
                of |= dict.fromkeys(of[other], of[first])
    return tuple(sorted({tuple(sorted(group)) for group in of.values()}))


def _runs(components: Iterable[Slots]) -> tuple[Slots, ...]:
    """The least runs of slots such that no component has slots in two of them."""
    runs: list[list[int]] = []
    for component in components:  # by their first slots
        if runs and component[0] <= runs[-1][1]:
            runs[-1][1] = max(runs[-1][1], component[-1])
        else:
            runs.append([component[0], component[-1]])
    return tuple(tuple(range(first, last + 1)) for first, last in runs)
