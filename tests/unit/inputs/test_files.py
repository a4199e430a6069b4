"""Events from files, with their bad lines, and matches to files."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.connectors.files import open_events, write_matches, write_rejected
from weft.errors import InputError
from weft.runtime.data import blocks
from weft.runtime.reading.order import read_events

ROWS = [
    {"type": "A", "ts": 2, "name": "x", "price": 1.5, "ok": True},
    {"type": "B", "ts": 1, "name": "y", "price": 2.0, "ok": False},
    {"type": "A", "ts": 3, "name": None, "price": None, "ok": None},
]
MATCHES = [
    {
        "query": "q",
        "id": "a1",
        "start": 1,
        "end": 8,
        "positions": [1, 3],
        "bindings": {"x": [1], "y": [3]},
        "event": {},
    },
    {
        "query": "é",
        "id": "b2",
        "start": 2,
        "end": 9,
        "positions": [2],
        "bindings": {},
        "event": {"name": 'a "b"', "n": 1},
    },
]


def rows_of(source, *names):
    batch = blocks.concat(source)
    return [
        (batch.types[i].as_py(), int(batch.ends[i]), *(batch.columns[name].value(i) for name in names))
        for i in range(len(batch))
    ]


def lines_of(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture(params=["jsonl", "jsonl.gz", "csv", "csv.gz", "parquet"])
def file(request, tmp_path):
    path = tmp_path / f"events.{request.param}"
    if request.param == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=2)
        return path
    text = lines_of(ROWS)
    if "csv" in request.param:
        cells = io.StringIO()
        rows = csv.DictWriter(cells, list(ROWS[0]))
        rows.writeheader()
        rows.writerows(ROWS)
        text = cells.getvalue().encode()
    path.write_bytes(gzip.compress(text) if request.param.endswith("gz") else text)
    return path


def test_all_formats_give_the_same(file):
    source = open_events(file)
    expected = rows_of(read_events(ROWS), "name", "price", "ok")
    assert rows_of(source, "name", "price", "ok") == expected
    assert source.rejected == []
    assert rows_of(open_events([file], columns=["price"], batch_size=1), "price") == [
        row[:2] + row[3:4] for row in expected
    ]


def test_bad_json_lines_are_rejected_and_the_rest_goes_on(tmp_path):
    path = written(
        tmp_path, "events.jsonl", b'{"type": "A", "ts": 1}\n\n{"type": \n[1]\n\xff\n{"type": "B", "ts": 0}\n{"ts": 4}'
    )
    source = open_events(path)
    assert rows_of(source) == [("B", 0), ("A", 1)]
    assert [str(rejected) for rejected in source.rejected] == [
        f"{path}:3: not JSON: Expecting value at column 10",
        f"{path}:4: not an event: [1]",
        f"{path}:5: not UTF-8: invalid start byte at byte 0",
        f"{path}:7: no type: no value in 'type'",
    ]


def test_places_of_rejected_rows_that_arrow_has_read(tmp_path):
    path = written(
        tmp_path, "events.jsonl", lines_of([ROWS[0]]) + b"\n  \n" + lines_of([{"type": "A", "ts": 2.5, "x": {}}])
    )
    source = open_events(path)
    assert rows_of(source) == [("A", 2)]
    (rejected,) = source.rejected
    assert (rejected.file, rejected.line, rejected.row) == (str(path), 4, 1)
    assert rejected.event == {"type": "A", "ts": 2.5, "x": {}}


@pytest.mark.parametrize(
    "values",
    [
        [1, "one", True, None, 2.5],
        ["2020-01-01", "2020-01-02T03:04:05Z", "text"],
        [2**53 + 1, 7],
        [1, 2.5],
        [10**30, 1],
        [[1], {"a": 1}],
        ["2020-01-01", 5],
        ["é\u0000\n", ""],
    ],
)
def test_values_in_json_are_what_they_are(tmp_path, values):
    rows = [{"type": "A", "ts": i, "v": value} for i, value in enumerate(values)]
    path = written(tmp_path, "events.jsonl", lines_of(rows))
    assert rows_of(open_events(path), "v") == rows_of(read_events(rows), "v")


def test_the_last_of_two_values_of_one_name_counts(tmp_path):
    path = written(tmp_path, "events.jsonl", '{"type": "A", "ts": 1, "v": 1, "v": 2}\n')
    assert rows_of(open_events(path), "v") == [("A", 1, 2)]


def test_times_as_texts(tmp_path):
    path = written(tmp_path, "events.jsonl", '{"type": "A", "ts": "1970-01-01T00:00:01.5Z"}\n')
    assert rows_of(open_events(path)) == [("A", 1500)]


def test_csv_kinds_and_quotes(tmp_path):
    text = 'type, ts,i,f,b,t,e,m\nA, 1,1,1,true,"x,\n""y""",,1\nB,0,-2,2.5,FALSE,z,,one\n'
    assert rows_of(open_events(written(tmp_path, "e.csv", text)), "i", "f", "b", "t", "e", "m") == [
        ("B", 0, -2, 2.5, False, "z", None, "one"),
        ("A", 1, 1, 1.0, True, 'x,\n"y"', None, "1"),
    ]


