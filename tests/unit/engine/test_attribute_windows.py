"""Windows along an attribute, with values that floats and 64 bits do not hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import weft
from weft.algebra.query import Window
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.operators.automaton.windows import WindowKeys

QUERY = "SELECT * FROM S WHERE A ; B WITHIN 50 [x]"
LARGE = 1700000000000000001
STREAMS = {
    "first zero": ([("A", 0), ("A", LARGE), ("B", LARGE + 100)], []),
    "least integer first": ([("A", -(2**63)), ("A", 5), ("B", 10)], [(1, 2)]),
    "at the bound": ([("A", 0), ("A", LARGE), ("B", LARGE + 50)], [(1, 2)]),
    "beyond 64 bits": ([("A", 2**70), ("B", 2**70 + 50), ("B", 2**70 + 51)], [(0, 1)]),
    "a float first": ([("A", 0.5), ("A", LARGE), ("B", LARGE + 51)], []),
    "a float between": ([("A", LARGE), ("B", float(LARGE + 63)), ("A", 2**60 * 3), ("B", 2**60 * 3 + 1)], [(2, 3)]),
    "greatest integer": (
        [("A", 2**63 - 51), ("A", 2**63 - 50), ("B", 2**63 - 1), ("B", 2**63)],
        [(0, 2), (1, 2), (1, 3)],
    ),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("engine", ["local", "meaning"])
def test_windows_are_exact_for_integers_of_any_size(name: str, engine: str) -> None:
    events, expected = STREAMS[name]
    rows = [{"type": kind, "ts": place, "x": x} for place, (kind, x) in enumerate(events)]
    assert [match.positions for match in weft.detect(rows, QUERY, engine=engine)] == expected


def test_keys_go_on_from_a_snapshot_with_other_kinds_of_numbers() -> None:
    window = Window("attribute", 50, "x")
    values = [pa.array([0, 2**62]), pa.array([2**62 + 50, 2**63 - 1]), pa.array([1e19])]
    whole, restarted = WindowKeys(window), WindowKeys(window)
    for position, numbers in enumerate(values):
        places = np.arange(len(numbers)) + 2 * position
        batch = EventBatch(pa.nulls(len(places)), places, places, places, {"x": Column(numbers=numbers)})
        expected, found = (keys.keys(batch, np.ones(len(places), bool)) for keys in (whole, restarted))
        assert [part.tolist() for part in expected if part is not None] == [
            part.tolist() for part in found if part is not None
        ]
        restarted = WindowKeys(window)
        restarted.restore(whole.snapshot())
