"""Adaptive execution: replace the form of running queries when measured rates make another one cheaper.

Changes of evaluation order (look-backs of rules, conditions over several events, blocks of a sequence that are
evaluated eagerly) keep the state, between two batches. Composite queries have other state in another form: both forms
run side by side for as long as a match may last. The old one emits matches that began before the change, the new one
those that begin after it, so no match is lost or duplicated.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from weft.algebra.composites import CompositeQuery
from weft.algebra.patterns import Correlate
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.optimizer.cost.known import resolve_statistics
from weft.optimizer.cost.model import Costs
from weft.optimizer.pipeline import Choices, trace
from weft.optimizer.rules.split_sequence import splits_of
from weft.optimizer.trace import Inequality, Trace
from weft.plan.brackets import choose_join_order, work_of
from weft.plan.partitioning.reach import Reach, reach_of_query
from weft.plan.planner import plan
from weft.plan.reuse import looks_ahead_only
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.watching.measuring import Measure
from weft.statistics import NOTHING_KNOWN, Statistics, from_json
from weft.stored import Plain

FIRST_LOOK = 1 << 18  # events before rates are measured for the first time; later each time after twice as many
FEW = 1 << 6  # queries; of more the first look is later, by as much as it takes longer
ENOUGH = 1 << 13  # events that rates are measured in
AT_ONCE = 1 << 12  # events of a batch that are measured at most
NEVER = 1 << 62
GAIN = 1.3  # how many times as much the running form must cost
SEEN = "others see what it defines"
LOG = logging.getLogger("weft")
Forms = dict[int, AnyQuery]  # by number


class RetiringPlan(NamedTuple):
    """Old forms, by number, and the time after which they are gone."""

    numbers: frozenset[int]
    time: int


class Chosen(NamedTuple):
    """The statistics by which the running forms were chosen: of composite queries, and of the rest."""

    composite: Statistics
    other: Statistics


class Adapting:
    """Watch the events of a matcher, and change the form of its queries, which are identified by number.

    A composite query can change if it reads only the input, no other query reads its output, and its matches have a
    time bound and depend on nothing before them. For all remaining queries a cheaper form is only counted and reported.
    """

    def __init__(self, matcher: Matcher, choices: Choices) -> None:
        self._matcher = matcher
        self._choices = choices
        self._seen = 0
        self._next_look = FIRST_LOOK
        self._measure: Measure | None = None
        self._measured = 0
        self._written: Forms = {}
        self._unit = "ms"
        self._made: frozenset[str] = frozenset()  # types of which there are no events in the input
        self._read: frozenset[str] = frozenset()  # types that queries see
        self._reason: str | None = None  # why all queries stay as they are
        self._against: dict[int, str] | None = None  # why some do; None: nobody has asked yet
        self._by = Chosen(NOTHING_KNOWN, NOTHING_KNOWN)
        self._inequalities: dict[int, tuple[Inequality, ...]] | None = None  # None: nobody has asked yet
        self._leaving: RetiringPlan | None = None
        self._before: dict[int, int] = {}  # the number of the form before, by that of the form that runs
        self.changes = 0
        self.refused = 0

    @property
    def is_changing(self) -> bool:
        """Whether two forms of a query run now."""
        return self._leaving is not None

    @property
    def counters(self) -> dict[str, int]:
        """How often forms changed, and how often they could not; nothing where that never happened."""
        counted = {"changes": self.changes, "changes_refused": self.refused}
        return {name: count for name, count in counted.items() if count}

    def watch(
        self,
        program: Program,
        numbers: Sequence[int],
        others: Collection[AnyQuery] = (),
        against: str | None = None,
    ) -> None:
        """Watch queries of a program, as written, which run under these numbers; the rest of the program runs beside
        them.

        With a reason `against` it, none of them changes: a cheaper form is only counted and reported.
        """
        if not self._choices.optimize or not any(map(has_choice, program.queries)):
            return
        everything = (*program.queries, *others)
        self._read = frozenset(type_ for query in everything for type_ in query.reads)
        self._made = frozenset(query.defines for query in everything)
        self._written, self._unit = dict(zip(numbers, program.queries, strict=True)), program.time_unit
        self._reason, self._against = against, None
        self._next_look = FIRST_LOOK * max(1, len(self._written) // FEW)
        known = resolve_statistics(program, self._choices.statistics)
        self._by, self._measure, self._inequalities = Chosen(known, known), None, None

    def add_readers(self, types: Collection[str]) -> None:
        """Others see events of these types from now on: those who define them stay in their place."""
        self._read, self._against = self._read.union(types), None

    def stop(self) -> None:
        """Keep the forms that run now."""
        self._next_look = NEVER

    def saved(self) -> Plain:
        """What another one needs to go on, besides what it watches, as plain data."""
        leaving = None if self._leaving is None else [sorted(self._leaving.numbers), self._leaving.time]
        return {
            "seen": self._seen,
            "next_look": self._next_look,
            "leaving": leaving,
            "before": sorted(self._before.items()),
            "changes": self.changes,
            "refused": self.refused,
            "by": [known.to_json() for known in self._by],
            "measured": None if self._measure is None else [self._measured, self._measure.saved()],
        }

    def resume(self, saved: Plain) -> None:
        """Go on from what another one has saved."""
        self._seen, self._next_look = saved["seen"], saved["next_look"]
        self.changes, self.refused = saved["changes"], saved["refused"]
        leaving = saved["leaving"]
        self._leaving = None if leaving is None else RetiringPlan(frozenset(leaving[0]), leaving[1])
        self._before = dict(saved["before"])
        self._by = Chosen(*map(from_json, saved["by"]))
        measured, counts = saved["measured"] or (0, None)
        if counts is not None and self._written:
            self._measure, self._measured = Measure(self._program(), apart=True), measured
            self._measure.resume(counts)

    def drop(self, numbers: Collection[int]) -> set[int]:
        """Watch these queries no more; the numbers of their old forms that are still there."""
        before = {self._before[number] for number in numbers if number in self._before}
        self._written = {number: query for number, query in self._written.items() if number not in numbers}
        self._measure, self._measured, self._inequalities = None, 0, None
        if self._leaving is None:
            return set()
        gone = self._leaving.numbers
        self._leaving = self._leaving._replace(numbers=gone - before) if gone - before else None
        return before & gone

    def renumbered(self, number: int) -> int:
        """The number of the form of a query that runs now."""
        return next((new for new, old in self._before.items() if old == number), number)

    def pass_by(self, events: int) -> None:
        """So many events came that are not looked at."""
        self._seen += events

    def look(self, batch: EventBatch) -> None:
        """Take note of events that come now, before the matcher sees them."""
        self._seen += len(batch)
        if self._leaving is not None:
            if self._matcher.last is not None and self._matcher.last > self._leaving.time:
                self._matcher.remove(self._leaving.numbers)
                self._leaving = None
        elif self._written and self._seen >= self._next_look and len(batch):
            measure = self._measure = self._measure or Measure(self._program(), apart=True)
            measure.look(blocks.slice(batch, 0, min(len(batch), AT_ONCE)))
            self._measured += len(batch)
            if self._measured >= ENOUGH:
                self._judge(self._known(measure))
                measure.clear()
                self._measured, self._next_look = 0, 2 * self._seen

    # -- judging --------------------------------------------------------------------------------

    def _program(self) -> Program:
        return Program("", tuple(self._written.values()), time_unit=self._unit)

    def _traced(self, known: Statistics) -> Trace:
        return trace(self._program(), known, grows=self._choices.grows)

    def _known(self, measure: Measure) -> Statistics:
        """What was measured: of types that were not seen there are no events."""
        found = measure.statistics()
        types = {type_ for query in self._written.values() for type_ in query.reads} - self._made
        return replace(found, rates={**dict.fromkeys(types, 0.0), **found.rates})

    def _judge(self, known: Statistics) -> None:
        """Change the form of queries if a comparison that it rests on does not hold any more."""
        if self._inequalities is None:
            self._inequalities = self._rests_on()
        costs = Costs(resolve_statistics(self._program(), known))
        broken = [
            number
            for number, made in self._inequalities.items()
            if any(inequality.gain(costs) > GAIN for inequality in made)
        ]
        if not broken:
            return
        forms = dict(zip(self._written, self._traced(known).program.queries, strict=True))
        composite, staying = self._composite, self._staying
        for number in sorted(staying.keys() & set(broken)):
            self._refuse(number, staying[number])
        if not composite.issuperset(broken):
            fixed = composite | staying.keys()
            self._turn({number: form for number, form in forms.items() if number not in fixed})
            self._by, self._inequalities = self._by._replace(other=known), None
        if not composite.isdisjoint(broken) and self._exchange(forms, costs, known):
            self._by, self._inequalities = self._by._replace(composite=known), None

    @property
    def _composite(self) -> frozenset[int]:
        return frozenset(number for number, query in self._written.items() if isinstance(query, CompositeQuery))

    @property
    def _staying(self) -> dict[int, str]:
        """Why queries stay as they are, by number: asked for when another form would be cheaper."""
        if self._against is None:
            reasons = {
                number: self._reason
                or (_against(query, self._read, self._made) if isinstance(query, CompositeQuery) else None)
                for number, query in self._written.items()
            }
            self._against = {number: reason for number, reason in reasons.items() if reason is not None}
        return self._against

    def _rests_on(self) -> dict[int, tuple[Inequality, ...]]:
        """What the forms that run rest on, by number of the query."""
        running, composite = self._matcher.queries(self._written), self._composite
        kinds = [number in composite for number in self._written]
        traced = {kind: self._traced(self._by.composite if kind else self._by.other).queries for kind in set(kinds)}
        rests: dict[int, tuple[Inequality, ...]] = {}
        for place, (number, kind) in enumerate(zip(self._written, kinds, strict=True)):
            one, now = traced[kind][place], running[number]
            form, rests[number] = one.query, one.inequalities
            if isinstance(form, CompositeQuery) and isinstance(now, CompositeQuery) and form.pattern != now.pattern:
                rests[number] += (_as_run(now, form),)
        return rests

    def _refuse(self, number: int, reason: str) -> None:
        self.refused += 1
        name = self._written[number].name
        LOG.info("%s: another form is cheaper by the rates measured, but it stays while it runs: %s", name, reason)

    # -- what goes on with all that is kept -----------------------------------------------------

    def _turn(self, forms: Mapping[int, AnyQuery]) -> None:
        """Let queries go on in other forms."""
        running = self._matcher.queries(forms)
        turned: Forms = {}
        for number, form in forms.items():
            now = running[number]
            if isinstance(form, SituationQuery) and isinstance(now, SituationQuery) and not _can_share(now, form):
                self._refuse(number, "to share what it begins with, it needs a context with a bound of time")
                form = replace(form, situation=replace(form.situation, shared=now.situation.shared))
            if form != now:
                turned[number] = form
        if turned:
            self._matcher.replace_queries(turned)
            self.changes += len(turned)
            self._tell(turned.values())

    # -- what runs side by side -----------------------------------------------------------------

    def _exchange(self, forms: Mapping[int, AnyQuery], costs: Costs, known: Statistics) -> bool:
        """Let composite queries go over to other forms together, since they share operators, if all cost less then."""
        numbers = sorted(self._composite - self._staying.keys())
        running = list(self._matcher.queries(numbers).values())
        planned = [choose_join_order(forms[number], lambda: costs) for number in numbers]
        if all(work(running, costs) <= GAIN * work(planned, costs) for work in (_total, _taken)):
            return False
        matcher, first = self._matcher, self._matcher.next_number
        matcher.retire(numbers)
        new = Program("", tuple(forms[number] for number in numbers), time_unit=self._unit)
        matcher.extend(plan(new, first=first, statistics=known))
        longest = max(_bound(self._written[number]) or 0 for number in numbers)
        self._leaving = RetiringPlan(frozenset(numbers), (matcher.last or 0) + longest)
        renumbered = {number: first + place for place, number in enumerate(numbers)}
        self._before = {new: old for old, new in renumbered.items()}
        self._written = {renumbered.get(number, number): query for number, query in self._written.items()}
        self._measure = None
        self.changes += 1
        self._tell(new.queries)
        return True

    def _tell(self, queries: Collection[AnyQuery]) -> None:
        LOG.info("%s: another form is cheaper by the rates measured", ", ".join(query.name for query in queries))


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
            return not situation.split and len(splits_of(situation)) > 1


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
    """What the sequences of queries take here."""
    return work_of([query.pattern for query in queries if isinstance(query, CompositeQuery)], costs)


def _as_run(now: CompositeQuery, form: CompositeQuery) -> Inequality:
    """That a query takes no more in the brackets that run than in those that the optimiser chose."""
    runs, chosen = [now.pattern], [form.pattern]
    return Inequality("as_run", lambda costs: work_of(runs, costs), lambda costs: work_of(chosen, costs))
