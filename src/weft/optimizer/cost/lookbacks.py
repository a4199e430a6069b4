"""The cost of a rule: the events that its look-backs visit, and the cheapest order of look-backs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from weft.algebra.predicates import Attribute, Comparison, Predicate
from weft.algebra.rules import LookBack, Rule, Terminator
from weft.optimizer.cost.selectivity import condition_texts
from weft.optimizer.rules.order_lookbacks import is_allowed, needs
from weft.statistics import Statistics

MOST_ORDERED = 10  # look-backs: the search takes time that doubles with each


class LookBackCost(NamedTuple):
    """What a look-back does for each combination: how many events it looks at, and how many it takes."""

    looked: float
    taken: float


def rule_work(rule: Rule, statistics: Statistics) -> float:
    """How many events a rule looks at in a second, each time that its terminator comes."""
    tries, looking = lookings(rule, statistics)
    total, reached = 0.0, 1.0
    for step in rule.lookbacks:
        looked, taken = looking[step.variable]
        total += reached * looked
        reached *= taken
    return tries * total


def best_order(rule: Rule, statistics: Statistics, free: bool) -> tuple[str, ...]:
    """The order of look-backs that costs least, of those that are allowed."""
    names = tuple(step.variable for step in rule.lookbacks)
    if not 1 < len(names) <= MOST_ORDERED:
        return names
    _, looking = lookings(rule, statistics)
    before = {step.variable: needs(step) & set(names) for step in rule.lookbacks}
    # For each set of look-backs the cheapest way to take them: how many combinations they leave does not depend on it.
    best: dict[frozenset[str], tuple[float, float, tuple[str, ...]]] = {frozenset(): (0.0, 1.0, ())}
    for size in range(1, len(names) + 1):
        for chosen in map(frozenset, combinations(names, size)):
            ways = []
            for last in (name for name in names if name in chosen and before[name] <= chosen):
                known = best.get(chosen - {last})
                if known is not None and _goes(rule, (*known[2], last), free):
                    cost, reached, order = known
                    looked, taken = looking[last]
                    ways.append((cost + reached * looked, reached * taken, (*order, last)))
            if ways:
                best[chosen] = min(ways, key=lambda way: (way[0], [names.index(name) for name in way[2]]))
    return best[frozenset(names)][2]


def _goes(rule: Rule, order: Sequence[str], free: bool) -> bool:
    """Return whether an order may begin this way, with the remaining look-backs in their original order."""
    rest = (step.variable for step in rule.lookbacks if step.variable not in order)
    return is_allowed(rule, (*order, *rest), free)


def lookings(rule: Rule, statistics: Statistics) -> tuple[float, dict[str, LookBackCost]]:
    """How often a rule is tried in a second, and what each look-back does then."""
    types = {step.variable: step.events.type for step in rule.steps}  # as statistics call them

    def fraction(step: Terminator | LookBack, tests: Sequence[Predicate]) -> float:
        found = 1.0
        for test in tests if statistics.selectivity else ():
            named = test.transform(
                lambda node: (
                    Attribute(node.name, step.variable)
                    if isinstance(node, Attribute) and node.variable is None
                    else node
                )
            )
            known = statistics.fraction(*condition_texts(named, types))  # type: ignore[arg-type]
            found *= 1.0 if known is None else known.value
        return found

    def looking(step: LookBack) -> LookBackCost:
        events = step.events
        keys = [test for test in events.related if _is_key(test)]
        others = [test for test in events.related if not _is_key(test)]
        inside = statistics.rate(events.type).value * statistics.seconds(step.within.ticks) * fraction(step, keys)
        holds = fraction(step, [*events.static, *others])
        if step.count is None:
            return LookBackCost(inside, inside * holds)
        return LookBackCost(min(inside, step.count / max(holds, 1e-9)), min(inside * holds, step.count))

    terminator = rule.terminator
    tries = statistics.rate(terminator.events.type).value * fraction(terminator, terminator.events.static)
    return tries, {step.variable: looking(step) for step in rule.lookbacks}


def _is_key(test: Predicate) -> bool:
    match test:
        case Comparison("=", Attribute(_, None), Attribute(_, str())):
            return True
    return False
