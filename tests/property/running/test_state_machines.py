"""A live program through any history: events, late ones, queries that come and go, states kept and gone back to.

After each step the stream could end there: a copy of the program does, and all that was found is what is meant. One
machine for each language, and one for programs of several.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.harness import some
from tests.property.running.test_live_equals_meaning import Life, again, keys, meant
from tests.strategies_mixed import INPUTS, MAKERS, Mixed, Text, mixed_texts, numbers

import weft
from weft.runtime.data.events import Rejected
from weft.schema import Catalog

EventDict = dict[str, object]
MOST = 14  # events of a history: the definition tries all ways
AT_ONCE = 2  # programs


@dataclass(frozen=True)
class Kept:
    """A state that was saved, and what there was at that time."""

    state: bytes
    events: int
    found: tuple[weft.Match, ...]


drafts = st.tuples(  # how far from now it ends, how long it is, its type and its attributes
    st.sampled_from([0, 0, 1, 1, 2, 5, -1, -4]),
    st.sampled_from([0, 0, 0, 1, 3]),
    st.sampled_from(sorted(INPUTS)),
    numbers,
    st.sampled_from([1, 2, 1, 2, None]),
)


def place_of(one: EventDict) -> tuple[int, int]:
    """By what events are ordered: their end, then their start."""
    return int(str(one.get("ts", one.get("end")))), int(str(one.get("ts", one.get("start"))))


class History(RuleBasedStateMachine):
    """A live program, and beside it the events that it has taken and the queries that lived, when."""

    texts: st.SearchStrategy[tuple[Text, ...]]

    def __init__(self) -> None:
        super().__init__()
        self.rejects: list[Rejected] = []
        self.running = weft.live(rejects=self.rejects)
        self.taken: list[EventDict] = []
        self.since: tuple[int, int] | None = None
        self.found: list[weft.Match] = []
        self.lives: list[Life] = []
        self.late = 0
        self.programs = 0
        self.keep()

    @property
    def present(self) -> list[Life]:
        return [life for life in self.lives if life.until is None]

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.deploy(data)

    @precondition(lambda self: len(self.present) < AT_ONCE)
    @rule(data=st.data())
    def deploy(self, data: st.DataObject) -> None:
        number, texts = self.programs, data.draw(self.texts)
        self.programs += 1
        own = (replace(t, name=f"L{number}{t.name}", text=re.sub(r"\bQ\d", rf"L{number}\g<0>", t.text)) for t in texts)
        program = replace(Mixed(tuple(own)).program, catalog=Catalog(), inputs=())
        self.running.deploy(program)
        self.lives.append(Life(program, len(self.taken), None))
        self.keep()

    @precondition(lambda self: self.present)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.present))
        self.running.remove(*dict.fromkeys(gone.program.names))
        self.lives[self.lives.index(gone)] = replace(gone, until=len(self.taken))
        self.keep()

    @precondition(lambda self: self.present and len(self.taken) < MOST)
    @rule(drawn=st.lists(drafts, min_size=1, max_size=4))
    def push(self, drawn: list[tuple[int, int, str, object, object]]) -> None:
        now = self.since[0] if self.since is not None else 0
        events: list[EventDict] = []
        for ahead, length, type_, x, k in drawn:
            end = now + ahead
            when = {"ts": end} if length == 0 else {"start": end - length, "end": end}
            given = {name: value for name, value in (("x", x), ("k", k)) if value is not None}
            events.append({"type": type_, **when, **given})
        in_time = [one for one in events if self.since is None or place_of(one) >= self.since]
        self.late += len(events) - len(in_time)
        self.found += self.running.push(events)
        self.taken += sorted(in_time, key=place_of)
        if in_time:
            self.since = place_of(self.taken[-1])

    @precondition(lambda self: self.since is not None)
    @rule(by=st.integers(0, 6))
    def advance(self, by: int) -> None:
        assert self.since is not None
        time = self.since[0] + by
        self.found += self.running.advance(time)
        if by:
            self.since = (time, -(2**63))

    @rule()
    def restart(self) -> None:
        self.keep()
        self.running = self.loaded(self.kept.state)

    @precondition(lambda self: self.kept.events < len(self.taken))
    @rule(at_once=st.integers(1, 3))
    def go_back(self, at_once: int) -> None:
        """As after a failure: an earlier state, and the events since then once more, in other pieces."""
        self.running = self.loaded(self.kept.state)
        self.found = list(self.kept.found)
        for begin in range(self.kept.events, len(self.taken), at_once):
            self.found += self.running.push(self.taken[begin : begin + at_once])
        assert self.since is not None
        self.found += self.running.advance(self.since[0])

    def keep(self) -> None:
        with TemporaryDirectory() as folder:
            place = Path(folder) / "saved"
            self.running.save(place)
            self.kept = Kept(place.read_bytes(), len(self.taken), tuple(self.found))

    def loaded(self, state: bytes) -> weft.LiveProgram:
        with TemporaryDirectory() as folder:
            place = Path(folder) / "saved"
            place.write_bytes(state)
            return weft.LiveProgram.load(place, rejects=self.rejects)

    @invariant()
    def late_events_are_rejected_and_counted(self) -> None:
        assert len(self.rejects) == self.late
        assert self.running.events == len(self.taken)

    @invariant()
    def what_was_found_is_meant_if_the_stream_ends_here(self) -> None:
        found = [*self.found, *again(self.running, optimize=True).finish()]
        for life in self.lives:
            for name in life.program.names:
                own = keys(match for match in found if match.query == name)
                if life.until is None:
                    assert own == meant(life, self.taken[life.since :], name)
                else:  # what was not certain yet was not told when it went
                    assert set(own) <= set(meant(life, self.taken[life.since :], name))


MACHINES = {**{language: (language,) for language in MAKERS}, "mixed": tuple(MAKERS)}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MACHINES)
def test_histories(name: str) -> None:
    machine = type(f"{name.title()}History", (History,), {"texts": mixed_texts(MACHINES[name])})
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(machine, settings=some(10, stateful_step_count=10, suppress_health_check=quiet))
