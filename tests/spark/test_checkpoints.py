"""Checkpoints of real runs: whole by verification, damaged when a file is, and written by one process at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.test_run import EVENTS, run_of, write, written

from weft.errors import UsageError
from weft.runtime.spark.runs.ownership import Ownership, read_owner
from weft.runtime.spark.runs.verifying import find_damage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_checkpoint_is_verified_file_by_file(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / "in", number, EVENTS[number * 30 : number * 30 + 30])
    run = run_of(tmp_path, until="read")
    run.start(spark)
    assert run.wait()
    checkpoint = tmp_path / "checkpoint"
    assert find_damage(str(checkpoint)) is None
    owner = read_owner(checkpoint / "weft" / "owner.json")
    assert owner is not None
    assert owner.released
    files = [path for path in (checkpoint / "weft" / "lanes").rglob("*") if path.is_file()]
    assert len(files) == 6
    for path in files:
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert str(path.relative_to(checkpoint)) in str(find_damage(str(checkpoint)))
        path.write_bytes(whole)
    assert find_damage(str(checkpoint)) is None


def test_a_run_that_was_taken_over_from_writes_nothing_more(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, EVENTS[:60])
    run = run_of(tmp_path, every="0 seconds")
    run.start(spark)
    other = Ownership(str(tmp_path / "checkpoint"))
    other.acquire()
    try:
        before = len(written(tmp_path))
        for number in range(1, 4):
            write(tmp_path / "in", number, EVENTS[60:])
        with pytest.raises(UsageError, match="was taken over by process"):
            run.wait(300)
        assert len(written(tmp_path)) in (before, 0) or before == 0
    finally:
        run.stop()
        other.release()
