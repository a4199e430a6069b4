"""Numbers that a user gave of a program's events, and the program → remarks on those that fit nothing in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.algebra.analysis.renaming import rename
from weft.algebra.composites import CompositeQuery
from weft.algebra.predicates import Predicate
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.situations import SituationQuery
from weft.algebra.terms import mentioned
from weft.algebra.text.program import to_text
from weft.errors import did_you_mean
from weft.optimizer.atoms import EventCondition, conditions_of
from weft.optimizer.cost.selectivity import condition_texts, types_in, types_of
from weft.spelling import written
from weft.statistics import Statistics

MOST_SHOWN = 8  # conditions of a program in a remark


def unused_statistics(program: Program, statistics: Statistics | None) -> list[str]:
    """What is said of each declared number that belongs to no condition, or to no type, of the program."""
    if statistics is None:
        return []
    declared = {name for name in (*statistics.rates, *statistics.selectivity) if _is_declared(name, statistics)}
    read = {type_ for query in program.queries for type_ in query.reads}
    remarks = [
        f"the rate of {name!r} is not used: no query reads this type; {did_you_mean(name, read)}"
        for name in statistics.rates
        if name in declared and name not in read
    ]
    texts = [text for text in statistics.selectivity if text in declared]
    if not texts:
        return remarks
    atoms, ties = conditions_of(program)
    usual = sorted({written(text) for text in (*(atom.text for atom in atoms), *(tie.text for tie in ties))})
    known = {*usual, *(text for query in program.queries for text in _all_texts(query, atoms))}
    return remarks + [
        f"the selectivity of {text!r} is not used: no condition of the program is written so; {_others(text, usual)}"
        for text in texts
        if text not in known
    ]


def _is_declared(name: str, statistics: Statistics) -> bool:
    return statistics.origins.get(name, statistics.origin) == "declared"


def _all_texts(query: AnyQuery, atoms: Sequence[EventCondition]) -> Iterator[str]:
    """Whatever may be called a condition of a query, by types and by variables."""
    types = _types(query)
    for node in query.walk():
        if isinstance(node, Predicate):
            yield from map(written, condition_texts(node, types))
    for variable, type_ in types.items():
        for atom in atoms:
            if atom.type == type_:
                yield written(to_text(rename(atom.predicate, dict.fromkeys(mentioned(atom.predicate), variable))))


def _types(query: AnyQuery) -> dict[str, str]:
    """The types of the events that its variables are bound to."""
    match query:
        case CompositeQuery(pattern=pattern):
            return types_of(pattern)
        case Query():
            return types_in(query.pattern)
        case SituationQuery(situation=situation):
            return {slot.variable: slot.type for slot in situation.participants}
    return {step.variable: step.events.type for step in query.steps}


def _others(text: str, usual: list[str]) -> str:
    if not usual:
        return "it has none of which a selectivity can be given"
    near = did_you_mean(text, usual) or ""
    shown = ", ".join(map(repr, usual[:MOST_SHOWN])) + (", …" if len(usual) > MOST_SHOWN else "")
    return f"{near} The conditions are {shown}" if near.endswith("?") else f"the conditions are {shown}"
