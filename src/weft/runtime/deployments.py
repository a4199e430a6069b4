"""Queries that come and go over one stream of events, each with the state of its own time.

A deployment runs beside the others and sees the events from then on: what is there keeps its state and its answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from weft.algebra.query import AnyQuery, Program
from weft.algebra.situations import SituationQuery
from weft.errors import UsageError
from weft.optimizer.pipeline import optimize
from weft.plan.planner import plan
from weft.runtime.events import EventBatch
from weft.runtime.matcher import Matcher
from weft.runtime.matches import MatchBatch


@dataclass(eq=False)
class Deployed:
    """One query at work, and the matcher that works on it."""

    query: AnyQuery
    matcher: Matcher


class Deployments:
    """All queries that are deployed now, in the order in which they came."""

    def __init__(self) -> None:
        self.present: list[Deployed] = []
        self.columns: frozenset[str] = frozenset()  # the attributes that some query reads
        self._matchers: list[Matcher] = []
        self._ended: Counter[str] = Counter()  # what the matchers counted that are gone

    def deploy(self, program: Program) -> list[Deployed]:
        """Let the queries of a program see the events from now on; changes nothing if they cannot."""
        for query in program.queries:
            if isinstance(query, SituationQuery):
                self._check_feeders(query)
        matcher = Matcher(plan(optimize(program)))
        added = [Deployed(query, matcher) for query in program.queries]
        self._note([*self.present, *added])
        return added

    def remove(self, gone: Collection[Deployed]) -> None:
        """Let these queries see nothing more. A matcher goes with the last of its queries."""
        for deployed in gone:
            if isinstance(deployed.query, SituationQuery):
                self._check_followers(deployed, gone)
        before = self._matchers
        self._note([deployed for deployed in self.present if deployed not in gone])
        for matcher in before:
            if matcher not in self._matchers:
                self._ended.update(matcher.counters)
            else:
                matcher.remove({deployed.query.name for deployed in gone if deployed.matcher is matcher})

    def _note(self, present: list[Deployed]) -> None:
        self.present = present
        self._matchers = list(dict.fromkeys(deployed.matcher for deployed in present))
        self.columns = frozenset().union(*(matcher.plan.columns for matcher in self._matchers))

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

    def _check_feeders(self, query: SituationQuery) -> None:
        """A situation receives the events of situations that were deployed with it, and of no others."""
        feeder = next((running for running in self._situations() if running.name in query.situation.types), None)
        if feeder is not None:
            raise UsageError(
                f"the pattern {query.name!r} looks at {feeder.name!r}, which is deployed already: patterns that feed "
                f"each other are deployed together (remove {feeder.name!r}, then deploy both)"
            )

    def _check_followers(self, gone: Deployed, all_gone: Collection[Deployed]) -> None:
        follower = next(
            (
                deployed.query.name
                for deployed in self.present
                if deployed.matcher is gone.matcher
                and deployed not in all_gone
                and isinstance(deployed.query, SituationQuery)
                and gone.query.name in deployed.query.situation.types
            ),
            None,
        )
        if follower is not None:
            raise UsageError(
                f"the pattern {follower!r} looks at {gone.query.name!r}: remove {follower!r} first, or both at once"
            )

    def _situations(self) -> Iterator[SituationQuery]:
        queries: Iterable[AnyQuery] = (deployed.query for deployed in self.present)
        return (query for query in queries if isinstance(query, SituationQuery))
