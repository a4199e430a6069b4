"""Warnings about the data of a frame in PySpark are shown when its matches are computed."""

from __future__ import annotations

import sys
import warnings
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import weft
from weft import DataWarning, RejectedWarning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
NOON = datetime(2024, 5, 1, 12)
SCHEMA = "ts timestamp, type string, device struct<os: string>, `odd.na``me` long"
PAIR = "SELECT * WHERE A AS a ; B AS b WITHIN 1 MINUTE"


def frame_of(spark: SparkSession) -> DataFrame:
    rows = [
        (NOON + timedelta(seconds=n) if n else None, "AB"[n % 2], ("ios" if n < 4 else "web",), n) for n in range(6)
    ]
    return spark.createDataFrame(rows, SCHEMA)


def told_by(action: Any) -> list[tuple[type[Warning], str, str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [(each.category, str(each.message), Path(each.filename).name) for each in found]


def test_events_that_cannot_be_read_are_told_of_after_the_first_action(spark: SparkSession) -> None:
    matches = weft.match(frame_of(spark), PAIR)
    (found,) = told_by(lambda: matches.where("query is not null").count())
    assert found[0] is RejectedWarning
    assert found[1].startswith("1 event could not be read; one of the reasons: no time")
    assert found[2] == Path(__file__).name
    assert told_by(matches.count) == []


def test_who_asks_for_rejects_is_not_warned_of_them(spark: SparkSession) -> None:
    assert told_by(lambda: weft.match(frame_of(spark), PAIR, rejects=True).collect()) == []


def test_a_type_that_never_comes_is_told_of_when_matches_are_written(spark: SparkSession, tmp_path: Path) -> None:
    matches = weft.match(frame_of(spark).where("ts is not null"), PAIR.replace("A AS", "Aa AS"))
    (found,) = told_by(lambda: matches.write.parquet(str(tmp_path / "matches")))
    assert found[0] is DataWarning
    assert "no event has the type 'Aa'" in found[1]


def test_times_in_another_unit_are_told_of(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1_714_561_200 + n, "AB"[n % 2]) for n in range(4)], "ts long, type string")
    (found,) = told_by(lambda: weft.match(frame, PAIR).toPandas())
    assert "the times look like s since 1970" in found[1]


def test_a_first_look_that_need_not_see_all_doubts_no_types(spark: SparkSession) -> None:
    matches = weft.match(frame_of(spark).where("ts is not null"), PAIR, lanes=2)
    assert told_by(lambda: matches.take(1)) == []


def test_fields_of_structs_and_odd_names_are_read_alone(spark: SparkSession) -> None:
    frame = frame_of(spark).where("ts is not null")
    field = "SELECT a[ts] WHERE A AS a FILTER a[device.os = 'web'] WITHIN 1 MINUTE"
    assert weft.match(frame, field).count() == 1
    assert weft.count(frame, field) == {"q": 1}
    odd = weft.Pattern.begin("a").where(weft.e["odd.na`me"] > 3)
    assert weft.count(frame, odd) == {"q": 2}


@pytest.mark.parametrize(
    ("master", "given"), [("local[2]", None), ("local[2]", "/other/python"), ("spark://host", None)]
)
def test_on_this_machine_work_runs_in_this_interpreter(
    master: str, given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weft.runtime.spark.session import own_python

    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if given is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", given)
    context = SimpleNamespace(master=master, pythonExec=given or "python3")
    with own_python(SimpleNamespace(sparkContext=context)):  # type: ignore[arg-type]
        assert context.pythonExec == (sys.executable if master == "local[2]" and given is None else given or "python3")
    assert context.pythonExec == (given or "python3")
