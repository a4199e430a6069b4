"""Runs whose sink is removed while they are at work: they stop with one sentence, and do not make it again."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.pipeline import local
from tests.spark.test_run import EVENTS, QUERY, as_json, run_of, write, written

from weft import api
from weft.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_run_without_its_sink_stops_and_does_not_begin_again(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, EVENTS[:60])
    run = run_of(tmp_path, every="0 seconds")
    run.start(spark)
    deadline = time.monotonic() + 240
    while not written(tmp_path) and not run.wait(0.05) and time.monotonic() < deadline:
        pass
    assert written(tmp_path)
    shutil.move(tmp_path / "out", tmp_path / "aside")
    write(tmp_path / "in", 1, EVENTS[60:])
    with pytest.raises(UsageError, match="was removed after the run had begun"):
        run.wait(240)
    run.stop()
    with pytest.raises(UsageError, match="was removed after the run had begun"):
        run_of(tmp_path, until="complete").start(spark)
    assert not (tmp_path / "out").exists()
    shutil.move(tmp_path / "aside", tmp_path / "out")
    again = run_of(tmp_path, until="complete")
    again.start(spark)
    again.wait()
    assert sorted(written(tmp_path), key=repr) == as_json(local(api.compile(QUERY), EVENTS))
