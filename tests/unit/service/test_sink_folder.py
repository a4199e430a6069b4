"""A sink folder that is removed while a run is at work is told of, and never made again in silence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
from weft.errors import InputError, UsageError
from weft.runtime.data import blocks
from weft.runtime.reading import kinds
from weft.runtime.spark.runs.agreement import agreed, claim_sink
from weft.runtime.spark.runs.sink import FileSink
from weft.runtime.spark.runs.sink_parts import write_whole


def test_a_sink_that_was_removed_is_not_made_again(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path / "out"), None, "jsonl", ["q"])
    sink.begin()
    assert (tmp_path / "out").is_dir()
    shutil.rmtree(tmp_path / "out")
    for ask in (sink.begin, lambda: sink.write(None, 3)):  # type: ignore[arg-type] # nothing of it is looked at
        with pytest.raises(UsageError, match="was removed after the run had begun"):
            ask()
    with pytest.raises(UsageError, match="cannot write to"):
        write_whole(tmp_path / "out" / "matches-00000003.jsonl", b"x")
    assert not (tmp_path / "out").exists()


def test_a_sink_that_somebody_made_again_is_not_taken_for_the_runs_own(tmp_path: Path) -> None:
    checkpoint, out = str(tmp_path / "state"), tmp_path / "out"
    claim_sink(out, checkpoint, agreed(checkpoint, {}))
    sink = FileSink(str(out), None, "jsonl", ["q"])
    sink.begin()
    shutil.rmtree(out)
    out.mkdir()
    with pytest.raises(UsageError, match="was removed after the run had begun"):
        sink.write(None, 3)  # type: ignore[arg-type] # nothing of it is looked at
    assert not any(out.iterdir())


def test_more_texts_than_an_array_holds_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "_texts", kinds._texts)
    many = pa.chunked_array([["a"], ["b"]])
    monkeypatch.setattr(kinds.pa, "array", lambda *given: many)
    with pytest.raises(InputError, match="more than 2 GiB of different texts"):
        kinds.column_of_values(["a", "b"])


def test_dictionaries_that_cannot_be_joined_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    monkeypatch.setattr(blocks.pa, "concat_arrays", refuse)
    monkeypatch.setattr(blocks.pa, "chunked_array", refuse)
    with pytest.raises(InputError, match="more than 2 GiB of different texts"):
        blocks.join([pa.array(["a"]), pa.array(["b"])], [1, 1])
