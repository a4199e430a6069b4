"""Find the first slots of sequences that begin alike once for all of them (EPN §3.1).

Of the common beginning it is found out which events end a candidate of it; in the sequences only these fill the last of
its slots. What is found stays the same whatever the policies: an event that ends no candidate of the beginning is in no
set, then or later, for what comes after it is not before it. That holds in every partition when the contexts are equal.
Which of the events before are in a set each sequence decides by itself, with its own policies and consumption.
"""

from __future__ import annotations

from dataclasses import replace

from weft.algebra.analysis.dependencies import dependencies
from weft.algebra.situations import Situation


def share_prefix(situation: Situation, count: int) -> Situation:
    """The situation with so many of its first slots shared; as it is where that cannot be."""
    return replace(situation, shared=count) if count in prefixes_of(situation) else situation


def prefixes_of(situation: Situation) -> tuple[int, ...]:
    """How many of its first slots can be shared, most first: whole blocks, but not all, and one that has conditions.

    That something comes before an event at all the search knows by itself.
    """
    if situation.kind != "sequence":
        return ()
    blocks = dependencies(situation).blocks[:-1]
    tied = [block[-1] for block in blocks if len(block) > 1]
    return tuple(block[-1] + 1 for block in reversed(blocks) if tied and block[-1] >= tied[0])