def test_csv_types_are_texts(tmp_path):
    path = written(tmp_path, "e.csv", "type,ts,stream\n7,1,8\n")
    (batch,) = open_events(path)
    assert (batch.types.to_pylist(), batch.streams.to_pylist()) == (["7"], ["8"])


def test_csv_rows_of_the_wrong_length_and_without_time(tmp_path):
    path = written(tmp_path, "e.csv", "type,ts,x\nA,1,2\nB,2\nC,3,4,5\nD,,6\nE,0,7\n")
    source = open_events(path)
    assert rows_of(source, "x") == [("E", 0, 7), ("A", 1, 2)]
    assert [str(rejected) for rejected in source.rejected] == [
        f"{path}:3: 2 values for 3 columns",
        f"{path}:4: 4 values for 3 columns",
        f"{path}:5: no time: no value in 'ts', nor in 'start' and 'end'",
    ]
    assert source.rejected[2].event == {"type": "D", "x": "6"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.csv", "kind,ts\nA,1\n", "no column 'type' for the type of events; .*; say which it is: --type"),
        ("e.csv", "type,tss\nA,1\n", "no column 'ts' .*; the columns are type, tss; did you mean 'tss'?"),
        ("e.csv", "", "is empty: a CSV file needs a header"),
        ("e.csv", "type,ts,ts\n", "two columns are called 'ts'"),
        ("e.parquet", "text", "is not a Parquet file"),
        ("e.txt", "text", "cannot tell the format of .*e.txt"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, text, message):
    with pytest.raises(InputError, match=message):
        list(open_events(written(tmp_path, name, text)))


def test_missing_files(tmp_path):
    written(tmp_path, "events.jsonl", "")
    with pytest.raises(InputError, match=r"no such file: .*event.jsonl; did you mean .*events.jsonl\?"):
        open_events(tmp_path / "event.jsonl")
    with pytest.raises(InputError, match="no file matches"):
        open_events(str(tmp_path / "*.csv"))
    with pytest.raises(InputError, match="unknown format 'xml'"):
        open_events(tmp_path / "events.jsonl", format="xml")
    assert list(open_events(tmp_path / "events.jsonl")) == []


def test_several_files_patterns_and_folders_are_one_stream(tmp_path):
    written(tmp_path, "b.jsonl", lines_of([{"type": "B", "ts": 1}, {"type": "D", "ts": 3}]))
    written(tmp_path, "a.csv", "type,ts\nA,1\nC,2\n")
    written(tmp_path, "notes.txt", "no events")
    both = [("A", 1), ("B", 1), ("C", 2), ("D", 3)]
    assert rows_of(open_events(tmp_path)) == both
    assert rows_of(open_events(str(tmp_path / "[ab].*"))) == both
    reverse = open_events([tmp_path / "b.jsonl", tmp_path / "a.csv"])
    assert rows_of(reverse) == [("B", 1), ("A", 1), ("C", 2), ("D", 3)]


def test_only_wanted_parquet_columns_are_read(tmp_path):
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"type": ["A"], "ts": [1], "x": [1], "secret": ["s"]}), path)
    (batch,) = open_events(path, columns=["x"])
    assert set(batch.columns) == {"x"}
    assert rows_of(open_events(path), "secret") == [("A", 1, "s")]


def test_standard_input(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(lines_of(ROWS)))
    monkeypatch.setattr(sys, "stdin", stream)
    assert rows_of(open_events("-")) == [("B", 1), ("A", 2), ("A", 3)]


def test_matches_as_json_lines(tmp_path, capsysbinary):
    path = tmp_path / "matches.jsonl"
    assert write_matches(iter(MATCHES), path) == 2
    assert [json.loads(line) for line in path.read_text().splitlines()] == MATCHES
    assert write_matches(MATCHES, "-") == 2
    assert capsysbinary.readouterr().out == path.read_bytes()


def test_matches_as_csv(tmp_path):
    path = tmp_path / "matches.csv"
    write_matches(MATCHES, path, "csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["positions"] == "1 3"
    assert json.loads(rows[0]["bindings"]) == {"x": [1], "y": [3]}
    assert json.loads(rows[1]["event"]) == MATCHES[1]["event"]


def test_matches_as_parquet_from_dicts_and_from_arrow(tmp_path):
    path, again = tmp_path / "matches.parquet", tmp_path / "again.parquet"
    write_matches(MATCHES, path, "parquet")
    table = pq.read_table(path)
    write_matches(table.to_batches(), again, "parquet")
    assert pq.read_table(again) == table
    assert table.column("query").to_pylist() == ["q", "é"]
    assert table.column("bindings").to_pylist() == [[("x", [1]), ("y", [3])], []]


def test_rejected_events_to_a_file(tmp_path):
    source = read_events([{"type": "A"}])
    list(source)
    path = tmp_path / "rejected.jsonl"
    assert write_rejected(source.rejected, path) == 1
    assert json.loads(path.read_text()) == {
        "row": 0,
        "reason": "no time: no value in 'ts', nor in 'start' and 'end'",
        "event": {"type": "A"},
    }


def test_files_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        write_matches(MATCHES, tmp_path / "no" / "folder.jsonl")
