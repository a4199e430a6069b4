"""The trigger protocol, explored: every match reaches the sink exactly once, and seeded mistakes are found.

All worlds are visited. `python -m tests.model.test_protocol` explores with more files and deaths than `make test` does.
"""

from __future__ import annotations

import pytest
from tests.model import protocol as model
from tests.model.protocol import Protocol, explore, problem_of


def test_every_match_reaches_the_sink_exactly_once() -> None:
    count, way = explore(Protocol())
    assert way == [], f"{problem_of(way[-1])} after {len(way)} steps: {way[-1]}"
    assert count > 10_000


@pytest.mark.parametrize("mistake", ["commit_before_sink", "unfenced", "new_offsets", "lanes_forget"])
def test_a_seeded_mistake_is_found(mistake: str) -> None:
    _, way = explore(Protocol(**{mistake: True}))
    assert way
    assert problem_of(way[-1]) is not None


if __name__ == "__main__":
    model.FILES, model.DEATHS = 4, 3
    visited, broken = explore(Protocol())
    print(f"{visited:,} worlds")
    for step in broken:
        print(step)
    raise SystemExit(1 if broken else 0)
