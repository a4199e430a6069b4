"""Find the cheapest brackets of Step's any next."""

from __future__ import annotations

from weft.optimizer.chains import Shape
from weft.optimizer.cost.model import Costs
from weft.optimizer.joins import Joins

MOST_SEARCHED = 12  # operands: the search takes time that grows by the fourth power, and longer chains stay as written


def best_joins(joins: Joins, costs: Costs) -> Shape:
    """The cheapest brackets. How many pairs a stretch has does not depend on its brackets, so one tree each will do."""
    count = len(joins.operands)
    if count > MOST_SEARCHED:
        return joins.shape
    best: dict[tuple[int, int], Shape] = {(i, i): i for i in range(count)}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            shapes = ((best[i, k], best[k + 1, j]) for k in range(j - 1, i - 1, -1))
            best[i, j] = min(shapes, key=lambda shape: costs.total(joins.stretch(shape)))
    return best[0, count - 1]
