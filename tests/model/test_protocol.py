"""The protocols of runs and of servers, explored: every match is told exactly once, and seeded mistakes are found.

All worlds are visited. `python -m tests.model.test_protocol` explores with more files and deaths than `make test` does.
"""

from __future__ import annotations

import pytest
from tests.model import journal, protocol
from tests.model.journal import Design
from tests.model.protocol import Protocol

MISTAKES = ("commit_before_sink", "unfenced", "new_offsets", "lanes_forget", "own_base", "clean_base", "stopped_needed")
OF_SERVERS = ("match_first", "answer_first", "no_numbers", "numbers_unsaved", "early_removal")


def test_every_match_reaches_the_sink_exactly_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "FILES", 2)
    count, way = protocol.explore(Protocol())
    assert way == [], f"{protocol.problem_of(way[-1])} after {len(way)} steps: {way[-1]}"
    assert count > 10_000


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_seeded_mistake_of_a_run_is_found(mistake: str) -> None:
    _, way = protocol.explore(Protocol(**{mistake: True}))
    assert way
    assert protocol.problem_of(way[-1]) is not None


def test_a_server_takes_nothing_back_and_matches_nothing_twice() -> None:
    count, way = journal.explore(Design())
    assert way == [], f"{journal.problem_of(way[-1])}: {way[-1]}"
    assert count > 1_000


@pytest.mark.parametrize("mistake", OF_SERVERS)
def test_a_seeded_mistake_of_a_server_is_found(mistake: str) -> None:
    _, way = journal.explore(Design(**{mistake: True}))
    assert way
    assert journal.problem_of(way[-1]) is not None


if __name__ == "__main__":
    protocol.DEATHS, journal.DEATHS, journal.PUBLICATIONS = 3, 5, 6
    runs, broken = protocol.explore(Protocol())
    servers, wrong = journal.explore(Design())
    print(f"{runs:,} worlds of runs, {servers:,} of servers")
    for step in [*broken, *wrong]:
        print(step)
    raise SystemExit(1 if broken or wrong else 0)
