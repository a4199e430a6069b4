"""Programs that run in the workbench's own process, over events that are replayed at a rate or pushed by hand."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.algebra.prefixes import funnels_of, with_steps
from weft.algebra.query import Program
from weft.errors import UsageError, WeftError
from weft.live_programs.program import LiveProgram
from weft.running.activity import Activity
from weft.running.registry import check_name
from weft.runtime.data.events import Rejected
from weft.runtime.limits.budgets import Budget
from weft.runtime.limits.guarding import Limits
from weft.runtime.options import EventColumns, Options
from weft.runtime.watching.triggers import OperatorStats, Standing, Trigger
from weft.workbench.following import KEPT, FoundMatch, found_match

BEAT = 0.25  # seconds between two triggers
LOG_LINES = 500
SIZED_EVERY = 1.0  # seconds between two measurements of state, each of which looks at all of it
MOST_RUNS = 200
# What a program that runs here may take, so that the workbench goes on to answer.
LIMITS = Limits([Budget(matches_per_batch=200_000), Budget(seconds_per_batch=30.0), Budget(state_bytes=1 << 30)])


class Steps:
    """How far the partial matches of a program come: its queries up to each step run beside it, and are counted."""

    def __init__(self, program: Program, names: tuple[str, str]) -> None:
        self._counts: Counter[str] = Counter()
        widened, self._steps = with_steps(program)
        self._live = LiveProgram(Options(EventColumns(*names), limits=LIMITS), [])
        parts = widened.queries[len(program.queries) :]
        if parts:
            self._live.deploy(replace(program, queries=parts, inputs=(), outputs=()))

    def push(self, events: Sequence[Mapping[str, Any]], found: Mapping[str, int]) -> None:
        """Count what events do, and the matches that they made certain."""
        self._counts.update(found)
        if self._live.program.queries:
            self._counts.update(match.query for match in self._live.push(list(events)))

    @property
    def funnels(self) -> dict[str, list[tuple[str, int]]]:
        """By query: its steps with their counts, and its matches."""
        return funnels_of(self._steps, self._counts)


class InProcess:
    """One program: its events, and what it found."""

    def __init__(
        self, name: str, program: Program, events: Sequence[Mapping[str, Any]], rate: float, names: tuple[str, str]
    ) -> None:
        self.name = name
        self.activity = Activity()
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.matches: deque[FoundMatch] = deque(maxlen=KEPT)
        self.problem: str | None = None
        self.ended: float | None = None
        self._rejects: list[Rejected] = []
        self._program = LiveProgram(Options(EventColumns(*names), limits=LIMITS), self._rejects)
        self._queries = program.names
        self._program.deploy(program)
        self._steps = Steps(program, names)
        self.program, self.events, self.rate, self.names = program, events, rate, names
        self._stop = threading.Event()
        self._pushing = threading.Lock()
        self._triggers = self._replayed = 0
        self._began = time.monotonic()
        self._operators: dict[str, OperatorStats] = {}  # as they stood after the last trigger
        self._finished = False  # whether all events are replayed
        self._sized: tuple[float, int] = (0.0, 0)  # when state was measured last, and how large it was
        self._thread = threading.Thread(target=self._replay, name=f"weft-{name}", daemon=True)

    def start(self) -> None:
        """Begin to replay."""
        self._thread.start()

    @property
    def state(self) -> str:
        """`running`, `finished` (all events are replayed; more may be pushed), `ended` or `failed`."""
        if self.problem:
            return "failed"
        if self.ended is not None:
            return "ended"
        return "finished" if self._finished else "running"

    def _replay(self) -> None:
        self._began = time.monotonic() - BEAT
        try:
            while not self._stop.is_set() and self._replayed < len(self.events):
                events = self.events[self._replayed : self._due]
                if events:
                    self._replayed += len(events)
                    self.push(events)
                self._stop.wait(BEAT)
            self._finished = bool(self.events)
            self._stop.wait()  # what is there stays to be looked at, and more may be pushed
        except WeftError as problem:
            self.problem = str(problem)
            self.log.append(str(problem))

    @property
    def replayed(self) -> int:
        """How many of its events have been replayed."""
        return self._replayed

    @property
    def _due(self) -> int:
        """How many events should have been replayed by now."""
        return min(len(self.events), int((time.monotonic() - self._began) * self.rate) + 1)

    def push(self, events: Sequence[Mapping[str, Any]]) -> int:
        """Give it events; the number of matches that they made certain."""
        if self.ended is not None:
            raise UsageError(f"{self.name} has ended")
        with self._pushing:
            started = time.perf_counter()
            found = Counter(dict.fromkeys(self._queries, 0))
            matches = list(self._program.push(list(events)))
            found.update(match.query for match in matches)
            self._steps.push(events, found)
            late = sum(rejected.reason.startswith("late") for rejected in self._rejects)
            taken = len(events) - len(self._rejects)
            trigger = Trigger(
                number=self._triggers,
                at=time.time(),
                seconds=time.perf_counter() - started,
                events=taken,
                late=late,
                unreadable=len(self._rejects) - late,
                matches=dict(found),
                lanes=(self._standing(),),
            )
            self._rejects.clear()
            self._triggers += 1
            self.activity.add(trigger)
            self.log.append(str(trigger))
            self.matches.extend(found_match(trigger.at, match.to_json()) for match in matches[-KEPT:])
            return len(matches)

    def _standing(self) -> Standing:
        """How it stands: `held` are events that should have been replayed by now, and `lag` the time that they span."""
        due, done = self._due, self._replayed
        now = time.monotonic()
        if now - self._sized[0] > SIZED_EVERY:
            self._sized = now, self._program.state_bytes
        operators = {operator.name: operator for operator in self._program.operators()}
        did = tuple(operator.since(self._operators.get(name)) for name, operator in operators.items())
        self._operators = operators
        lag = self._ticks(due - 1, done - 1) if due > done else 0
        held = max(0, due - done)
        return Standing(0, self._program.events, held, self._program.behind, self._sized[1], lag, did)

    def _ticks(self, later: int, earlier: int) -> int | None:
        """From one event to another, if their times are numbers."""
        end, start = (self.events[max(0, number)].get(self.names[0]) for number in (later, earlier))
        return max(0, end - start) if isinstance(end, int) and isinstance(start, int) else None

    def replace(self, program: Program) -> None:
        """Run another program on the events that come from now on."""
        with self._pushing:
            for name in self._queries:
                self._program.remove(name)
            self._program.deploy(program)
            self._queries = program.names
            self.program = program
            self._steps = Steps(program, self.names)
            self.log.append(f"changed: it runs {', '.join(program.names)} now")

    @property
    def funnels(self) -> dict[str, list[tuple[str, int]]]:
        """For each query how many partial matches reached each of its steps."""
        return self._steps.funnels

    def stop(self) -> None:
        """End it."""
        self._stop.set()
        self.ended = self.ended or time.time()


class InProcessRuns:
    """All programs that run here, by name."""

    def __init__(self) -> None:
        self._runs: dict[str, InProcess] = {}

    def start(
        self, name: str, program: Program, events: Sequence[Mapping[str, Any]], rate: float, names: tuple[str, str]
    ) -> InProcess:
        """Start one; one of that name that has ended gives way."""
        check_name(name)
        known = self._runs.get(name)
        if known is not None and known.state in ("running", "finished"):
            raise UsageError(f"{name} is running: stop it, or choose another name")
        if len(self._runs) >= MOST_RUNS and known is None:
            raise UsageError(f"{MOST_RUNS} programs are here already: stop and forget some")
        if not 0 < rate <= 1e6:
            raise UsageError("the rate is a number of events per second, above 0")
        run = InProcess(name, program, events, rate, names)
        self._runs[name] = run
        run.start()
        return run

    def all(self) -> list[InProcess]:
        """All of them, by name."""
        return [self._runs[name] for name in sorted(self._runs)]

    def get(self, name: str) -> InProcess | None:
        """One, if it is here."""
        return self._runs.get(name)

    def stop_all(self) -> None:
        """End all of them."""
        for run in self._runs.values():
            run.stop()
