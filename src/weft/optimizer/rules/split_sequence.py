"""Work out the first blocks of a sequence early: when an event ends one, not when the whole may be complete (EPN §3).

What is found stays the same whatever the policies. The document splits a pattern into two, the first of which makes
derived events for the second; these change which events are chosen (its Tables 2 to 5, and Proposition 1 when the first
part has a condition on several events). Here both parts see the same events and the same consumption: that an event
ends a candidate of its block is remembered, and no candidate is chosen before its time. Of `all` it is remembered which
blocks have a candidate: while one of those worked out early has none, no set is looked for.
"""

from __future__ import annotations

from dataclasses import replace

from weft.algebra.analysis.dependencies import dependencies, why_whole
from weft.algebra.situations import Situation


def split_sequence(situation: Situation, early: int) -> Situation:
    """Return the situation with its first `early` blocks evaluated eagerly, or unchanged where that is not possible."""
    return replace(situation, split=early) if early in splits_of(situation) else situation


def splits_of(situation: Situation) -> range:
    """How many blocks can be worked out early; only 0 where there is no split."""
    return range(1 if why_whole(situation) else len(dependencies(situation).blocks))
