"""Numbers are exact in every kind of input: decimals, large integers, integers among floats; also as keys."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft

BIG = 2**63
ENGINES = ["local", "meaning", pytest.param("spark", marks=pytest.mark.spark)]


def count(events: Any, query: str, engine: str = "local") -> int:
    return weft.count(events, query, engine)["q"]


def prices(kind: pa.DataType) -> pa.Table:
    texts = pa.array(["993.17", "993.10", "-0.01", "5.00"])
    return pa.table({"type": ["A"] * 4, "ts": [1, 2, 3, 4], "amount": texts.cast(kind)})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [pa.decimal128(12, 2), pa.decimal128(38, 10), pa.decimal256(60, 30)])
def test_a_decimal_is_found_by_the_number_that_names_it(engine: str, kind: pa.DataType) -> None:
    table = prices(kind)
    for condition, found in (
        ("amount = 993.17", 1),
        ("amount = 993.1", 1),
        ("amount = 5", 1),
        ("amount >= 993.1", 2),
        ("amount < 0", 1),
        ("amount IN {993.17, 5}", 2),
        ("amount + 0 < 1000", 4),
    ):
        assert count(table, f"SELECT * WHERE A AS a FILTER a[{condition}]", engine) == found, condition


def test_a_decimal_is_found_in_every_kind_of_input(tmp_path: Path) -> None:
    table = prices(pa.decimal128(12, 2))
    pq.write_table(table, tmp_path / "a.parquet")
    rows = table.to_pylist()
    inputs = [table, str(tmp_path / "a.parquet"), rows, pl.from_arrow(table), pd.DataFrame(rows)]
    for events in inputs:
        assert count(events, "SELECT * WHERE A AS a FILTER a[amount = 993.17]") == 1
        assert count(events, "SELECT * WHERE A AS a ; A AS b FILTER a[amount = 993.17] AND b[amount < 993.17]") == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_digits_beyond_floats_are_compared_exactly(engine: str) -> None:
    values = ["1234567890123456789.01", "1234567890123456789.02", "0.1000000000000000001", "0.1"]
    table = pa.table({"type": ["A"] * 4, "ts": [1, 2, 3, 4], "v": pa.array(values).cast(pa.decimal128(38, 19))})
    for condition, found in (("v > 0.1", 3), ("v = 0.1", 1), ("v > 1234567890123456789", 2), ("v - v = 0", 4)):
        assert count(table, f"SELECT * WHERE A AS a FILTER a[{condition}]", engine) == found, condition


@pytest.mark.parametrize("engine", ENGINES)
def test_large_integers_are_exact(engine: str) -> None:
    table = pa.table({"type": ["A"] * 3, "ts": [1, 2, 3], "n": pa.array([BIG + 1, BIG + 2, 7], pa.uint64())})
    for condition, found in ((f"n = {BIG + 1}", 1), (f"n > {BIG + 1}", 1), (f"n >= {BIG}", 2), ("n = 7", 1)):
        assert count(table, f"SELECT * WHERE A AS a FILTER a[{condition}]", engine) == found, condition


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [pa.uint64(), pa.decimal128(38, 0), pa.decimal128(38, 4), None])
def test_keys_never_pass_through_floats(engine: str, kind: pa.DataType | None) -> None:
    numbers = [BIG + 1, BIG + 2, BIG + 1, BIG + 2]
    rows = [{"type": "A", "ts": place, "k": number} for place, number in enumerate(numbers)]
    events: Any = rows
    if kind is not None:
        events = pa.table({"type": ["A"] * 4, "ts": range(4), "k": pa.array(numbers, pa.decimal128(38, 0)).cast(kind)})
    assert count(events, "SELECT * WHERE A AS a ; A AS b PARTITION BY k", engine) == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_numbers_are_one_key_whatever_their_kind(engine: str) -> None:
    for same in ([1, 1.0, Decimal("1.00")], [993.17, Decimal("993.170")], [2**60, Decimal(2**60), float(2**60)]):
        rows = [{"type": "A", "ts": place, "k": number} for place, number in enumerate(same)]
        assert count(rows, "SELECT * WHERE A AS a ; A AS b PARTITION BY k", engine) == len(same) * (len(same) - 1) // 2
    rows = [{"type": "A", "ts": 1, "k": str(BIG + 1)}, {"type": "A", "ts": 2, "k": BIG + 1}]
    assert count(rows, "SELECT * WHERE A AS a ; A AS b PARTITION BY k", engine) == 0


@pytest.mark.parametrize("ending", ["jsonl", "csv", "dicts"])
def test_integers_among_floats_stay_exact(tmp_path: Path, ending: str) -> None:
    whole = 2**53 + 1
    rows: Any = [{"type": "A", "ts": 1, "n": whole}, {"type": "A", "ts": 2, "n": 0.5}, {"type": "A", "ts": 3, "n": 2}]
    if ending != "dicts":
        path = tmp_path / f"events.{ending}"
        if ending == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            path.write_text("type,ts,n\n" + "".join(f"A,{row['ts']},{row['n']}\n" for row in rows))
        rows = str(path)
    assert count(rows, f"SELECT * WHERE A AS a FILTER a[n = {whole}]") == 1
    assert count(rows, f"SELECT * WHERE A AS a FILTER a[n = {whole - 1}]") == 0
    found = [match.event["n"] for match in weft.detect(rows, "SELECT a[n] WHERE A AS a")]
    assert list(map(repr, found)) == [str(whole), "0.5", "2"]


def test_an_integer_does_not_become_a_float_by_its_neighbours() -> None:
    program = "SELECT a[n], b[n] WHERE A AS a ; A AS b"
    events = [{"type": "A", "ts": 1, "n": 2}, {"type": "A", "ts": 2, "n": 2.5}, {"type": "A", "ts": 3, "n": -0.0}]
    shown = [json.dumps(match.event) for match in weft.detect(events, program)]
    assert '{"a.n": 2, "b.n": 2.5}' in shown
    assert '{"a.n": 2, "b.n": -0.0}' in shown
    found: list[Any] = []
    with weft.live(program) as live:
        live.subscribe("q", found.append)
        for event in events:
            live.push([event])
    assert sorted(json.dumps(match.event) for match in found) == sorted(shown)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_scale_is_kept_in_what_is_written(engine: str) -> None:
    table = prices(pa.decimal128(12, 2))
    run = weft.engines.start(table, weft.compile("SELECT a[amount] WHERE A AS a"), engine)
    written = [text for rows in run.rows() for text in rows["event"].to_pylist()]
    assert written == ['{"amount": 993.17}', '{"amount": 993.10}', '{"amount": -0.01}', '{"amount": 5.00}']


def test_one_fraction_does_not_change_the_times_of_other_rows(tmp_path: Path) -> None:
    nanoseconds = 1_700_000_000_123_456_789
    for ending in ("jsonl", "csv"):
        path = tmp_path / f"events.{ending}"
        times = [nanoseconds, 0.5, nanoseconds + 1]
        if ending == "jsonl":
            path.write_text("".join(f'{{"type":"A","ts":{t}}}\n' for t in times))
        else:
            path.write_text("type,ts\n" + "".join(f"A,{t}\n" for t in times))
        rejects: list[weft.Rejected] = []
        found = list(weft.detect(str(path), "SELECT * WHERE A AS a", rejects=rejects))
        assert [match.start for match in found] == [nanoseconds, nanoseconds + 1]
        assert len(rejects) == 1


FIELDS = {
    "ceql": ("SELECT a[v] WHERE A AS a", ["v"]),
    "ceql computed": ("SELECT MAX(a[v]) AS m, LAST(a[v]) AS l WHERE A AS a", ["m", "l"]),
    "eql": ("SELECT a.v AS v FROM A a", ["v"]),
    "step": ('topology "T"\nexternal A(v: real) < "A" [1.0]\nQ(A.v AS v): A', ["v"]),
    "epn": ("pattern P any(A a) derive v = a.v", ["v"]),
    "epn in partitions": ("pattern P any(A a) policies evaluation deferred context fixed 10 derive v = a.v", ["v"]),
}


@pytest.mark.parametrize("engine", ["local", "meaning"])
@pytest.mark.parametrize("name", FIELDS)
def test_values_of_events_are_shown_with_their_digits(engine: str, name: str) -> None:
    text, fields = FIELDS[name]
    values = [Decimal("993.10"), Decimal("5.00"), Decimal("1234567890123456789.010"), 2, 0.5]
    rows = [{"type": "A", "ts": place, "v": value} for place, value in enumerate(values)]
    run = weft.engines.start(rows, weft.compile(text, language=name.split()[0]), engine)
    written = [event for rows in run.rows() for event in rows["event"].to_pylist()]
    assert written == ["{" + ", ".join(f'"{field}": {value}' for field in fields) + "}" for value in values]


def test_a_match_has_a_decimal_where_no_float_stands_for_it() -> None:
    values = [Decimal("1234567890123456789.01"), 0.5, 1.2345678901234567e-300]
    rows = [{"type": "A", "ts": place, "v": value} for place, value in enumerate(values)]
    assert [match.event["v"] for match in weft.detect(rows, "SELECT a[v] WHERE A AS a")] == values


def test_the_least_and_greatest_decimals_are_exact() -> None:
    values = [Decimal("0.1000000000000000001"), Decimal("0.1000000000000000002"), Decimal("0.1")]
    rows = [{"type": "A", "ts": place, "v": value} for place, value in enumerate(values)]
    rows.append({"type": "B", "ts": 9, "v": values[1]})
    for engine in ("local", "meaning"):
        text = "SELECT STRICT MIN(a[v]) AS low WHERE A{3} AS a : B AS b FILTER MAX(a[v]) = b[v]"
        assert [str(match.event["low"]) for match in weft.detect(rows, text, engine=engine)] == ["0.1"]


@pytest.mark.parametrize("engine", ["local", "meaning"])
def test_sums_of_integers_among_floats_are_exact(engine: str) -> None:
    """A float in the same column, though no match shows it, makes no float of a sum of integers."""
    whole = 2**53 + 1
    rows = [{"type": "A", "ts": 1, "n": 2}, {"type": "B", "ts": 2, "n": 0.5}, {"type": "A", "ts": 3, "n": whole}]
    text = "SELECT SUM(a[n]) AS total, AVG(a[n]) AS mean WHERE A{2} AS a"
    (match,) = weft.detect(rows, text, engine=engine)
    assert match.event == {"total": whole + 2, "mean": (whole + 2) / 2}


@pytest.mark.parametrize(("operator", "found"), [("> 0.1", 2), (">= 0.1", 3), ("< 0.1", 0), ("= 0.1", 1)])
def test_rules_find_decimals_by_their_constants(operator: str, found: int) -> None:
    values = [Decimal("0.1000000000000000001"), Decimal("0.1000000000000000002"), Decimal("0.1")]
    rows = [{"type": "A", "ts": place, "v": value} for place, value in enumerate(values)]
    for engine in ("local", "meaning"):
        rule = weft.compile(f"define Q()\nfrom A(v {operator})", language="tesla")
        assert len(list(weft.detect(rows, rule, engine=engine))) == found
