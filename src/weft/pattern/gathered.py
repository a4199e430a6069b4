"""Values of the events that a step took, for conditions on whole matches: `step("a").price.sum() < step("b").price`."""

from __future__ import annotations

from weft.algebra import predicates as algebra
from weft.algebra.predicates import Aggregate, And, Attribute, Comparison, Predicate
from weft.described import described
from weft.errors import UsageError
from weft.pattern.expressions import Condition, Value
from weft.pattern.limits import require_depth
from weft.pattern.text import condition_text
from weft.tree import Node


class Gathered(Value):
    """An attribute of the events of a step: in a comparison, of each of them; or one value of them all."""

    def __init__(self, attribute: Attribute) -> None:
        super().__init__(attribute)
        self._attribute = attribute

    def sum(self) -> Value:
        """The sum of the numbers."""
        return self._of_all("SUM")

    def avg(self) -> Value:
        """Their mean."""
        return self._of_all("AVG")

    def min(self) -> Value:
        """The least."""
        return self._of_all("MIN")

    def max(self) -> Value:
        """The greatest."""
        return self._of_all("MAX")

    def first(self) -> Value:
        """That of the first event."""
        return self._of_all("FIRST")

    def last(self) -> Value:
        """That of the last event."""
        return self._of_all("LAST")

    def _of_all(self, function: algebra.AggregateFunction) -> Value:
        return Value(Aggregate(function, self._attribute))


class _Step:
    """The events of a step: their attributes are values, `step("a").price` or `step("a")["odd name"]`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Gathered:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Gathered:
        return Gathered(Attribute(name, self._name))

    def count(self) -> Value:
        """How many there are."""
        return Value(Aggregate("COUNT", Attribute("*", self._name)))


@described(name="The name of the step in the pattern.")
def step(name: str) -> _Step:
    """The events that a step of the pattern took."""
    return _Step(name)


def variables_of(node: Node) -> set[str | None]:
    """The steps that a condition speaks of; None: the current event."""
    return {found.variable for found in node.walk() if isinstance(found, Attribute)}


def comparisons_of(given: object) -> tuple[Predicate, ...]:
    """The parts of a condition on whole matches, each a comparison between steps or with a value of a whole step."""
    if not isinstance(given, Condition):
        raise UsageError(f"a condition on matches is like step('a').price.sum() < 3, not a {type(given).__name__}")
    require_depth(given.predicate)
    parts = given.predicate.operands if isinstance(given.predicate, And) else (given.predicate,)
    for part in parts:
        steps = variables_of(part)
        if not isinstance(part, Comparison):
            raise UsageError(f"{condition_text(part)}: having takes comparisons, joined by &; write two patterns for |")
        if None in steps or not steps:
            raise UsageError(f"{condition_text(part)}: having is about events of steps, step('a').price; use where")
        if len(steps) == 1 and not any(isinstance(node, Aggregate) for node in part.walk()):
            raise UsageError(f"{condition_text(part)}: this is about each event of one step: say it by where")
    return parts
