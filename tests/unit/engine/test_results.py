"""Results in this process: tables with the events of each variable, whatever the events come from."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app

PAIR = "SELECT * WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 1 MINUTE"
SOME = "SELECT a, b[amount] WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 1 MINUTE"
BEGIN = datetime(2024, 5, 1, 12)
EVENTS = [
    {
        "type": "AB"[at % 2],
        "ts": BEGIN + timedelta(seconds=10 * at, microseconds=at),
        "k": at // 2,
        "amount": Decimal(at) / 4,
        "device": {"os": f"os{at}"},
    }
    for at in range(8)
]
SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.timestamp("us")),
        ("k", pa.int64()),
        ("amount", pa.decimal128(12, 2)),
        ("device", pa.struct([("os", pa.string())])),
    ]
)
TABLE = pa.Table.from_pylist(EVENTS, SCHEMA)


@pytest.mark.parametrize("engine", ["local", "meaning"])
def test_variables_have_the_columns_of_the_input(engine: str) -> None:
    found = weft.detect(TABLE, PAIR, engine=engine).to_arrow()
    assert found.column_names == ["query", "id", "start", "end", "variables", "event", "positions", "bindings"]
    assert found["start"].to_pylist() == [event["ts"] for event in EVENTS[::2]]
    assert found["end"].to_pylist() == [event["ts"] for event in EVENTS[1::2]]
    assert [row["b"] for row in found["variables"].to_pylist()] == [[event] for event in EVENTS[1::2]]


def test_selected_attributes_and_a_struct_of_fields() -> None:
    found = weft.detect(TABLE, SOME).to_arrow()
    assert found.schema.field("event").type == pa.struct([("amount", pa.decimal128(12, 2))])
    assert found["event"].to_pylist()[0] == {"amount": Decimal("0.25")}
    assert found["variables"].to_pylist()[0]["b"] == [{"amount": Decimal("0.25")}]


def test_matches_are_objects_too_as_often_as_asked() -> None:
    found = weft.detect(TABLE, PAIR)
    assert [match.positions for match in found] == [match.positions for match in found]
    assert found.to_arrow()["positions"].to_pylist() == [list(match.positions) for match in found]
    assert next(found).positions == (0, 1)
    assert [match.positions for match in found] == [(2, 3), (4, 5), (6, 7)]


def test_frames() -> None:
    found = weft.detect(TABLE, PAIR)
    assert found.to_pandas()["bindings"][0].keys() == {"a", "b"}
    assert found.to_polars()["end"].to_list() == [event["ts"] for event in EVENTS[1::2]]


def test_events_without_a_schema_have_the_types_of_their_values() -> None:
    events = [{"type": "A", "ts": 1, "k": 1, "x": 1}, {"type": "B", "ts": 2, "k": 1, "x": 2.5}, {"type": "Z", "ts": 3}]
    found = weft.detect(events, PAIR).to_arrow()
    assert found["variables"].to_pylist() == [
        {"a": [{"type": "A", "ts": 1, "k": 1, "x": 1.0}], "b": [{"type": "B", "ts": 2, "k": 1, "x": 2.5}]}
    ]
    assert found.schema.field("start").type == pa.int64()


def test_nothing_found_has_the_same_columns() -> None:
    assert weft.detect(TABLE.slice(0, 1), PAIR).to_arrow().schema == weft.detect(TABLE, PAIR).to_arrow().schema


def test_parquet_files_have_the_same_columns(tmp_path: Path) -> None:
    events, out = tmp_path / "events.parquet", tmp_path / "out.parquet"
    pq.write_table(TABLE, events)
    result = CliRunner().invoke(app, ["match", "-q", PAIR, "--events", str(events), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert pq.read_table(out).to_pylist() == weft.detect(str(events), PAIR).to_arrow().to_pylist()


def test_no_field_is_left_out_of_the_event() -> None:
    text = "SELECT COUNT(f) AS tries, s[amount] WHERE A+ AS f ; B AS s WITHIN 1 MINUTE"
    event = weft.detect(TABLE, text).to_arrow()["event"].to_pylist()[0]
    assert set(json.loads(event) if isinstance(event, str) else event) == {"tries", "amount"}


def test_computed_fields_have_types() -> None:
    table = pa.table({"type": ["F", "F", "S"], "ts": [1, 2, 3], "amount": [1.5, 2.5, 0.0], "n": [1, 2, 3]})
    query = (
        "SELECT STRICT COUNT(f) AS tries, MAX(f[amount]) - MIN(f[amount]) AS spread, SUM(f[n]) AS total, s[n] "
        "WHERE F{2} AS f : S AS s"
    )
    found = weft.detect(table, query).to_arrow()
    kinds = {field.name: str(field.type) for field in found.schema.field("event").type}
    assert kinds == {"tries": "int64", "spread": "double", "total": "int64", "n": "int64"}
    assert found["event"].to_pylist() == [{"tries": 2, "spread": 1.0, "total": 3, "n": 3}]
