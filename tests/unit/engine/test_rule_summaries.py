"""Summaries of rules from time series: many keys, more events than fit at first, rules that come later."""

from __future__ import annotations

import random

import numpy as np
import pytest

import weft
from weft.algebra.query import Program
from weft.algebra.rules import Rule
from weft.kernels.rules import tables as t
from weft.runtime.operators.rules.operator import RuleOperator
from weft.runtime.operators.rules.summaries import SeriesTable
from weft.runtime.reading.order import read_events

RULE = """define Fire(n: int, held: int, total: double, mean: double, least: double, most: double)
from Smoke(area=$a, kind=$k) and Count(Temp(area=$a and value < 90) within {0} from Smoke) >= 2
where n = Count(Temp(area=$a) within {0} from Smoke),
  held = Count(Temp(area=$a and kind=$k).value within {0} from Smoke),
  total = Sum(Temp(area=$a).value within {0} from Smoke),
  mean = Avg(Temp(area=$a and kind=$k).value within {0} from Smoke),
  least = Min(Temp(area=$a).value within {0} from Smoke),
  most = Max(Temp(area=$a and value < 90).value within {0} from Smoke)
"""


def readings(count: int, areas: int) -> list[dict[str, object]]:
    """Temperatures, some of them missing or no numbers, and a smoke now and then."""
    dice = random.Random(7)
    events: list[dict[str, object]] = []
    for time in range(count):
        kind = "Smoke" if time % 9 == 8 else "Temp"
        area = dice.randrange(areas)
        value = dice.choice([dice.randint(-100, 100), dice.random(), 2**60 + time, "hot", None])
        key = float(area) if dice.random() < 0.5 else area
        events.append({"type": kind, "ts": time, "area": key, "kind": dice.choice(["x", "y"]), "value": value})
    return events


def compiled(window: int) -> Program:
    return weft.compile(RULE.format(window), language="tesla")


@pytest.mark.parametrize(("areas", "window"), [(1, 30), (60, 400), (7, 100)])
def test_summaries_are_those_of_the_definition(areas: int, window: int) -> None:
    events = readings(360, areas)
    found, meant = (list(weft.detect(events, compiled(window), engine=engine)) for engine in ("local", "meaning"))
    assert found
    assert found == meant


def test_what_is_out_of_reach_is_given_up() -> None:
    run = RuleOperator([rule for rule in compiled(50).queries if isinstance(rule, Rule)])
    firings = sum(
        len(found) for batch in read_events(readings(20_000, 500), batch_size=500) for found in run.push(batch)
    )
    lanes = run._summaries.lanes
    assert firings > 0
    assert lanes.counts[t.USED_LANES] < 5_000
    assert len(lanes.times) < 20_000


def test_a_series_is_there_once() -> None:
    table = SeriesTable()
    made: list[int] = []

    def tests() -> tuple[int, int]:
        made.append(1)
        return 0, 0

    numbers = [
        table.add(0, (1,), 2, 0, (), tests),
        table.add(1, (), -1, 0, (), tests),
        table.add(0, (1,), 2, 0, (), tests),
    ]
    types = np.zeros(2 * t.KIND_OF_EVENT, np.int64)
    lines, columns, order = table.lay(types)
    assert (numbers, len(made)) == ([0, 1, 0], 2)
    assert (len(lines) // t.SERIES, columns.tolist(), order.tolist()) == (2, [1], [0, 1])
    assert types.reshape(2, -1)[:, [t.SERIES_AT, t.SERIES_END]].tolist() == [[0, 1], [1, 2]]
