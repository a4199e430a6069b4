"""A server that is killed under load loses nothing that it accepted, and nobody who resumes gets a match twice."""

from __future__ import annotations

from pathlib import Path

from tests.serve_kills import killed_under_load


def test_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    outcome = killed_under_load(tmp_path, kills=4, seed=1)
    assert outcome.kills == 4
    assert (outcome.lost, outcome.twice, outcome.missed, outcome.late) == (0, 0, 0, 0)
    assert outcome.accepted == 2 * outcome.published > 0
    assert outcome.received == sorted(outcome.received)
