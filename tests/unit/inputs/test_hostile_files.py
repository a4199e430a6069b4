"""Nothing that a file contains raises anything but our errors; what cannot be read is counted, the rest is matched."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft
from weft.connectors import csv_rows, json_lines

QUERY = "SELECT a[n] WHERE A AS a"
GOOD = b'{"type":"A","ts":1,"n":"x"}\n'
LINES = {
    "null": b"null\n",
    "null behind an event": b'{"type":"A","ts":1} null\n',
    "null between events": b'{"type":"A","ts":1}null{"type":"A","ts":1}\n',
    "brackets": b'{"type":"A","ts":1,"n":' + b"[" * 100_000 + b"\n",
    "objects": b'{"a":' * 100_000 + b"\n",
    "closed brackets": b'{"type":"A","ts":"x","n":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "not UTF-8": b'{"type":"A","ts":1,"n":"\xff\xfe"}\n',
    "a name that is not UTF-8": b'{"type":"A","ts":1,"\xff":"x"}\n',
    "half a surrogate": b'{"type":"A","ts":1,"n":"\\ud800"}\n',
    "a text": b'"x"\n',
    "a number": b"5\n",
    "two events": b'{"type":"A","ts":1}{"type":"A","ts":2}\n',
    "digits": b'{"type":"A","ts":' + b"9" * 5000 + b"}\n",
    "zeros": b"\x00\x00\n",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
def test_a_bad_line_is_counted_and_the_others_are_matched(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "a.jsonl"
    for content in (line, GOOD + line, line + GOOD, GOOD + line + GOOD):
        path.write_bytes(content)
        rejects: list[weft.Rejected] = []
        found = list(weft.detect(str(path), QUERY, rejects=rejects))
        assert [match.event for match in found] == [{"n": "x"}] * content.count(GOOD)
        assert len(rejects) == 1
        assert rejects[0].line == (2 if content.startswith(GOOD) else 1)


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_what_can_be_read_of_a_damaged_archive_is_read(tmp_path: Path, ending: str) -> None:
    rows = [f'{{"type":"A","ts":{n},"n":"x{n}"}}\n' if ending == "jsonl" else f"A,{n},x{n}\n" for n in range(20_000)]
    header = [] if ending == "jsonl" else ["type,ts,n\n"]
    packed = gzip.compress("".join([*header, *rows]).encode())
    path = tmp_path / f"a.{ending}.gz"
    for damaged in (packed[: len(packed) // 2], packed[:1000] + b"\xff" * 50 + packed[1050:], packed + b"rest"):
        path.write_bytes(damaged)
        rejects: list[weft.Rejected] = []
        count = weft.count(str(path), QUERY, rejects=rejects)["q"]
        assert any("damaged" in one.reason for one in rejects)
        assert count + len(rejects) <= 20_002
        assert damaged == packed + b"rest" or count < 20_000


def test_rows_of_csv_that_are_not_utf_8_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"type,ts,n\nA,1,x\nA,2,\xff\nA,3,y\nA,\xfe,4,5,6\nA,5\nA,6,z\n")
    rejects: list[weft.Rejected] = []
    found = list(weft.detect(str(path), QUERY, rejects=rejects))
    assert [match.event["n"] for match in found] == ["x", "y", "z"]
    assert [(one.line, one.reason) for one in rejects] == [
        (3, "not UTF-8"),
        (5, "not UTF-8"),
        (6, "2 values for 3 columns"),
    ]


def test_a_header_that_is_not_utf_8_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"type,ts,\xff\nA,1,x\n")
    with pytest.raises(weft.WeftError):
        weft.count(str(path), QUERY)


def test_damaged_parquet_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"type": ["A"] * 1000, "ts": range(1000), "n": ["x"] * 1000}), path)
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        damaged = bytearray(whole)
        damaged[place : place + 8] = b"\xff" * len(damaged[place : place + 8])
        for content in (bytes(damaged), whole[:place]):
            path.write_bytes(content)
            with suppress(weft.WeftError):
                weft.count(str(path), QUERY, rejects=[])


@pytest.mark.parametrize(
    ("text", "wrong", "read"),
    [
        ('A,1,"open\nA,2,b\nA,3,c\n', {2}, ["b", "c"]),
        ('A,1,a\nA,2,"b\nb"\nA,3,"open\nA,4,d\n', {4}, ["a", "b\nb", "d"]),
        ('A,1,a\nA,2,"open ""twice""\nA,3,c\n', {3}, ["a", "c"]),
        ('A,1,a\nA,2,"', {3}, ["a"]),
        ('A,1,"x\nA,2","y\nA,3,c\n', {2, 3}, ["c"]),
        ('A,1,5" pipe\nA,2,"b"\nA,3,""\n', set(), ['5" pipe', "b", None]),
    ],
)
def test_a_quote_that_is_never_closed_is_told_of(tmp_path: Path, text: str, wrong: set[int], read: list[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"type,ts,n\n{text}")
    rejects: list[weft.Rejected] = []
    assert [match.event.get("n") for match in weft.detect(str(path), QUERY, rejects=rejects)] == read
    assert {(one.line, one.reason) for one in rejects} == {
        (n, "a quote that opens here is never closed") for n in wrong
    }


def test_quotes_open_in_every_line_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("type,ts,n\n" + 'A,1,"x\n' + 'x","y\n' * 2_000)
    with pytest.raises(weft.InputError, match="quotes are open"):
        list(weft.detect(str(path), QUERY))


@pytest.mark.parametrize("wrong", ["x", "1.5", "", "99999999999999999999", "true", "2024-13-01"])
def test_one_bad_time_in_csv_is_one_reject(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "a.csv"
    far = 2**61 + 1
    path.write_text(f"type,ts,n\nA,{far},x\nA,{wrong},y\nA, {far + 1},z\n")
    rejects: list[weft.Rejected] = []
    found = list(weft.detect(str(path), QUERY, rejects=rejects))
    assert [(match.end, match.event["n"]) for match in found] == [(far, "x"), (far + 1, "z")]
    assert [one.line for one in rejects] == [3]


def test_numbers_and_dates_may_be_mixed_as_times_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("type,ts,n\nA,5,x\nA,1970-01-01T00:00:00.007,y\n")
    assert [match.end for match in weft.detect(str(path), QUERY)] == [5, 7]


def test_a_row_may_be_longer_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"type,ts,n\nA,1,{'z' * (3 * csv_rows.BLOCK)}\nA,2\nA,3,x\n")
    rejects: list[weft.Rejected] = []
    assert weft.count(str(path), QUERY, rejects=rejects) == {"q": 2}
    assert [one.line for one in rejects] == [3]


def test_a_header_of_many_columns_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    names = ",".join(f"c{number}" for number in range(20_000))
    path.write_text(f"type,ts,n,{names}\nA,1,x{',' * 20_000}\n")
    assert weft.count(str(path), QUERY) == {"q": 1}


def test_empty_lines_are_no_events_and_are_counted_as_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "BLOCK", 1 << 12)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(GOOD + b"\n" * 20_000 + GOOD + b"null\n"))
    rejects: list[weft.Rejected] = []
    assert weft.count(str(path), QUERY, rejects=rejects) == {"q": 2}
    assert [one.line for one in rejects] == [20_003]


def test_a_bomb_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that grows without end when it is unpacked is left out, and the others are read."""
    monkeypatch.setattr(json_lines, "BLOCK", 1 << 12)
    monkeypatch.setattr(json_lines, "LONGEST", 1 << 14)
    path = tmp_path / "a.jsonl.gz"
    long = b'{"type":"A","ts":1,"n":"' + b"x" * (1 << 20) + b'"}'
    for content in (GOOD + long + b"\n" + GOOD, long, GOOD + long, long + b"\n" + GOOD):
        path.write_bytes(gzip.compress(content))
        rejects: list[weft.Rejected] = []
        found = list(weft.detect(str(path), QUERY, rejects=rejects))
        assert len(found) == content.count(GOOD)
        assert [(one.line, one.reason[:19]) for one in rejects] == [
            (1 + content.startswith(GOOD), "a line of more than")
        ]


