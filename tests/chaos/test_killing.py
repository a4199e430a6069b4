"""The plan of kills is even, and a sign is a file that was not there: what `make chaos-spark` stands on."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from tests.chaos.killing import MASTERS, PLACES, VICTIMS, Sign, await_sign, kills, table

CELLS = set(product(VICTIMS, PLACES))


@pytest.mark.parametrize("seed", range(6))
def test_victims_and_places_take_turns(seed: int) -> None:
    planned = kills(seed, 40)
    assert planned == kills(seed, 40)
    for first in (0, 16):
        assert {(kill.victim, kill.place) for kill in planned[first : first + 16]} == CELLS
    where = Counter((kill.victim, kill.place, kill.master) for kill in planned[:32])
    assert where == Counter(
        {(*cell, master): 1 for cell in CELLS for master in MASTERS if cell[0] != "executor"}
        | {(*cell, "cluster"): 2 for cell in CELLS if cell[0] == "executor"}
    )


def test_the_table_has_what_was_done_and_what_was_not_reached() -> None:
    planned = kills(1, 32)
    lines = [line.split() for line in table(planned, planned[16:]).splitlines()]
    assert lines[0][2:] == list(PLACES)
    assert lines[1:] == [[victim, *["1/1"] * 4] for victim in VICTIMS]


@pytest.mark.skipif(sys.platform != "linux", reason="folders must say at once that they have changed")
@pytest.mark.parametrize("place", PLACES)
def test_a_sign_is_a_file_that_was_not_there(tmp_path: Path, place: str) -> None:
    folder = tmp_path / PLACES[place] / "0"
    before = Sign(tmp_path, place)
    assert not before.has_come()
    folder.mkdir(parents=True)
    assert not before.has_come()
    (folder / "matches-1").write_text("")
    assert before.has_come()
    again = Sign(tmp_path, place)
    (folder / "another").write_text("")
    assert again.has_come() == (place != "sink")  # what a run notes in its sink when it begins is no sign
    replaced = Sign(tmp_path, place)
    (folder / "new").write_text("")
    (folder / "new").replace(folder / "matches-1")
    assert await_sign(replaced, 0.0, lambda: False)


def test_a_sign_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    assert not await_sign(Sign(tmp_path, "commit"), 0.0, lambda: False)
