"""Queries that come and go over one stream of events, each with the state of its own time.

A deployment runs beside the others and sees the events from then on: what is there keeps its state and its answer.
Rules of all deployments run from the same tables, since they see what others define.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from weft.algebra.query import AnyQuery, Program
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.errors import UsageError
from weft.optimizer.pipeline import optimize
from weft.plan.operators import Plan
from weft.plan.planner import plan
from weft.runtime.events import EventBatch
from weft.runtime.matcher import Matcher
from weft.runtime.matches import MatchBatch
from weft.runtime.rules.run import RuleRun


@dataclass(eq=False)
class Deployed:
    """One query at work: where, as which of the rules there, and the attributes that its deployment reads."""

    query: AnyQuery
    matcher: Matcher
    number: int | None
    columns: tuple[str, ...]


class Deployments:
    """All queries that are deployed now, in the order in which they came."""

    def __init__(self) -> None:
        self.present: list[Deployed] = []
        self.columns: frozenset[str] = frozenset()  # the attributes that some query reads
        self._matchers: list[Matcher] = []
        self._rules: Matcher | None = None  # of all rules
        self._ended: Counter[str] = Counter()  # what the matchers counted that are gone

    def deploy(self, program: Program) -> list[Deployed]:
        """Let the queries of a program see the events from now on; changes nothing if they cannot."""
        for query in program.queries:
            if isinstance(query, SituationQuery):
                self._check_feeders(query)
        chosen = plan(optimize(program))
        rules = [at for at, query in enumerate(program.queries) if isinstance(query, Rule)]
        others = [at for at, query in enumerate(program.queries) if not isinstance(query, Rule)]
        apart = Matcher(chosen, others)
        added = [Deployed(program.queries[at], apart, None, chosen.columns) for at in others]
        if rules:
            together, numbers = self._extended(chosen, rules)
            added += [
                Deployed(program.queries[at], together, number, chosen.columns)
                for at, number in zip(rules, numbers, strict=True)
            ]
        self._note([*self.present, *added])
        return added

    def remove(self, gone: Collection[Deployed]) -> None:
        """Let these queries see nothing more. A matcher goes with the last of its queries."""
        self._check_followers(gone)
        before, leaving = self._matchers, set(gone)
        self._note([deployed for deployed in self.present if deployed not in leaving])
        for matcher in before:
            if matcher not in self._matchers:
                self._ended.update(matcher.counters)
                self._rules = None if matcher is self._rules else self._rules
                continue
            own = [deployed for deployed in gone if deployed.matcher is matcher]
            if matcher is self._rules:
                _rules_of(matcher).reduce([deployed.number for deployed in own if deployed.number is not None])
            elif own:
                matcher.remove({deployed.query.name for deployed in own})

    def push(self, batch: EventBatch) -> list[MatchBatch]:
        """The matches that are certain with a batch."""
        return [found for matcher in self._matchers for found in matcher.push(batch)]

    def advance(self, time: int) -> list[MatchBatch]:
        """The matches that are certain when no event that ends before this time will come."""
        return [found for matcher in self._matchers for found in matcher.advance(time)]

    def finish(self) -> list[MatchBatch]:
        """The matches that the end of the stream decides."""
        return [found for matcher in self._matchers for found in matcher.finish()]

    @property
    def counters(self) -> dict[str, int]:
        """What all matchers counted, those that are gone included."""
        totals = Counter(self._ended)
        for matcher in self._matchers:
            totals.update(matcher.counters)
        return dict(totals)

    def _note(self, present: list[Deployed]) -> None:
        self.present = present
        self._matchers = list(dict.fromkeys(deployed.matcher for deployed in present))
        self.columns = frozenset().union(*{deployed.columns for deployed in present})

    def _extended(self, chosen: Plan, rules: list[int]) -> tuple[Matcher, Iterable[int]]:
        """The matcher of all rules, with more of them, and the numbers of these."""
        fresh = Matcher(chosen, rules)
        if self._rules is None:
            self._rules = fresh
            return fresh, range(len(rules))
        queries = [chosen.queries[at] for at in rules]
        return self._rules, _rules_of(self._rules).extend([query for query in queries if isinstance(query, Rule)])

    # -- what cannot be ---------------------------------------------------------------------------

    def _check_feeders(self, query: SituationQuery) -> None:
        """A situation receives the events of situations that were deployed with it, and of no others."""
        feeder = next((name for name in _situations(self.present) if name in query.situation.types), None)
        if feeder is not None:
            raise UsageError(
                f"the pattern {query.name!r} looks at {feeder!r}, which is deployed already: patterns that feed "
                f"each other are deployed together (remove {feeder!r}, then deploy both)"
            )

    def _check_followers(self, gone: Collection[Deployed]) -> None:
        """What stays must not look at what goes."""
        for deployed in self.present:
            query = deployed.query
            if deployed in gone or not isinstance(query, SituationQuery):
                continue
            beside = _situations(other for other in gone if other.matcher is deployed.matcher)
            feeder = next((name for name in beside if name in query.situation.types), None)
            if feeder is not None:
                raise UsageError(
                    f"the pattern {query.name!r} looks at {feeder!r}: remove {query.name!r} first, or both at once"
                )


def _situations(deployed: Iterable[Deployed]) -> Iterator[str]:
    """The names of the situations among them."""
    return (one.query.name for one in deployed if isinstance(one.query, SituationQuery))


def _rules_of(matcher: Matcher) -> RuleRun:
    return next(run for run in matcher.runs if isinstance(run, RuleRun))
