"""Which split of a sequence to run when there is no time to try them: by rates and by how often conditions hold.

To work a block out early costs some work for each event that may end it, whether or not a set comes of it, and saves
that work when a set may be complete. As many blocks are worked out early as a share of a core can do (EPN §4.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple

from weft.algebra.analysis.dependencies import Slots, dependencies, why_whole
from weft.algebra.analysis.normal_form import clauses
from weft.algebra.situations import Situation
from weft.algebra.terms import mentioned
from weft.optimizer.cost.model import Costs
from weft.optimizer.cost.selectivity import condition_texts
from weft.optimizer.rules.split_sequence import splits_of
from weft.optimizer.trace import Inequality, Work
from weft.statistics import Statistics
from weft.tree import Node

SHARE = 0.05  # of a core that may work ahead
LOOKS = 10_000_000.0  # events that a core looks at in a second


class SplitChoice(NamedTuple):
    """How many blocks are worked out early, and if none is why, and by which parts of the situation (none: all)."""

    split: int
    reason: str | None = None
    parts: tuple[Node, ...] = ()


def quick_split(situation: Situation, statistics: Statistics, share: float = SHARE) -> SplitChoice:
    """The split that is likely to be best for latency, within a share of a core; a split that is written stays."""
    if situation.split:
        return SplitChoice(situation.split)
    if situation.kind != "sequence":
        return SplitChoice(0, f"only sequences are split by rates, and this is {situation.kind}")
    if (why := why_whole(situation)) is not None:
        return SplitChoice(0, why, situation.assertion)
    most = splits_of(situation)[-1]
    if any(statistics.rate(slot.type).origin == "default" for slot in situation.participants):
        return SplitChoice(0, "the rates of its types are not known, so it is not split; weft tune tries all splits")
    fitting = [early for early in range(1, most + 1) if early_work(situation, early, statistics) <= share * LOOKS]
    if not fitting:
        return SplitChoice(0, "its events come too often to work ahead")
    return SplitChoice(fitting[-1])


def split_inequalities(situation: Situation, early: int, share: float = SHARE) -> tuple[Inequality, ...]:
    """Return the comparisons that the choice rests on: `early` blocks pay off when evaluated eagerly, one more does
    not.
    """

    def work(blocks: int) -> Work:
        return lambda costs: early_work(situation, blocks, costs.statistics)

    def most(_: Costs) -> float:
        return share * LOOKS

    enough = [Inequality("split_sequence", work(early), most)] if early else []
    more = [Inequality("split_sequence", most, work(early + 1))] if early < splits_of(situation)[-1] else []
    return (*enough, *more)


def early_work(situation: Situation, early: int, statistics: Statistics) -> float:
    """Return how many events per second are examined to evaluate `early` blocks eagerly."""
    blocks = dependencies(situation).blocks[:early]
    return sum(statistics.rate(situation.participants[block[-1]].type).value * len(block) for block in blocks)


def late_work(situation: Situation, early: int, statistics: Statistics) -> float:
    """How many events a second are looked at because a set may be complete, in the blocks not worked out by then."""
    looks = looks_in(situation, dependencies(situation).blocks[early:], statistics)
    return statistics.rate(situation.participants[-1].type).value * looks


def looks_in(situation: Situation, blocks: Iterable[Slots], statistics: Statistics) -> float:
    """How many events are looked at to find candidates of blocks.

    In a block ends are tried until one has a beginning: as many as the root of how many pairs it takes for one that
    satisfies its conditions.
    """
    return sum(len(block) * sqrt(1 / _holds(situation, block, statistics)) for block in blocks)


def _holds(situation: Situation, block: Slots, statistics: Statistics) -> float:
    """How often the conditions of a block hold, as far as that is known."""
    names = {situation.variables[slot] for slot in block}
    types = {slot.variable: slot.type for slot in situation.participants}
    chance = 1.0
    for clause in clauses(situation.assertion):
        if len(mentioned(clause)) > 1 and mentioned(clause) <= names:
            figure = statistics.fraction(*condition_texts(clause, types))
            chance *= 1.0 if figure is None else max(figure.value, 1e-9)
    return chance
