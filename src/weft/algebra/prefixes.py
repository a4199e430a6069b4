"""The steps of a query, and the query up to each: how far its partial matches come can be counted by them.

A prefix asks what the query asks of the steps that it has, and nothing of those that it has not. It keeps windows,
partitions and picks, and leaves out what chooses among matches: strategies, limits, consumption and policies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from weft.algebra import composites
from weft.algebra.analysis.beginnings import first_slots
from weft.algebra.composites import Composite, CompositeQuery, CompositeSequence, Without
from weft.algebra.patterns import Bind, Correlate, Event, Filter, Pattern, Repeat
from weft.algebra.patterns import Sequence as Sequencing
from weft.algebra.policies import Repeated
from weft.algebra.predicates import variables_of
from weft.algebra.query import AnyQuery, Consume, Program, Query, Strategy
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.algebra.terms import mentioned

Prefix = tuple[str, AnyQuery]  # the step that it ends with
Steps = Mapping[str, Sequence[tuple[str, str]]]  # by query: its steps, and what the query up to each is called


def prefixes(query: AnyQuery) -> list[Prefix]:
    """The query up to each of its steps but the last; none if its pattern is no sequence of steps."""
    found = _prefixes(query)
    return [(step, replace(part, name=f"{query.name}/{number}")) for number, (step, part) in enumerate(found, 1)]


def with_steps(program: Program) -> tuple[Program, Steps]:
    """A program that finds partial matches besides, step by step, and what they are called.

    Runs of any length are left out, whose partial matches may be very many.
    """
    parts = {query.name: [own for own in prefixes(query) if not _repeats(own[1])] for query in program.queries}
    more = tuple(part for own in parts.values() for _, part in own)
    return replace(program, queries=(*program.queries, *more)), {
        name: [(step, part.name) for step, part in own] for name, own in parts.items()
    }


def step_names(steps: Steps) -> frozenset[str]:
    """What the queries up to each step are called."""
    return frozenset(name for own in steps.values() for _, name in own)


def is_step(name: str, queries: Collection[str]) -> bool:
    """Whether this is what one of these queries up to a step of it is called."""
    query, _, number = name.rpartition("/")
    return query in queries and number.isdigit()


def funnels_of(steps: Steps, counts: Mapping[str, int]) -> dict[str, list[tuple[str, int]]]:
    """By query: its steps and how many partial matches reached each, and its matches."""
    return {
        query: [*((step, counts.get(name, 0)) for step, name in own), ("match", counts.get(query, 0))]
        for query, own in steps.items()
    }


def _repeats(query: AnyQuery) -> bool:
    return any(isinstance(node, Repeat | composites.CompositeRepeat) for node in query.walk())


def _prefixes(query: AnyQuery) -> Iterator[Prefix]:
    match query:
        case Query():
            yield from _of_query(query)
        case CompositeQuery():
            for part in _composite_parts(query.pattern):
                yield part.variables[-1], CompositeQuery(query.name, part)
        case Rule():
            for count in range(len(query.lookbacks)):
                bare = replace(
                    query, lookbacks=query.lookbacks[:count], conditions=(), fields=(), consumes=(), label=None
                )
                yield query.steps[count].variable, bare
        case SituationQuery() if query.situation.kind in ("sequence", "all"):
            yield from _of_situation(query)


# ---------------------------------------------------------------- regular patterns


def _of_query(query: Query) -> Iterator[Prefix]:
    filters: list[Filter | Correlate] = []
    pattern = query.pattern
    while isinstance(pattern, Filter | Correlate):
        filters.insert(0, pattern)
        pattern = pattern.pattern
    plain = replace(
        query,
        strategy=Strategy.ALL,
        selected=None,
        computed=(),
        consume=Consume.NONE,
        limit=None,
        skip=None,
        unless=None,
        session=None,
        top=None,
    )
    parts = _sequence(pattern)
    for count in range(1, len(parts)):
        part = parts[0]
        for other, contiguous in zip(parts[1:count], _joints(pattern), strict=False):
            part = Sequencing(part, other, contiguous)
        names = _names(part)
        for one in filters:
            wanted = {one.variable} if isinstance(one, Filter) else variables_of(one.condition)
            if wanted <= names:
                part = replace(one, pattern=part)
        yield _step(parts[count - 1]), replace(plain, pattern=part)


def _sequence(pattern: Pattern) -> list[Pattern]:
    return [*_sequence(pattern.left), pattern.right] if isinstance(pattern, Sequencing) else [pattern]


def _joints(pattern: Pattern) -> list[bool]:
    return [*_joints(pattern.left), pattern.contiguous] if isinstance(pattern, Sequencing) else []


def _names(pattern: Pattern) -> frozenset[str]:
    nodes = list(pattern.walk(Pattern))
    bound = {node.name for node in nodes if isinstance(node, Bind)}
    return frozenset(bound.union(*(node.names for node in nodes if isinstance(node, Event))))


def _step(pattern: Pattern) -> str:
    named = [node.name for node in pattern.walk(Pattern) if isinstance(node, Bind)]
    types = [node.type for node in pattern.walk(Pattern) if isinstance(node, Event)]
    return (named or types or ["NOT"])[0]


# ---------------------------------------------------------------- composites and situations


def _composite_parts(pattern: Composite) -> list[Composite]:
    """The left operands of a sequence, from its first to its last but one."""
    match pattern:
        case Without(inner) | composites.CompositeFilter(inner) | composites.After(inner):
            return _composite_parts(inner)
        case CompositeSequence(left, right):
            earlier = _composite_parts(left)
            if isinstance(right, CompositeSequence):  # nested to the right
                return [*earlier, left, *(_joined(left, part, pattern) for part in _composite_parts(right))]
            return [*earlier, left]
    return []


def _joined(left: Composite, part: Composite, follow: CompositeSequence) -> CompositeSequence:
    names = {*left.variables, *part.variables}
    where = tuple(condition for condition in (*follow.where, *follow.among) if mentioned(condition) <= names)
    return CompositeSequence(left, part, "each", where)


def _of_situation(query: SituationQuery) -> Iterator[Prefix]:
    situation = query.situation
    for count in range(1, len(situation.participants)):
        slots = situation.participants[:count]
        names = {slot.variable for slot in slots}
        own = [part for part in situation.assertion if mentioned(part) <= names]
        bare = first_slots(situation, slots, own, Repeated.EVERY)
        yield slots[-1].variable, replace(query, situation=bare, fields=())
