"""How much of what is read from a full queue is shed: as much as gains time."""

from __future__ import annotations

from weft.runtime.limits.looking import TRY_EVERY, Looking
from weft.runtime.limits.shedding import MOST


def shares(looking: Looking, times: int, looked: float, unlooked: float, **state: bool) -> list[float]:
    """What is shed, when an event takes so long with and without a look at it."""
    found = []
    for _ in range(times):
        found.append(looking.next_share(**{"is_losing": False, "is_calm": False, **state}))
        looking.took(found[-1], looked if found[-1] else unlooked)
    return found


def test_nothing_is_shed_while_nothing_is_lost() -> None:
    assert set(shares(Looking(), 20, 0.1, 1.0, is_calm=True)) == {0.0}


def test_it_looks_where_that_gains_time() -> None:
    looking = Looking()
    found = shares(looking, 20, 0.1, 1.0, is_losing=True)
    assert found[0] == 0.0  # to know how long it takes without
    assert found[-1] == MOST
    assert shares(looking, 40, 0.1, 1.0, is_calm=True)[-1] == 0.0


def test_it_does_not_look_where_that_takes_longer_than_it_saves() -> None:
    found = shares(Looking(), 3 * TRY_EVERY, 0.9, 1.0, is_losing=True)
    assert sum(share > 0 for share in found) == 4  # the first time, and one in so many
