"""Other forms of running queries: whether measured rates make another one cheaper, and how queries change to it.

Changes of evaluation order (look-backs of rules, conditions over several events, blocks of a sequence that are
evaluated eagerly) keep the state. Composite queries have other state in another form: they are planned again together,
since they share operators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from weft.algebra.composites import CompositeQuery, composites_in
from weft.algebra.patterns import Correlate
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.optimizer.cost.known import resolve_statistics
from weft.optimizer.cost.model import Costs
from weft.optimizer.join_order import work_of
from weft.optimizer.pipeline import Choices, trace
from weft.optimizer.rules.split_sequence import splits_of
from weft.optimizer.trace import Inequality, Trace
from weft.plan.operators import Plan
from weft.plan.partitioning.reach import Reach, reach_of_query
from weft.plan.planner import plan
from weft.plan.reuse import looks_ahead_only
from weft.statistics import NOTHING_KNOWN, Statistics, from_json
from weft.stored import Plain

GAIN = 1.3  # how many times as much the running form must cost
SEEN = "others see what it defines"
Forms = dict[int, AnyQuery]  # by number


class Chosen(NamedTuple):
    """The statistics by which the running forms were chosen: of composite queries, and of the rest."""

    composite: Statistics
    other: Statistics


@dataclass(frozen=True)
class Exchange:
    """Queries that go over to other forms together: both run side by side for `longest` ticks."""

    numbers: tuple[int, ...]
    program: Program
    longest: int
    statistics: Statistics

    def planned(self, first: int) -> Plan:
        """The plan of the new forms, which are numbered from `first` on."""
        return plan(self.program, first=first, statistics=self.statistics)


@dataclass
class Replanning:
    """What changes, by number of the query: forms that keep the state, queries that are exchanged, and refusals."""

    turned: Forms = field(default_factory=dict)
    exchange: Exchange | None = None
    refused: dict[int, list[str]] = field(default_factory=dict)

    def refuse(self, number: int, reason: str) -> None:
        """Note why a query stays as it is though another form would be cheaper."""
        self.refused.setdefault(number, []).append(reason)


class CostReplanner:
    """Judges the forms of running queries, which are identified by number, by the optimiser's costs.

    A composite query can change if it reads only the input, no other query reads its output, and its matches have a
    time bound and depend on nothing before them.
    """

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._unit = "ms"
        self._made: frozenset[str] = frozenset()  # types of which there are no events in the input
        self._read: frozenset[str] = frozenset()  # types that queries see
        self._reason: str | None = None  # why all queries stay as they are
        self._against: dict[int, str] | None = None  # why some do; None: nobody has asked yet
        self._by = Chosen(NOTHING_KNOWN, NOTHING_KNOWN)
        self._inequalities: dict[int, tuple[Inequality, ...]] | None = None  # None: nobody has asked yet
        self.written: Forms = {}

    @property
    def program(self) -> Program:
        """The judged queries, as written."""
        return Program("", tuple(self.written.values()), time_unit=self._unit)

    def watch(self, program: Program, numbers: Sequence[int], others: Iterable[AnyQuery], against: str | None) -> bool:
        """Judge queries of a program, as written, together with `others`; return whether any of them can change.

        With a reason `against` it, none of them changes: a cheaper form is only reported.
        """
        if not self._choices.optimize or not any(map(has_choice, program.queries)):
            return False
        everything = (*program.queries, *others)
        self._read = frozenset(type_ for query in everything for type_ in query.reads)
        self._made = frozenset(query.defines for query in everything)
        self.written, self._unit = dict(zip(numbers, program.queries, strict=True)), program.time_unit
        self._reason, self._against = against, None
        known = resolve_statistics(program, self._choices.statistics)
        self._by, self._inequalities = Chosen(known, known), None
        return True

    def add_readers(self, types: Collection[str]) -> None:
        """Record that others read events of these types, so that the queries that define them stay unchanged."""
        self._read, self._against = self._read.union(types), None

    def drop(self, numbers: Collection[int]) -> None:
        """Stop judging these queries."""
        self.written = {number: query for number, query in self.written.items() if number not in numbers}
        self._inequalities = None

    def saved(self) -> Plain:
        """Return the statistics by which the running forms were chosen, as plain data."""
        return [known.to_json() for known in self._by]

    def resume(self, saved: Plain) -> None:
        """Continue from saved state."""
        self._by = Chosen(*map(from_json, saved))

    def judge(self, running: Mapping[int, AnyQuery], found: Statistics) -> Replanning | None:
        """Return what changes by measured statistics, or None while all forms rest on comparisons that still hold."""
        known = self._completed(found)
        if self._inequalities is None:
            self._inequalities = self._rests_on()
        costs = Costs(resolve_statistics(self.program, known))
        broken = [
            number
            for number, made in self._inequalities.items()
            if any(inequality.gain(costs) > GAIN for inequality in made)
        ]
        if not broken:
            return None
        change = Replanning()
        forms = dict(zip(self.written, self._traced(known).program.queries, strict=True))
        composite, staying = self._composite, self._staying
        for number in sorted(staying.keys() & set(broken)):
            change.refuse(number, staying[number])
        if not composite.issuperset(broken):
            fixed = composite | staying.keys()
            self._turn({number: form for number, form in forms.items() if number not in fixed}, running, change)
            self._by, self._inequalities = self._by._replace(other=known), None
        if not composite.isdisjoint(broken):
            change.exchange = self._exchange(forms, running, costs, known)
            if change.exchange is not None:
                self._by, self._inequalities = self._by._replace(composite=known), None
        return change

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Record the new numbers of exchanged queries."""
        self.written = {numbers.get(number, number): query for number, query in self.written.items()}

    def _traced(self, known: Statistics) -> Trace:
        return trace(self.program, known, grows=self._choices.grows)

    def _completed(self, found: Statistics) -> Statistics:
        """What was measured: of types that were not seen there are no events."""
        types = {type_ for query in self.written.values() for type_ in query.reads} - self._made
        return replace(found, rates={**dict.fromkeys(types, 0.0), **found.rates})

    @property
    def _composite(self) -> frozenset[int]:
        return frozenset(number for number, query in self.written.items() if isinstance(query, CompositeQuery))

    @property
    def _staying(self) -> dict[int, str]:
        """Return why queries cannot change, by number; computed when another form would be cheaper."""
        if self._against is None:
            reasons = {
                number: self._reason
                or (_against(query, self._read, self._made) if isinstance(query, CompositeQuery) else None)
                for number, query in self.written.items()
            }
            self._against = {number: reason for number, reason in reasons.items() if reason is not None}
        return self._against

    def _rests_on(self) -> dict[int, tuple[Inequality, ...]]:
        """What the forms that run rest on, by number of the query."""
        composite = self._composite
        kinds = [number in composite for number in self.written]
        traced = {kind: self._traced(self._by.composite if kind else self._by.other).queries for kind in set(kinds)}
        return {
            number: traced[kind][place].inequalities
            for place, (number, kind) in enumerate(zip(self.written, kinds, strict=True))
        }

    def _turn(self, forms: Mapping[int, AnyQuery], running: Mapping[int, AnyQuery], change: Replanning) -> None:
        """Change queries to other forms that keep their state."""
        for number, form in forms.items():
            now = running[number]
            if isinstance(form, SituationQuery) and isinstance(now, SituationQuery) and not _can_share(now, form):
                change.refuse(number, "to share what it begins with, it needs a context with a bound of time")
                form = replace(form, situation=replace(form.situation, shared=now.situation.shared))
            if form != now:
                change.turned[number] = form

    def _exchange(
        self, forms: Forms, running: Mapping[int, AnyQuery], costs: Costs, known: Statistics
    ) -> Exchange | None:
        """Composite queries go over to other forms together, since they share operators, if all cost less then."""
        numbers = sorted(self._composite - self._staying.keys())
        now = [running[number] for number in numbers]
        planned = [forms[number] for number in numbers]
        if all(work(now, costs) <= GAIN * work(planned, costs) for work in (_total, _taken)):
            return None
        new = Program("", tuple(planned), time_unit=self._unit)
        longest = max(_bound(self.written[number]) or 0 for number in numbers)
        return Exchange(tuple(numbers), new, longest, known)


