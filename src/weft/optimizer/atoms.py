"""What statistics can say of a program's conditions: those on one event by type, and the keys that tie two types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from weft.algebra.composites import Composite, CompositeQuery
from weft.algebra.patterns import Event, Where
from weft.algebra.predicates import Attribute, Comparison, Predicate
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.terms import conjuncts, mentioned
from weft.optimizer.cost.selectivity import condition_texts, is_key, types_of
from weft.optimizer.pipeline import optimize


class Atom(NamedTuple):
    """A condition on one event: how statistics call it, the type of the event, and the condition itself."""

    text: str
    type: str
    predicate: Predicate


class Tie(NamedTuple):
    """An equality of two events: how statistics call it, and the types and attributes that it compares."""

    text: str
    sides: tuple[tuple[str, str], tuple[str, str]]


def conditions_of(program: Program) -> tuple[list[Atom], list[Tie]]:
    """The conditions of all queries of which a sample can tell how often they hold, each once."""
    found: dict[str, Atom | Tie] = {}
    # Rewritten too: filters are then at their events, and keys between neighbours.
    for query in (*program.queries, *optimize(program).queries):
        for condition in _conditions(query):
            found.setdefault(condition.text, condition)
    atoms = [one for one in found.values() if isinstance(one, Atom)]
    return atoms, [one for one in found.values() if isinstance(one, Tie)]


def _conditions(query: AnyQuery) -> Iterator[Atom | Tie]:
    match query:
        case CompositeQuery(pattern=pattern):
            types = types_of(pattern)
            for node in pattern.walk(Composite):
                for test in conjuncts((*getattr(node, "where", ()), *getattr(node, "among", ()))):
                    yield from _condition(test, types)
        case Query(pattern=regular):
            for part in regular.walk():
                if isinstance(part, Where) and isinstance(part.pattern, Event):
                    for test in conjuncts([part.predicate]):
                        yield Atom(_named(test, part.pattern.type), part.pattern.type, test)


def _condition(test: Predicate, types: dict[str, str]) -> Iterator[Atom | Tie]:
    names = mentioned(test)
    text = condition_texts(test, types)[0]
    if len(names) == 1:
        (name,) = names
        yield Atom(text, types[name], test)
    match test:
        case Comparison("=", Attribute(one, str() as first), Attribute(other, str() as second)) if is_key(test):
            yield Tie(text, ((types[first], one), (types[second], other)))


def _named(test: Predicate, type_: str) -> str:
    """The text of a condition on the event at hand, with its type."""
    whole = test.transform(lambda node: Attribute(node.name, type_) if isinstance(node, Attribute) else node)
    return condition_texts(whole, {})[0]  # type: ignore[arg-type]
