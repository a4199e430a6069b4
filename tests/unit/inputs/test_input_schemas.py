"""A program that can find nothing in an input is refused before anything runs, where the input has a schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = pa.table(
    {
        "type": ["A", "A"],
        "ts": [1, 2],
        "amount": [1.5, 2.5],
        "name": ["x", "y"],
        "good": [True, False],
        "tags": [["p"], ["q"]],
        "raw": [b"1", b"2"],
        "device": [{"os": "ios", "size": {"x": 1}}, {"os": "linux", "size": {"x": 2}}],
    }
)
PLAIN = TABLE.drop_columns(["tags", "raw", "device"])
WRONG = {
    "SELECT * WHERE A AS a FILTER a[amuont > 1]": "no column 'amuont', which query q reads; did you mean 'amount'",
    "SELECT a[amuont] WHERE A AS a": "no column 'amuont'",
    "SELECT * WHERE A AS a ; A AS b PARTITION BY nam WITHIN 1 HOUR": "no column 'nam'.*did you mean 'name'",
}
KINDS = {
    "SELECT * WHERE A AS a FILTER a[amount = '1.5']": "never holds, because amount is a number in the input",
    "SELECT * WHERE A AS a FILTER a[name > 7]": "is a text in the input and is compared with a number",
    "SELECT * WHERE A AS a FILTER a[name IN {7, 8}]": "is a text in the input",
    "SELECT * WHERE A AS a FILTER a[good = 1]": "is a boolean in the input",
    "SELECT * WHERE A AS a FILTER a[amount LIKE '1%']": "compared with a text",
}


def inputs(folder: Path) -> Iterator[tuple[Any, bool]]:
    """The same events in every form that has a schema; and whether that says the kinds of values."""
    yield TABLE, True
    yield PLAIN.to_batches()[0], True
    yield PLAIN.to_pandas(), False
    yield pl.from_arrow(PLAIN), True
    yield pl.from_arrow(PLAIN).lazy(), True
    pq.write_table(PLAIN, folder / "a.parquet")
    yield folder / "a.parquet", True
    PLAIN.to_pandas().to_csv(folder / "a.csv", index=False)
    yield folder / "a.csv", False


@pytest.mark.parametrize(("query", "message"), WRONG.items())
def test_unknown_attributes_are_refused(tmp_path: Path, query: str, message: str) -> None:
    for events, _ in inputs(tmp_path):
        with pytest.raises(weft.InputError, match=message):
            weft.count(events, query)


@pytest.mark.parametrize(("query", "message"), KINDS.items())
def test_comparisons_that_never_hold_are_refused(tmp_path: Path, query: str, message: str) -> None:
    for events, kinds in inputs(tmp_path):
        if kinds:
            with pytest.raises(weft.InputError, match=message):
                weft.count(events, query)


@pytest.mark.parametrize(("name", "cure"), [("tags", "list.*make a row of each"), ("raw", "binary"), ("device", "dot")])
def test_what_nothing_compares_with_is_refused_where_it_is_used(name: str, cure: str) -> None:
    with pytest.raises(weft.InputError, match=cure):
        weft.count(TABLE, f"SELECT a[{name}] WHERE A AS a")
    assert weft.count(TABLE, "SELECT * WHERE A AS a FILTER a[amount > 2]") == {"q": 1}


def test_events_without_a_schema_may_lack_attributes() -> None:
    assert weft.count([{"type": "A", "ts": 1}], "SELECT * WHERE A AS a FILTER a[x > 1]") == {"q": 0}


def test_files_may_have_columns_of_their_own(tmp_path: Path) -> None:
    pq.write_table(pa.table({"type": ["A"], "ts": [1], "x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"type": ["B"], "ts": [2], "y": [1]}), tmp_path / "b.parquet")
    query = "SELECT * WHERE A AS a ; B AS b FILTER a[x = 1] AND b[y = 1] WITHIN 1 HOUR"
    assert weft.count(tmp_path, query) == {"q": 1}


def test_attributes_that_another_query_defines_are_known() -> None:
    rules = "DEFINE High(value: float) FROM A(amount > 2) as a WHERE value := a.amount;"
    program = weft.compile(rules + " DEFINE Twice(v: float) FROM High() as h WHERE v := h.value;", "tesla")
    assert weft.count(PLAIN, program)["Twice"] == 1


@pytest.mark.spark
def test_spark_frames_are_checked_before_a_job_starts(spark: SparkSession) -> None:
    frame = spark.createDataFrame(PLAIN.to_pandas())
    for query, message in {**WRONG, **KINDS}.items():
        with pytest.raises(weft.InputError, match=message):
            weft.match(frame, query)
        with pytest.raises(weft.InputError, match=message):
            weft.count(frame, query)


STRUCTS = [
    ("ceql", "SELECT a[device.os] WHERE A AS a FILTER a[device.os = 'ios' AND device.size.x = 1]"),
    ("ceql", "SELECT a.device.os WHERE A AS a FILTER a[device.os = 'ios'] PARTITION BY device.os"),
    ("eql", "SELECT a.device.os FROM A a WHERE a.device.os = 'ios' AND a.device.size.x = 1"),
    (
        "step",
        "topology 't' external A(device.os: string, device.size.x: int) < 'a.jsonl' [1.0] "
        "q(a.device.os): A/a[a.device.os = 'ios' && a.device.size.x = 1]",
    ),
    (
        "epn",
        "PATTERN q all(A a) WHERE a.device.os = 'ios' and a.device.size.x = 1 "
        "CONTEXT fixed 1 day BY device.os DERIVE os = a.device.os",
    ),
    ("tesla", "DEFINE q(os: string) FROM A(`device.os` = 'ios') as a WHERE os := a.device.os;"),
]


@pytest.mark.parametrize(("language", "text"), STRUCTS)
@pytest.mark.parametrize("engine", ["local", "meaning", pytest.param("spark", marks=pytest.mark.spark)])
def test_fields_of_structs_are_reached_by_a_dot(tmp_path: Path, language: str, text: str, engine: str) -> None:
    program = weft.compile(text, language)
    rows = TABLE.to_pylist()
    plain = TABLE.drop_columns(["raw"]).to_pylist()
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in plain))
    pq.write_table(TABLE, tmp_path / "a.parquet")
    for events in (TABLE, rows, tmp_path / "a.jsonl", tmp_path / "a.parquet", pd.DataFrame(rows)):
        (match,) = weft.detect(events, program, engine)
        assert match.positions == (0,)
        assert list(match.event.values()) in ([], ["ios"])
