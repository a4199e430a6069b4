"""Runs on Spark with an event in the far future: it waits, and makes no other late."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.pipeline import local
from tests.spark.test_run import QUERY, as_json, run_of, write, written

from weft import api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HOUR = 3_600_000
EVENTS: list[dict[str, object]] = [
    {"type": "ABC"[i * 5 % 7 % 3], "ts": 1_577_836_800_000 + 3 * i, "k": "uvw"[i % 3], "x": i * 3 % 8}
    for i in range(90)
]


def test_an_event_20_hours_ahead_makes_no_other_late(spark: SparkSession, tmp_path: Path) -> None:
    ahead = {"type": "A", "ts": 1_577_836_800_000 + 20 * HOUR, "k": "u", "x": 0}
    write(tmp_path / "in", 0, [ahead])
    write(tmp_path / "in", 1, EVENTS[:30])
    write(tmp_path / "in", 2, [ahead])
    write(tmp_path / "in", 3, EVENTS[30:])
    run = run_of(tmp_path, until="complete")
    run.start(spark)
    run.wait()
    assert run.counters["late"] == 0
    wanted = as_json(local(api.compile(QUERY), [*EVENTS, ahead, ahead]))
    assert sorted(written(tmp_path), key=repr) == wanted
    assert wanted
