"""Large files that are read at a rate: cut into parts that together are the file, one in a trigger."""

from __future__ import annotations

import gzip
import json
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
from weft.connectors.files import READERS
from weft.runtime.reading.order import EventSource, Reading
from weft.runtime.spark.files.batches import FilePlace
from weft.runtime.spark.files.log import FileLog, Folder, Found, found_files
from weft.runtime.spark.files.parts import WHOLE, FilePart, next_part, rows_per_part
from weft.runtime.spark.files.source import FileStream, FolderReader

ROWS = [{"type": "AB"[n % 2], "ts": n, "x": n % 7, "s": "line\nbreak" if n % 5 == 0 else f"t{n}"} for n in range(57)]
FORMATS = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet"}


def written(place: Path, name: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    place.mkdir(exist_ok=True)
    path, table = place / name, pa.Table.from_pylist(rows)
    if ".parquet" in name:
        pq.write_table(table, path, row_group_size=10)
    elif ".csv" in name:
        pyarrow.csv.write_csv(table, path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")  # the last line has no end
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path


def rows_of(place: FilePlace) -> list[tuple[Any, ...]]:
    """The events of a file or a part, with their lines."""
    found = []
    for chunk in place.chunks(Reading(), READERS):
        (batch,) = EventSource(lambda chunk=chunk: [chunk], Reading())  # type: ignore[misc]
        lines = [chunk.place(row)[1] if chunk.place else 0 for row in range(chunk.length)]
        texts = [batch.columns["s"].value(row) for row in range(len(batch))]
        found += zip(lines, batch.ends.tolist(), batch.types.to_pylist(), texts, strict=True)
    return found


def parts_of(path: Path, form: str, rows: int) -> list[FilePart]:
    size, found = path.stat().st_size, []
    part = next_part(str(path), form, size, rows)
    while part is not None:
        found.append(part)
        part = next_part(str(path), form, size, rows, part)
    return found


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv", "e.parquet", "e.jsonl.gz", "e.csv.gz"])
@pytest.mark.parametrize("rows", [1, 10, 13, 56, 57, 1000])
def test_parts_are_the_file_together(tmp_path: Path, name: str, rows: int) -> None:
    path, form = written(tmp_path, name), FORMATS["." + name.split(".")[1]]
    places = [FilePlace(str(path), form, {}, None, part) for part in parts_of(path, form, rows)]
    each = [rows_of(FilePlace.unpacked(place.packed())) for place in places]
    assert list(chain(*each)) == rows_of(FilePlace(str(path), form, {}))
    assert sum(map(len, each)) == len(ROWS)
    assert max(map(len, each)) <= rows
    assert rows > 56 or len(places) >= len(ROWS) // rows
    assert rows < 1000 or [place.part for place in places] == [WHOLE]


def test_a_part_goes_into_the_log_when_the_one_before_was_read(tmp_path: Path) -> None:
    folders = tuple(Folder(name, str(tmp_path / name), {}) for name in ("slow", "fast", "free"))
    for folder in folders:
        written(Path(folder.path), "e.jsonl")
    log = FileLog(str(tmp_path / "log.jsonl"), folders, FORMATS, part_rows=(10, 30, None))
    reader = FolderReader(FileStream(log, b"", rates=(10.0, 30.0, None)))
    start, taken = reader.initialOffset(), []
    for _ in range(8):
        end = reader.latestOffset(start)
        taken.append([(part.source, part.part.first) for own in reader.partitions(start, end) for part in own.parts])
        start = end
    taken = [sorted(one) for one in taken]
    assert taken[0] == [(0, 0), (1, 0), (2, 0)]
    assert taken[1] == [(0, 10), (1, 30)]
    assert taken[2:6] == [[(0, 20)], [(0, 30)], [(0, 40)], [(0, 50)]]
    assert taken[6:] == [[], []]
    assert len(found_files(log, look=True)) == 9  # and no part twice


def test_a_new_file_does_not_wait_for_all_of_a_large_one(tmp_path: Path) -> None:
    folders = (Folder("slow", str(tmp_path / "slow"), {}), Folder("free", str(tmp_path / "free"), {}))
    written(Path(folders[0].path), "e.csv")
    Path(folders[1].path).mkdir()
    log = FileLog(str(tmp_path / "log.jsonl"), folders, FORMATS, part_rows=(10, None))
    assert [Found(*one).part for one in found_files(log, look=True, read=0)] == [FilePart(0, 10, total=70)]
    written(Path(folders[1].path), "new.jsonl")
    found = found_files(log, look=True, read=1)
    assert [(one.source, tuple(one.part)[:2]) for one in found] == [(0, (0, 10)), (0, (10, 20)), (1, ())]
    everything = found_files(log, look=True)
    assert tuple(everything[-1].part)[1] == -1
    assert found_files(log, look=True) == found_files(log, look=False)
    assert len(everything) == 8


def test_a_file_that_is_gone_or_damaged_has_one_more_part(tmp_path: Path) -> None:
    path = written(tmp_path, "e.parquet")
    first = next_part(str(path), "parquet", 0, 10)
    path.unlink()
    assert next_part(str(path), "parquet", 0, 10) == WHOLE
    assert next_part(str(path), "jsonl", 10, 10, FilePart(0, 10, 0, 5)) == FilePart(10)
    assert first == FilePart(0, 10, total=57)
    assert [rows_per_part(rate) for rate in (None, 0.2, 2.5, 1000.0)] == [None, 1, 3, 1000]
