"""`count()` of matches builds none of them, and says what any other first action says."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

import weft
from weft import RejectedWarning
from weft.runtime.spark import counting
from weft.runtime.spark.batch import match_lanes
from weft.runtime.spark.jobs.job import Job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
PAIRS = "SELECT * WHERE A AS a ; B AS b FILTER a[x > 2] PARTITION BY [k] WITHIN 1 HOUR"
SCHEMA = "ts long, type string, k string, x double, note string"


def frame_of(spark: SparkSession) -> DataFrame:
    rows = [(n, "AB"[n % 2], "uvw"[n % 3], float(n % 5), f"note {n}") for n in range(60)]
    return spark.createDataFrame([*rows, (None, "A", "u", 1.0, "no time")], SCHEMA)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that only count."""
    jobs: list[Job] = []

    def noted(runs: DataFrame, job: Job, **options: Any) -> DataFrame:
        jobs.append(job)
        return match_lanes(runs, job, **options)

    monkeypatch.setattr(counting, "match_lanes", noted)
    return jobs


@pytest.mark.parametrize("options", [{}, {"scan": "spark"}, {"positions": True}, {"lanes": 3}])
def test_a_count_reads_only_what_decides(
    spark: SparkSession, tmp_path: Path, counted: list[Job], options: dict[str, Any]
) -> None:
    frame_of(spark).where("ts is not null").write.parquet(str(tmp_path / "events"))
    matches = weft.match(spark.read.parquet(str(tmp_path / "events")), PAIRS, **options)
    assert matches.count() == len(matches.collect()) > 0
    (job,) = counted
    assert "note" not in (job.reading.needed or {"note"})
    assert job.shape is None


def test_a_count_of_files_reads_only_what_decides(spark: SparkSession, tmp_path: Path, counted: list[Job]) -> None:
    frame_of(spark).where("ts is not null").coalesce(1).write.parquet(str(tmp_path / "events"))
    matches = weft.match(str(tmp_path / "events"), PAIRS)
    assert matches.count() == len(matches.collect()) > 0
    assert len(counted) == 1


def test_a_count_warns_once_and_knows_the_numbers(spark: SparkSession) -> None:
    matches = weft.match(frame_of(spark), PAIRS)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        count = matches.count()
        matches.collect()
    assert [each.category for each in found] == [RejectedWarning]
    assert (matches.counts.get["matches"], matches.counts.get["unreadable"]) == (count, 1)


def test_a_count_of_cached_matches_fills_the_cache(spark: SparkSession, counted: list[Job]) -> None:
    matches = weft.match(frame_of(spark).where("ts is not null"), PAIRS)
    expected = matches.count()
    assert matches.cache().count() == expected
    matches.unpersist()
    assert len(counted) == 1


def test_limits_and_rejects_are_counted_as_they_are_shown(spark: SparkSession, counted: list[Job]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rejects = weft.match(frame_of(spark), PAIRS, rejects=True)
        assert rejects.count() == len(rejects.collect())
        few = weft.match(frame_of(spark), PAIRS, budget=weft.Budget(matches_per_event=1, action="sample"), lanes=1)
        assert few.count() == len(few.collect())
    assert not counted


def test_only_the_columns_asked_for_are_built(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark).where("ts is not null")
    frame.coalesce(1).write.parquet(str(tmp_path / "events"))
    whole = {row["id"]: row for row in weft.match(frame, PAIRS).collect()}
    for events in (frame, str(tmp_path / "events")):
        few = weft.match(events, PAIRS, columns=["end", "id"])
        assert few.columns == ["end", "id"]
        assert {row["id"]: row["end"] for row in few.collect()} == {id: row["end"] for id, row in whole.items()}
        assert few.count() == len(whole)
    assert weft.match(frame, PAIRS, columns=["variables"]).columns == ["variables"]
    for options in ({"columns": ["nothing"]}, {"columns": ["positions"]}, {"columns": ["id"], "rows": True}):
        with pytest.raises(weft.UsageError):
            weft.match(frame, PAIRS, **options)
