"""The order in which conditions are tested: selective and cheap ones first."""

from __future__ import annotations

from weft.algebra.patterns import Correlate, Pattern
from weft.algebra.predicates import Arithmetic, Attribute, Call, Comparison, Predicate
from weft.optimizer.cost.selectivity import condition_texts, types_in
from weft.statistics import Statistics

# How often a comparison holds of which nothing is known, and what one costs that does more than compare attributes.
USUAL = {"=": 0.1, "<>": 0.9}
OFTEN, DEARER = 0.5, 3.0


class ConditionRanks:
    """The ranks of the conditions of a regular pattern: the fraction that is refused for each unit of work."""

    def __init__(self, pattern: Pattern, statistics: Statistics) -> None:
        self._statistics = statistics
        self._types = types_in(pattern)

    def rank(self, condition: Predicate) -> float:
        """A condition's rank."""
        return (1 - self._holds(condition)) / _cost(condition)

    def work(self, pattern: Pattern) -> float:
        """What the tests of a candidate cost, when each condition is tested if those before it hold."""
        total, inside = 0.0, set[int]()
        for node in pattern.walk(Pattern):
            tests = 0.0
            while isinstance(node, Correlate) and id(node) not in inside:  # the outermost is tested last
                inside.add(id(node))
                tests = _cost(node.condition) + self._holds(node.condition) * tests
                node = node.pattern
            total += tests
        return total

    def _holds(self, condition: Predicate) -> float:
        known = self._statistics.fraction(*condition_texts(condition, self._types))
        operator = condition.operator if isinstance(condition, Comparison) else ""
        return USUAL.get(operator, OFTEN) if known is None else known.value


def _cost(condition: Predicate) -> float:
    plain = isinstance(condition, Comparison) and all(
        isinstance(side, Attribute) for side in (condition.left, condition.right)
    )
    computed = any(isinstance(node, Arithmetic | Call) for node in condition.walk())
    return DEARER if computed or not plain else 1.0
