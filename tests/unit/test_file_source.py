"""Folders that grow: new files are found once, in order, and files that change afterwards are told of."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from weft.runtime.reading.order import Reading

pytest.importorskip("pyspark")
from weft.runtime.spark.source import FileStream, Folder, FolderReader, found_files
from weft.runtime.spark.streaming import lateness_of


def stream_of(folder: Path, log: Path) -> FileStream:
    return FileStream((Folder("s", str(folder), {}),), {".jsonl": "jsonl"}, b"", str(log))


def test_a_file_that_grows_after_it_was_found_is_told_of_once(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    stream = stream_of(folder, tmp_path / "log.jsonl")
    first = folder / "a.jsonl"
    first.write_text('{"type":"A","ts":1}\n')
    (found,) = found_files(stream, look=True)
    assert (found.path, found.grown) == (str(first), None)
    first.write_text(first.read_text() * 2)
    for _ in range(2):
        _, changed = found_files(stream, look=True)
        assert (changed.path, changed.grown) == (str(first), (20, 40))
    reader = FolderReader(stream)
    start = {"files": 1, "ended": 0, "idle": [0]}
    (part,) = reader.partitions(start, {**start, "files": 2})
    assert part.grown == (20, 40)


def test_a_log_without_sizes_is_still_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text("{}\n")
    log = tmp_path / "log.jsonl"
    log.write_text(f'[0, "{folder / "a.jsonl"}"]\n')
    assert [os.path.basename(found.path) for found in found_files(stream_of(folder, log), look=True)] == ["a.jsonl"]


def test_a_stream_without_a_watermark_is_warned_of() -> None:
    schema = StructType()
    job: Any = SimpleNamespace(reading=Reading())
    with pytest.warns(UserWarning, match="has no watermark"):
        assert lateness_of(schema, job, None).delay == 0
    assert lateness_of(schema, job, 5).delay == 5
