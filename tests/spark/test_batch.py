"""Spark gives the local engine's matches: from DataFrames, from files and from data in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from tests.spark.pipeline import local
from tests.strategies import Example, examples

from weft import api
from weft.errors import InputError, UsageError
from weft.runtime.data.events import Rejected
from weft.runtime.data.matches import Match

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

KEYED = "SELECT a[x], b FROM S WHERE A AS a ; B AS b FILTER a[x > 1] PARTITION BY [k] WITHIN 40 EVENTS"
PLAIN = "SELECT * FROM S WHERE A ; B+ ; C WITHIN 6 EVENTS"
EVENTS = [
    {"type": "ABCD"[i * 7 % 11 % 4], "ts": i * 37 % 60, "k": [None, "u", "v"][i % 3], "x": i % 5} for i in range(120)
]


def both() -> list[object]:
    return [api.compile(KEYED), renamed(api.compile(PLAIN), "plain")]


def renamed(program: object, name: str) -> object:
    from dataclasses import replace

    return replace(program, queries=tuple(replace(query, name=name) for query in program.queries))  # type: ignore


def frame_of(spark: SparkSession, events: list[dict[str, object]], partitions: int = 4) -> DataFrame:
    schema = "ts long, type string, k string, x long"
    rows = [tuple(event.get(name) for name in ("ts", "type", "k", "x")) for event in events]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), schema)


def collected(frame: DataFrame) -> list[Match]:
    return sorted(
        (
            Match(
                row.query,
                row.id,
                row.start,
                row.end,
                tuple(row.positions),
                {name: tuple(places) for name, places in row.bindings.items()},
                json.loads(row.event) if isinstance(row.event, str) else row.event.asDict(),
            )
            for row in frame.collect()
        ),
        key=repr,
    )


def test_a_frame_of_several_partitions(spark: SparkSession) -> None:
    frame = frame_of(spark, EVENTS)
    found = api.match(frame, both(), positions=True)
    wanted = local(api.merge_programs(both()), EVENTS)
    assert collected(found) == wanted
    assert {match.query for match in wanted} == {"q", "plain"}
    assert found.columns == ["query", "id", "start", "end", "variables", "event", "positions", "bindings"]
    without = api.match(frame, both(), lanes=3)  # lanes get their own events only
    assert without.columns == ["query", "id", "start", "end", "variables", "event"]
    assert sorted(row.id for row in without.collect()) == sorted(match.id for match in wanted)
    assert without.counts.get["events"] == len(EVENTS)


def test_the_order_of_partitions_decides_between_equal_times(spark: SparkSession) -> None:
    events = [{"type": kind, "ts": 5, "k": "u", "x": 3} for kind in "BABAABBA"]
    assert collected(api.match(frame_of(spark, events, 3), api.compile(KEYED), positions=True)) == local(
        api.compile(KEYED), events
    )


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(examples())
def test_any_program_on_data_in_this_process(spark: SparkSession, example: Example) -> None:
    wanted = list(api.detect(example.events, example.program, rejects=[]))
    assert list(api.detect(example.events, example.program, engine="spark", rejects=[])) == wanted


def test_counting(spark: SparkSession) -> None:
    assert api.count(EVENTS, both(), engine="spark") == api.count(EVENTS, both())


def test_what_cannot_be_read_is_counted_also_when_it_is_not_asked_for(spark: SparkSession) -> None:
    events = [*EVENTS, {"type": "A", "ts": None, "k": "u", "x": 1}]
    found = api.match(frame_of(spark, events), api.compile(KEYED))
    matches = found.collect()
    assert found.counts.get.items() >= {"matches": len(matches), "late": 0, "unreadable": 1}.items()


def test_rejects_of_a_frame(spark: SparkSession) -> None:
    events = [*EVENTS[:30], {"type": "A", "k": "u"}, {"ts": 3, "x": 1}]
    found = api.match(frame_of(spark, events), api.compile(KEYED), rejects=True, positions=True)
    reasons = {row.rejected: row.reason for row in found.where("reason is not null").collect()}
    assert reasons == {
        '{"ts": null, "type": "A", "k": "u", "x": null}': "no time: no value in 'ts', nor in 'start' and 'end'",
        '{"ts": 3, "type": null, "k": null, "x": null}': "no type: no value in 'type'",
    }
    matches = found.where("reason is null").drop("reason", "rejected")
    assert collected(matches) == local(api.compile(KEYED), EVENTS[:30])


def test_timestamps_come_back_as_such(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    frame = frame_of(spark, EVENTS).withColumn("ts", F.timestamp_millis("ts"))
    found = api.match(frame, api.compile(KEYED), positions=True)
    assert dict(found.dtypes)["start"] == dict(found.dtypes)["end"] == "timestamp"
    ticks = found.withColumns({name: F.unix_millis(name) for name in ("start", "end")})
    assert collected(ticks) == local(api.compile(KEYED), EVENTS)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, list[str]]:
    """The same events as files of each format, two of each; Parquet in several row groups."""
    made: dict[str, list[str]] = {"jsonl": [], "csv": [], "parquet": []}
    for number, events in enumerate((EVENTS[:70], EVENTS[70:])):
        for form, paths in made.items():
            path = tmp_path / f"{number}.{form}"
            paths.append(str(path))
            table = pa.Table.from_pylist(events)
            if form == "jsonl":
                path.write_text("".join(json.dumps(event) + "\n" for event in events))
            elif form == "csv":
                pa.csv.write_csv(table, path)
            else:
                pq.write_table(table, path, row_group_size=16)
    return made


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_files(spark: SparkSession, files: dict[str, list[str]], form: str) -> None:
    wanted = list(api.detect(files[form], both(), engine="local"))
    assert list(api.detect(files[form], both(), engine="spark")) == wanted
    assert len(wanted) > 50


def test_rejects_of_files_say_where(spark: SparkSession, tmp_path: Path) -> None:
    lines = tmp_path / "e.jsonl"
    lines.write_text('{"type": "A", "ts": 1}\nnot json\n{"type": "A", "ts": "soon"}\n')
    rows = tmp_path / "e.parquet"
    pq.write_table(pa.table({"type": ["A", None, "B"], "ts": [1, 2, None], "k": ["u"] * 3, "x": [7, 8, 9]}), rows)
    for path in (lines, rows):
        wanted: list[Rejected] = []
        found: list[Rejected] = []
        list(api.detect(path, api.compile(KEYED), rejects=wanted))
        list(api.detect(path, api.compile(KEYED), engine="spark", rejects=found))
        assert found == wanted
        assert len(found) == 2


def test_mistakes_are_explained(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, EVENTS)
    with pytest.raises(InputError, match="no column 'when' for the time of events"):
        api.match(frame, api.compile(KEYED), time="when")
    with pytest.raises(InputError, match=r"no column 'what'.*and none 'when' for their time.*time=NAME, type=NAME"):
        api.match(frame, api.compile(KEYED), time="when", type="what")
    with pytest.raises(InputError, match="did you mean 'type'"):
        api.match(frame, api.compile(KEYED), type="typ")
    (tmp_path / "e.csv").write_text("k,x\n1,2\n")
    with pytest.raises(InputError, match="no column 'type'"):
        list(api.detect(tmp_path / "e.csv", api.compile(KEYED), engine="spark"))
    stream = spark.readStream.format("rate").load().selectExpr("value as ts", "'A' as type", "'u' as k", "1 as x")
    with pytest.raises(UsageError, match=r"use weft\.match"):
        list(api.detect(stream, api.compile(KEYED), engine="spark"))


def test_sources_by_name(spark: SparkSession, tmp_path: Path) -> None:
    """Lists, tables and files; types and streams that only the name of the source says; ties by declaration."""
    program = api.compile(
        'topology "T"\n'
        'external A(k: int) < "a.jsonl" [1.0]\n'
        'external B(k: int) < "b.parquet" [1.0]\n'
        "Pair(*): A ;[A.k = B.k] B\nMeet(*): A , B"
    )
    a = [{"ts": t % 9, "k": t % 2} for t in range(20)]
    b = [{"ts": t % 7, "k": t % 3} for t in range(20)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(event) + "\n" for event in a))
    pq.write_table(pa.Table.from_pylist(b), tmp_path / "b.parquet", row_group_size=7)
    expected = list(api.detect({"A": a, "B": b}, program, engine="meaning"))
    assert len(expected) > 20
    for sources in (
        {"A": a, "B": pa.Table.from_pylist(b)},
        {"B": b, "A": tmp_path / "a.jsonl"},
        {"B": tmp_path / "b.parquet", "A": [tmp_path / "a.jsonl"]},
    ):
        assert list(api.detect(sources, program, engine="spark")) == expected
        assert list(api.detect(sources, program, engine="local")) == expected