def test_a_csv_file_that_is_too_large_when_unpacked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "LARGEST", 1 << 20)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"type,ts,n\n" + b"A,1,x\n" * 10**6))
    with pytest.raises(weft.InputError, match="cut it into parts"):
        weft.count(str(path), QUERY)


def test_a_rejected_row_of_parquet_shows_what_can_be_read_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that no query asks for may be damaged; the row group is read once for all of its rejects."""
    path = tmp_path / "a.parquet"
    size = 300
    times = pa.array([None] * (size - 1) + [1], pa.int64())
    noise = pa.array([f"{number * 7919 % 1000}" for number in range(size)])
    table = pa.table({"type": ["A"] * size, "ts": times, "n": ["x"] * size, "m": noise})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    begin = pq.read_metadata(path).row_group(0).column(3).data_page_offset
    data[begin : begin + 30] = b"\xff" * 30
    path.write_bytes(bytes(data))
    read: list[object] = []
    whole = pq.ParquetFile.read_row_group
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda *a, **b: (read.append(a), whole(*a, **b))[1])
    rejects: list[weft.Rejected] = []
    assert weft.count(str(path), QUERY, rejects=rejects) == {"q": 1}
    assert {frozenset(one.event or ()) for one in rejects} == {frozenset({"type", "ts", "n"})}
    assert len(rejects) == size - 1
    assert len(read) < 20


@pytest.mark.parametrize("engine", ["local", "meaning"])
def test_thousands_of_digits_in_csv_are_a_float_and_no_time(tmp_path: Path, engine: str) -> None:
    nines = "9" * 5_000
    path = tmp_path / "events.csv"
    path.write_text(f"type,ts,k\nA,1,{nines}\nB,2,{nines}\nA,{nines},1\nA,3,-{nines}.5\nB,4,1\n")
    rejects: list[weft.Rejected] = []
    query = "SELECT * WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 10 EVENTS"
    found = [match.positions for match in weft.detect(path, query, engine=engine, rejects=rejects)]
    assert found == [(0, 1)]
    assert [reject.reason for reject in rejects] == ["'ts' is not a time: inf"]


@pytest.mark.parametrize("header", ["type,ts,k\n", "type,ts,k", "type,ts,k\r"])
def test_a_header_alone_is_a_file_without_events(tmp_path: Path, header: str) -> None:
    path = tmp_path / "events.csv"
    path.write_text(header, newline="")
    rejects: list[weft.Rejected] = []
    assert list(weft.detect(path, "SELECT * WHERE A AS a FILTER a[k > 1] WITHIN 1 EVENT", rejects=rejects)) == []
    assert rejects == []
