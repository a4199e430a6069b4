"""What a running program has done so far: totals, the last hour trigger by trigger, and queries that fell silent."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from weft.runtime.watching.left_out import WAYS
from weft.runtime.watching.tallies import Tallies
from weft.runtime.watching.triggers import Trigger

HOUR = 3600.0


@dataclass
class QueryActivity:
    """Matches of a query; the time of the last, and the longest pause between two (seconds)."""

    matches: int = 0
    last: float | None = None
    longest: float = 0.0

    def silent_for(self, now: float) -> float | None:
        """Return how long nothing has been found, if that is longer than ever before."""
        if self.last is None or self.matches < 2:
            return None
        silence = now - self.last
        return silence if silence > self.longest > 0 else None


@dataclass
class Activity:
    """Activity of one run. Triggers may be added and read by different threads."""

    started: float = field(default_factory=time.time)
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.totals: Counter[str] = Counter(events=0, matches=0, late=0, unreadable=0, triggers=0)
        self.totals.update(dict.fromkeys(WAYS, 0))
        self.left_out: Counter[str] = Counter()  # within limits, by query and step
        self.seconds = 0.0
        self.queries: dict[str, QueryActivity] = {}
        self.history: deque[Trigger] = deque()
        self.steps: Counter[str] = Counter()  # by query and step: partial matches that reached it
        self.operators: dict[str, Counter[str]] = {}  # by name: what they received and emitted in all lanes
        self.tallies = Tallies()
        self._lock = threading.Lock()

    def add(self, trigger: Trigger) -> None:
        """Add a trigger."""
        with self._lock:
            found = sum(trigger.matches.values())
            self.totals.update(
                events=trigger.events, matches=found, late=trigger.late, unreadable=trigger.unreadable, triggers=1
            )
            self.totals.update({name: trigger.left_out.get(name, 0) for name in WAYS})
            self.left_out.update({name: count for name, count in trigger.left_out.items() if name not in WAYS})
            self.seconds += trigger.seconds
            self.steps.update(trigger.steps)
            for name, count in trigger.matches.items():
                self._found(self.queries.setdefault(name, QueryActivity()), count, trigger.at)
            for operator in (operator for lane in trigger.lanes for operator in lane.operators):
                counts = self.operators.setdefault(operator.name, Counter())
                counts.update(received=operator.received, emitted=operator.emitted)
            self.tallies.add(lane.counted for lane in trigger.lanes if lane.counted is not None)
            self.history.append(trigger)
            while self.history[0].at < trigger.at - HOUR:
                self.history.popleft()

    def _found(self, query: QueryActivity, count: int, at: float) -> None:
        if count:
            if query.last is not None:
                query.longest = max(query.longest, at - query.last)
            query.matches += count
            query.last = at

    def summary(self) -> dict[str, object]:
        """Return everything but the history, as plain data."""
        with self._lock:
            now = self.clock()
            last = self.history[-1] if self.history else None
            recent = [trigger for trigger in self.history if trigger.at > now - 60]
            queries = {
                name: {"matches": one.matches, "last": one.last, "silent_for": one.silent_for(now)}
                for name, one in self.queries.items()
            }
            return {
                "started": self.started,
                "uptime": now - self.started,
                **self.totals,
                "busy": self.seconds,
                "rate": sum(trigger.events for trigger in recent) / min(60.0, max(now - self.started, 1.0)),
                "queries": queries,
                "steps": dict(self.steps),
                "left_out": dict(self.left_out),
                "operators": self._operators(last),
                "statistics": self.tallies.statistics().to_json(),
                "last_trigger": None if last is None else last.to_json(),
            }

    def _operators(self, last: Trigger | None) -> list[dict[str, object]]:
        """Return the totals of operators, and their pending state."""
        lanes = () if last is None else last.lanes
        waiting: Counter[str] = Counter()
        for operator in (operator for lane in lanes for operator in lane.operators):
            waiting[operator.name] += operator.waiting
        return [
            {"name": name, "received": counts["received"], "emitted": counts["emitted"], "waiting": waiting[name]}
            for name, counts in self.operators.items()
        ]