def has_choice(query: AnyQuery) -> bool:
    """Whether there may be another form of a query, that is cheaper by other rates."""
    match query:
        case CompositeQuery():
            return True
        case Rule(lookbacks=lookbacks):
            return len(lookbacks) > 1
        case Query(pattern=pattern):
            tests = (part for part in pattern.walk() if isinstance(part, Correlate))
            return any(isinstance(part.pattern, Correlate) for part in tests)
        case SituationQuery(situation=situation):
            return situation.kind == "sequence" and not situation.split and len(splits_of(situation)) > 1


def _against(query: CompositeQuery, read: Collection[str], made: frozenset[str]) -> str | None:
    """Why the forms of a query cannot run side by side, or None if they can."""
    if query.defines in read:
        return SEEN
    if not made.isdisjoint(query.reads):
        return "it sees what others define"
    if _bound(query) is None:
        return "its matches have no bound of time"
    if not looks_ahead_only(query.pattern):
        return "what it finds depends on what came before"
    return None


def _can_share(now: SituationQuery, form: SituationQuery) -> bool:
    """Whether what a situation begins with can be found elsewhere from now on: when all open partitions close."""
    shared = form.situation.shared
    return shared in (0, now.situation.shared) or form.situation.context.bound is not None


def _bound(query: AnyQuery) -> int | None:
    """How long a match of a composite query may last, or None if there is no bound."""
    reach = reach_of_query(replace(query, fields=())) if isinstance(query, CompositeQuery) else None
    return reach.back if isinstance(reach, Reach) else None


def _total(queries: Collection[AnyQuery], costs: Costs) -> float:
    return costs.total(*(query.pattern for query in queries if isinstance(query, CompositeQuery)))


def _taken(queries: Collection[AnyQuery], costs: Costs) -> float:
    """Return the cost of the sequences of queries in this model."""
    return work_of([query.pattern for query in composites_in(queries)], costs)
