"""`SELECT *` and functions of patterns with policies on Spark: the same as in process, typed where they can be."""

from __future__ import annotations

import json

import pyarrow as pa
from pyspark.sql import SparkSession

import weft

ROWS = [("B", 2, 2, None, 1.5), ("B", 3, 3, "z", None), ("A", 4, 1, "u", None), ("A", 5, None, "w", None)]
COLUMNS = "type string, ts long, x long, name string, y double"
TWO = """topology "T"
external A(x: int) < "a" [1.0]
external B(x: int, y: real) < "b" [1.0]
Q(*): B ;[dur < 100] A > "k"
R(A.x): A > "l"
"""
CLOSE = """
pattern Close sequence(B b, A a) where abs(a.x - b.x) <= 1 and length(a.name) = 1 and hour(a.ts) = hour(b.ts)
  context fixed 1 hour derive top = max(a.x, b.x), name = upper(a.name)
"""


def local_table() -> pa.Table:
    names = [part.split()[0] for part in COLUMNS.split(", ")]
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in ROWS])


def test_all_fields_are_a_typed_struct(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS)
    program = weft.compile("SELECT * FROM B b+ ; A a WHERE FILTER(b.x > 0), (b, a) OCCURS WITHIN 1 min", language="eql")
    found = weft.match(frame, program)
    kinds = "struct<b.x:array<bigint>,b.name:array<string>,b.y:array<double>,a.x:bigint,a.name:string,a.y:double>"
    assert found.schema["event"].dataType.simpleString() == kinds
    here = weft.detect(local_table(), program).to_arrow().select(["id", "event"]).to_pylist()
    there = [{"id": row.id, "event": row.event.asDict()} for row in found.select("id", "event").collect()]
    assert sorted(there, key=lambda row: row["id"]) == sorted(here, key=lambda row: row["id"])
    assert len(here) == 3
    assert found.count() == 3


def test_events_of_queries_that_differ_are_json(spark: SparkSession) -> None:
    frame, program = spark.createDataFrame(ROWS, COLUMNS), weft.compile(TWO, language="step")
    there = {(row.id, row.event) for row in weft.match(frame, program).select("id", "event").collect()}
    found = list(weft.detect(local_table(), program))
    assert {id: json.loads(event) for id, event in there} == {match.id: match.event for match in found}
    assert {"B.x": 2, "B.y": 1.5, "A.x": 1, "A.name": "u"} in [match.event for match in found]
    assert list(weft.detect(frame, program)) == found


def test_functions_of_patterns_with_policies(spark: SparkSession) -> None:
    frame, program = spark.createDataFrame(ROWS, COLUMNS), weft.compile(CLOSE, language="epn")
    (row,) = weft.match(frame, program).collect()
    (match,) = weft.detect(local_table(), program)
    assert row.id == match.id
    assert match.event == {"top": 2, "name": "U"}
    event = row.event if isinstance(row.event, str) else json.dumps(row.event.asDict())
    assert json.loads(event) == match.event
