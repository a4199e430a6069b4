"""What statistics can say of a program's conditions: those on one event by type, and those that compare two events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from weft.algebra.analysis.normal_form import clauses
from weft.algebra.chains import Fits
from weft.algebra.composites import Composite, CompositeQuery
from weft.algebra.patterns import Correlate, Event, Filter
from weft.algebra.predicates import Always, Attribute, Comparison, ComparisonOperator, Predicate
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.rules import Events, Rule
from weft.algebra.situations import SituationQuery
from weft.algebra.terms import conjuncts, mentioned
from weft.optimizer.cost.selectivity import condition_texts, types_in, types_of
from weft.optimizer.pipeline import optimize
from weft.tree import Node

Types = Mapping[str, str]  # by variable


class EventCondition(NamedTuple):
    """A condition on one event: how statistics call it, the type of the event, and the condition itself."""

    text: str
    type: str
    predicate: Predicate


class EventComparison(NamedTuple):
    """A comparison of two events: how statistics call it, and the types and attributes that it compares."""

    text: str
    operator: ComparisonOperator
    sides: tuple[tuple[str, str], tuple[str, str]]


def conditions_of(
    program: Program, rewritten: Program | None = None
) -> tuple[list[EventCondition], list[EventComparison]]:
    """The conditions of all queries of which a sample can tell how often they hold, each once."""
    found: dict[str, EventCondition | EventComparison] = {}
    # Rewritten too: filters are then at their events, and keys between neighbours.
    for query in (*program.queries, *(rewritten or optimize(program)).queries):
        for condition in _conditions(query):
            found.setdefault(condition.text, condition)
    atoms = [one for one in found.values() if isinstance(one, EventCondition)]
    return atoms, [one for one in found.values() if isinstance(one, EventComparison)]


def _conditions(query: AnyQuery) -> Iterator[EventCondition | EventComparison]:
    match query:
        case CompositeQuery(pattern=pattern):
            types = types_of(pattern)
            for node in pattern.walk(Composite):
                for test in conjuncts((*getattr(node, "where", ()), *getattr(node, "among", ()))):
                    yield from _condition(test, types)
        case Query():
            yield from _of_regular(query)
        case SituationQuery(situation=situation):
            types = {slot.variable: slot.type for slot in situation.participants}
            own = (test for slot in situation.participants for test in slot.where)
            for test in (*conjuncts(own), *clauses(situation.assertion)):
                yield from _condition(test, types)
        case Rule():
            types = {step.variable: step.events.type for step in query.steps}
            for node in query.walk():
                if isinstance(node, Events):
                    for test in conjuncts((*node.static, *node.related)):
                        # The current event is called as its type: no variable of the rule has a name with a space.
                        yield from _condition(_of_variable(test, " "), {**types, " ": node.type})


def _of_regular(query: Query) -> Iterator[EventCondition | EventComparison]:
    types = types_in(query.pattern)
    for part in query.walk():
        match part:
            case Filter(Event(type=type_), _, test):
                yield from _at_hand([type_], test)
            case Fits(names, test) if test != Always():
                yield from _at_hand(names, test)
            case Correlate(_, condition):
                yield from _condition(condition, types)


def _at_hand(types: Iterable[str], predicate: Predicate) -> Iterator[EventCondition | EventComparison]:
    """The conditions on the current event, for each type that it may be of."""
    for type_ in types:
        for test in conjuncts([predicate]):
            yield from _condition(_of_variable(test, type_), {type_: type_})


def _condition(test: Predicate, types: Types) -> Iterator[EventCondition | EventComparison]:
    names = mentioned(test)
    if not names <= types.keys():
        return
    text = condition_texts(test, types)[0]
    if len(names) == 1:
        (name,) = names
        yield EventCondition(text, types[name], test)
    match test:
        case Comparison(operator, Attribute(one, str() as first), Attribute(other, str() as second)) if len(names) == 2:
            yield EventComparison(text, operator, ((types[first], one), (types[second], other)))


def _of_variable(test: Predicate, name: str) -> Predicate:
    """A condition on the current event as one on a variable."""

    def named(node: Node) -> Node:
        return Attribute(node.name, name) if isinstance(node, Attribute) and node.variable is None else node

    changed = test.transform(named)
    assert isinstance(changed, Predicate)
    return changed
