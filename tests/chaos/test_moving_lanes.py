"""Runs that are started again with other lanes or another strategy, between triggers or in the middle of one.

What one lane finds without a fault is the expectation. WEFT_HISTORIES says how many are tried.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest
from tests.chaos.test_micro_batches import HISTORIES, PROGRAMS, chosen
from tests.property.running.test_generations import Changing
from tests.spark.pipeline import Event, PageDict, matches_in

import weft
from weft.algebra.query import Program
from weft.errors import UsageError
from weft.runtime.spark.lanes.state import HEAD

# What goes over to other lanes, and in which ways its work can be shared out.
WAYS = {
    "ceql": ("key", "rank", "slice"),
    "ceql of ceql": ("slice", "query"),
    "ceql events": ("slice", "rank", "key"),
    "eql": ("key", "slice", "replicate"),
    "step": ("slice", "query"),
    "tesla of tesla": ("slice",),
    "epn": ("key", "slice"),
    "epn deferred": ("slice",),
}
# What depends on all that came before: it stays in the lanes that it has.
STAYS = {"ceql session": ("key", "one"), "tesla": ("key", "one")}
OWN = {"ceql events": "SELECT * WHERE A AS a ; B AS b FILTER a[x] <= b[x] PARTITION BY [k] WITHIN 5 EVENTS"}
SHARE = max(2, HISTORIES // 500)


@dataclass
class History:
    """A run that is now and then started again, and what that did."""

    program: Program
    events: list[Event]
    ways: tuple[str, ...]
    chance: Random
    seen: Counter[str] = field(default_factory=Counter)

    def found(self) -> Counter[tuple[str, str]]:
        run, begin = Changing(), 0
        self._start(run)
        while begin < len(self.events):
            end = begin + self.chance.randint(1, 4)
            if run.stream is not None and self.chance.random() < 0.3:
                self._dies(run, self.events[begin:end])
            elif self.chance.random() < 0.3:
                self._start(run)
            assert run.stream is not None
            run.stream.trigger([self.events[begin:end]])
            begin = end
        assert run.stream is not None
        run.stream.end()
        self.seen["ended"] += any(json.loads(pages[HEAD])["gone"] for pages in run.stream.pages.values())
        return Counter((match.query, match.id) for match in matches_in(run.stream.table()))

    def _start(self, run: Changing) -> None:
        """Start it in some way, whatever it was before."""
        told = run.become(self.program, self.chance.choice((*self.ways, "auto")), self.chance.randint(1, 3))
        self.seen["moved"] += any(move.is_possible for move in told)
        self.seen["stayed"] += any(not move.is_possible for move in told)

    def _dies(self, run: Changing, part: list[Event]) -> None:
        """A trigger that is never completed: what it wrote counts for nothing; the next process begins before it."""
        stream = run.stream
        assert stream is not None
        pages = {lane: dict(own) for lane, own in stream.pages.items()}
        told = len(stream.output)
        stream.trigger([part])
        del stream.output[told:]
        stream.pages = {lane: PageDict(own) for lane, own in pages.items()}
        stream.forget()
        self._start(run)


def events_of(chance: Random) -> list[Event]:
    time, events = 0, []
    for _ in range(60):
        time += chance.choice((0, 1, 1, 2))
        events.append({"type": chance.choice("AABBC"), "ts": time, "k": chance.randrange(2), "x": chance.randrange(3)})
    return events


def histories(name: str, ways: tuple[str, ...]) -> Counter[str]:
    program = weft.compile(OWN[name], "ceql") if name in OWN else chosen(name).program
    seen: Counter[str] = Counter()
    for seed in range(SHARE):
        events = events_of(Random(seed))
        expected = Counter((match.query, match.id) for match in weft.detect(events, program))
        history = History(program, events, ways, Random(seed), seen)
        found = history.found()
        assert found == expected, (name, seed, sorted((expected - found).items()), sorted((found - expected).items()))
        seen["matches"] += expected.total()
    return seen


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", WAYS)
def test_nothing_is_lost_or_doubled_when_lanes_change(name: str) -> None:
    seen = histories(name, WAYS[name])
    assert min(seen[what] for what in ("moved", "ended", "matches")) > 0, seen


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", STAYS)
def test_what_cannot_go_over_stays_in_its_lanes(name: str) -> None:
    seen = histories(name, STAYS[name])
    assert not seen["moved"], seen
    assert min(seen["stayed"], seen["matches"]) > 0, seen


def test_a_strategy_that_is_none_for_a_query_is_refused_when_lanes_change() -> None:
    language, text = PROGRAMS["ceql last"]
    program = weft.compile(text, language)
    run = Changing()
    run.become(program)
    assert run.stream is not None
    run.stream.trigger([[{"type": "A", "ts": 1, "k": 1, "x": 1}]])
    with pytest.raises(UsageError, match="not possible"):
        run.become(program, "slice", 2)
