"""Estimated cost of queries before events arrive: work per second of each operator, and the types that are read.

Composite patterns use the model of `optimizer/cost`; in other queries an event costs one, plus one for each comparison,
and nothing for adding it to its key. Rules that differ only in constants are searched together. Numbers are for
comparisons only; they do not predict seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from weft.algebra.analysis.rule_shapes import shape_of
from weft.algebra.composites import CompositeEvent, CompositeQuery
from weft.algebra.query import AnyQuery
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.optimizer.cost import Costs
from weft.plan.keyed import keyed_sequence
from weft.plan.properties import Family

OWN = 0.25  # comparisons that an event at which a rule may fire costs it, besides the search for all of its row


@dataclass(frozen=True)
class PartWork:
    """`operators` by a text that equal ones share, with the work of each; `sources`: the rates of the types read."""

    operators: dict[str, float] = field(default_factory=dict)
    sources: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Return the whole cost, including one for each event."""
        return sum(self.operators.values()) + sum(self.sources.values())

    def add(self, other: PartWork) -> None:
        """Add other work in the same place: a common operator or type counts once."""
        self.operators.update(other.operators)
        self.sources.update(other.sources)

    def beyond(self, there: PartWork) -> float:
        """Return the work that it adds to existing work."""
        pairs = (self.operators, there.operators), (self.sources, there.sources)
        return sum(cost for own, known in pairs for name, cost in own.items() if name not in known)


def work_of(family: Family, costs: Costs) -> PartWork:
    """What the queries of a family cost together."""
    defined = {query.defines for query in family.queries}
    operators: dict[str, float] = {}
    sources: dict[str, float] = {}
    for query in family.queries:
        operators |= operators_of(query, costs)
        sources |= {type_: costs.statistics.rate(type_).value for type_ in query.reads if type_ not in defined}
    return PartWork(operators, sources)


def operators_of(query: AnyQuery, costs: Costs) -> dict[str, float]:
    """The operators of a query, by a text that equal ones share, with the work of each."""
    if isinstance(query, CompositeQuery):
        found = costs.operators([query.pattern]).items()
        return {text: profile.work for text, (node, profile) in found if not isinstance(node, CompositeEvent)}
    known = costs.statistics.rate
    rates = [known(type_).value for type_ in query.reads]
    match query:
        case Rule():
            return _rule(query, known(query.terminator.events.type).value, sum(rates))
        case SituationQuery(situation=situation) if keyed_sequence(situation) is None:
            compared = sum(rates) * (len(situation.participants) - 1)
        case _:
            compared = 0.0
    return {f"{query.name} {query.origin}": sum(rates) + compared}


def _rule(rule: Rule, fires: float, rates: float) -> dict[str, float]:
    """The search that rules of one row of the table have in common, and what each of them takes besides."""
    shape, constants = shape_of(rule)
    row = blake2b(repr((shape, constants.types)).encode(), digest_size=12).hexdigest()
    own = OWN * fires
    return {f"row {row}": rates + fires * len(rule.lookbacks) - own, f"{rule.name} {rule.origin}": own}


def joint(works: Iterable[PartWork]) -> PartWork:
    """All of it in one place: an operator, and a type that is read, counts once."""
    whole = PartWork()
    for work in works:
        whole.add(work)
    return whole


def total_of(works: Iterable[PartWork]) -> float:
    """What all of it costs in one place."""
    return joint(works).total
