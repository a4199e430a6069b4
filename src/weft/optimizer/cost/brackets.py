"""The cheapest brackets of a chain of next: exact, and as the document prints it.

Rate and waiting time of a stretch do not depend on its brackets, its bursts do: a cheaper stretch can make a dearer
whole. So the exact search keeps for each stretch all brackets that may be part of the best whole (NEXT 4.3 keeps one).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.optimizer.chains import Shape
from weft.optimizer.cost.profiles import Profile, follow

MOST_EXACT = 24  # operands of a chain that is searched exactly
MOST_SEARCHED = 64  # operands of a chain that is searched at all

Keys = Sequence[float]  # for each operand but the last, how many values tie it to the next one


class BracketCost(NamedTuple):
    """Brackets of a stretch of operands: what its operators do, its bursts, and their number per second."""

    cost: float
    burst: float
    bursts: float
    shape: Shape


def best_brackets(operands: Sequence[Profile], keys: Keys = ()) -> Shape:
    """The cheapest brackets of a chain; of very long chains the best that the plain search finds."""
    if len(operands) > MOST_EXACT:
        return plain_brackets(operands, keys)
    return min(candidates(operands, keys), key=lambda found: found.cost).shape


def candidates(operands: Sequence[Profile], keys: Keys = ()) -> list[BracketCost]:
    """The brackets of the whole that are best for some use of it, by an exact search."""
    count = len(operands)
    ties = keys or (1.0,) * count
    waits = _waits(operands)
    fronts = {(i, i): [BracketCost(0.0, operands[i].burst, operands[i].bursts, i)] for i in range(count)}
    rights = dict(fronts)
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            front: list[BracketCost] = []
            for k in range(j - 1, i - 1, -1):
                lefts, others = fronts[i, k], rights[k + 1, j]
                front += _joined(lefts, others, operands[i].rate, waits[i][k], waits[k + 1][j], ties[k])
            fronts[i, j] = front
            rights[i, j] = _useful_on_the_right(front)
    return fronts[0, count - 1]


def _waits(operands: Sequence[Profile]) -> list[list[float]]:
    """The waiting time of each stretch, by its first and last operand."""
    waits = [[0.0] * len(operands) for _ in operands]
    for i in range(len(operands)):
        total = 0.0
        for j in range(i, len(operands)):
            total += operands[j].wait
            waits[i][j] = total
    return waits


def _joined(
    lefts: Sequence[BracketCost],
    rights: Sequence[BracketCost],
    rate: float,
    left_wait: float,
    right_wait: float,
    keys: float,
) -> list[BracketCost]:
    """Join each left range with its best right range; the output depends only on the bursts of the left one.

    All candidates have the same number of bursts per second, so the one with less cost and smaller bursts is better.
    """
    bursts, waiting = 1 / max(left_wait, right_wait), right_wait / left_wait / keys
    found: list[BracketCost] = []
    for left_cost, burst, left_bursts, left_shape in lefts:
        waiters = waiting * burst
        best, best_shape = float("inf"), rights[0].shape
        for cost, size, often, shape in rights:
            total = cost + size * (waiters * often + (often - left_bursts if often > left_bursts else 0.0))
            if total < best:
                best, best_shape = total, shape
        waits_for = left_bursts * right_wait
        size = burst * waits_for if waits_for > 1.0 else burst
        found.append(BracketCost(left_cost + rate + best, size, bursts, (left_shape, best_shape)))
    found.sort(key=lambda one: (one.cost, one.burst))
    kept: list[BracketCost] = []
    for one in found:
        if not kept or one.burst < kept[-1].burst:
            kept.append(one)
    return kept


def _useful_on_the_right(front: Sequence[BracketCost]) -> list[BracketCost]:
    """Those that no other beats in cost, bursts and their number: on the right all three cost."""
    kept: list[BracketCost] = []
    for one in sorted(front, key=lambda found: found[:3]):
        if not any(other.burst <= one.burst and other.bursts <= one.bursts for other in kept):
            kept.append(one)
    return kept


def plain_brackets(operands: Sequence[Profile], keys: Keys = ()) -> Shape:
    """The brackets that the document's algorithm finds: one best tree for each stretch (Figure 5, corrected)."""
    count = len(operands)
    ties = keys or (1.0,) * count
    best: dict[tuple[int, int], tuple[float, Profile, Shape]] = {(i, i): (0.0, operands[i], i) for i in range(count)}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            found = []
            for k in range(j - 1, i - 1, -1):
                (cost, left, one), (more, right, other) = best[i, k], best[k + 1, j]
                profile = follow(left, right, ties[k])
                found.append((cost + more + profile.work, profile, (one, other)))
            best[i, j] = min(found, key=lambda entry: entry[0])
    return best[0, count - 1][2]
