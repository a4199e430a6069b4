"""Evaluate the common prefix of several sequences once for all of them (EPN §3.1).

For the common prefix, the events that end one of its candidates are computed; in each sequence only these events fill
the last slot of the prefix. The result is the same for all policies: an event that ends no candidate of the prefix is
in no set, then or later, because later events do not precede it. This holds in every partition if the contexts are
equal. Each sequence still decides by itself which of the earlier events are in a set, by its policies and consumption.
"""

from __future__ import annotations

from dataclasses import replace

from weft.algebra.analysis.dependencies import dependencies
from weft.algebra.situations import Situation


def share_prefix(situation: Situation, count: int) -> Situation:
    """Return the situation with its first `count` slots shared, or unchanged where that is not possible."""
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
