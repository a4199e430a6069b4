"""The matcher: batches of events in, matches out. The same on every engine."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from weft.errors import UsageError
from weft.plan.operators import AutomatonOp, GraphOp, Plan, RuleOp, SituationOp
from weft.runtime.automaton.regular import RegularRun
from weft.runtime.events import EventBatch
from weft.runtime.joins.run import GraphRun
from weft.runtime.matches import MatchBatch
from weft.runtime.rules.run import RuleRun
from weft.runtime.running import Run, pages_below, pages_under
from weft.runtime.situations.run import NetworkRun
from weft.runtime.state.pages import FORMAT, PageStore

_KINDS: dict[str, tuple[type, Callable[[Sequence[Any]], Run]]] = {
    "regular": (AutomatonOp, RegularRun),
    "graph": (GraphOp, GraphRun),
    "network": (SituationOp, NetworkRun),
    "rules": (RuleOp, RuleRun),
}


class Matcher:
    """All queries of a plan (or some of them) over one stream of events."""

    def __init__(self, plan: Plan, queries: Sequence[int] | None = None) -> None:
        self.plan = plan
        operators = [plan.queries[number] for number in (range(len(plan.queries)) if queries is None else queries)]
        self.runs: dict[str, Run] = {}
        for name, (kind, run) in _KINDS.items():
            own = [operator.query for operator in operators if isinstance(operator, kind)]
            if own:
                self.runs[name] = run(own)
        self._removed: frozenset[str] = frozenset()
        self._events = 0
        self._store = PageStore()

    def remove(self, names: Collection[str]) -> None:
        """Report nothing more of these queries, and do no more for them than they have in common with others."""
        self._removed |= frozenset(names)
        for run in self.runs.values():
            if isinstance(run, RegularRun):
                run.remove(self._removed)

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Process a batch of events while the matches that it makes certain are taken: query by query, by end.

        Matches come in pieces, so that there may be more than fit into memory. All must be taken before
        the next batch is pushed.
        """
        self._events += len(batch)
        for run in self.runs.values():
            yield from self._wanted(run.push(batch))
            run.sweep()

    def count(self, batch: EventBatch) -> dict[str, int]:
        """How many matches of each query a batch makes certain."""
        self._events += len(batch)
        totals: Counter[str] = Counter()
        for run in self.runs.values():
            totals.update(run.count(batch))
            run.sweep()
        return dict(totals)

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """No event that ends before this time will come: the matches that waited to know."""
        for run in self.runs.values():
            yield from self._wanted(run.advance(time))
            run.sweep()

    def finish(self) -> list[MatchBatch]:
        """The stream has ended: what waited for time to pass."""
        return [found for run in self.runs.values() for found in self._wanted(run.finish())]

    def _wanted(self, found: Iterator[MatchBatch]) -> Iterator[MatchBatch]:
        return found if not self._removed else (piece for piece in found if piece.query not in self._removed)

    @property
    def looks_back(self) -> bool:
        """Whether it matters how long events are: they may open partitions that ended before they came."""
        return any(isinstance(run, NetworkRun) and run.looks_back for run in self.runs.values())

    def expect(self, longest: int) -> None:
        """The input is finite, and no event in it is longer than so many ticks."""
        for run in self.runs.values():
            if isinstance(run, NetworkRun):
                run.expect(longest)

    @property
    def counters(self) -> dict[str, int]:
        """The events seen, and what the runs count."""
        totals = Counter({"events": self._events})
        for run in self.runs.values():
            totals.update(run.counters)
        return dict(totals)

    @property
    def safe(self) -> int | None:
        """Matches that come later end at this time or after it; None: not before the last event."""
        known = [run.safe for run in self.runs.values()]
        return min((time for time in known if time is not None), default=None)

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot; None: the page is gone."""
        own = {"format": self._fingerprint(), "events": json.dumps(self._events).encode()}
        pages = self._store.changes(own.items(), ())
        for name, run in self.runs.items():
            pages.update(pages_under(f"{name}/", run.snapshot()))
        return pages

    @classmethod
    def restore(cls, plan: Plan, pages: Mapping[str, bytes], queries: Sequence[int] | None = None) -> Matcher:
        """A matcher that goes on where the one stood whose pages these are."""
        matcher = cls(plan, queries)
        if pages.get("format") != matcher._fingerprint():
            raise UsageError("the saved state belongs to another program or version: start with a new checkpoint")
        for name, run in matcher.runs.items():
            run.load(pages_below(f"{name}/", pages))
        matcher._events = json.loads(pages["events"])
        matcher._store.load({name: pages[name] for name in ("format", "events")})
        return matcher

    def _fingerprint(self) -> bytes:
        text = repr((FORMAT, [(name, run.queries) for name, run in self.runs.items()]))
        return hashlib.blake2b(text.encode(), digest_size=16).digest()
