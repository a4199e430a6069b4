"""A checkpoint says which run it is of, and a sink which run writes to it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from weft.errors import UsageError
from weft.runtime.spark.runs.agreement import OWNER, agreed, claim_sink, write_whole


def folder(path: Path, name: str) -> Path:
    made = path / name
    made.mkdir()
    return made


def test_a_checkpoint_keeps_what_the_first_start_said(tmp_path: Path) -> None:
    first = agreed(str(tmp_path), {"format": 1, "lanes": 3})
    again = agreed(str(tmp_path), {"format": 2, "lanes": 4})
    assert first == again
    assert (first["format"], first["lanes"]) == (1, 3)
    assert not list((tmp_path / "weft").glob("*.part"))


@pytest.mark.parametrize("damage", ["", "{", "\x00\x01"])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, damage: str) -> None:
    agreed(str(tmp_path), {"format": 1})
    (tmp_path / "weft" / "run.json").write_text(damage)
    with pytest.raises(UsageError, match=r"^the checkpoint .* cannot be used: [^\n]*$"):
        agreed(str(tmp_path), {"format": 1})


@pytest.mark.parametrize("foreign", ["[1]", "null", '"text"'])
def test_a_file_of_something_else_is_of_no_format(tmp_path: Path, foreign: str) -> None:
    agreed(str(tmp_path), {"format": 1})
    (tmp_path / "weft" / "run.json").write_text(foreign)
    assert agreed(str(tmp_path), {"format": 1}).get("format") is None


def test_a_sink_of_another_run_is_refused(tmp_path: Path) -> None:
    sink = folder(tmp_path, "out")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    claim_sink(sink, one, agreed(one, {}))
    write_whole(sink / "matches-00000000.jsonl", "{}\n")
    claim_sink(sink, one, agreed(one, {}))
    with pytest.raises(UsageError, match="another run"):
        claim_sink(sink, two, agreed(two, {}))


def test_a_sink_with_matches_of_nobody_is_refused_from_the_start(tmp_path: Path) -> None:
    sink = folder(tmp_path, "out")
    write_whole(sink / "matches-00000000.jsonl", "{}\n")
    checkpoint = str(tmp_path / "new")
    kept = agreed(checkpoint, {})
    with pytest.raises(UsageError, match="there twice"):
        claim_sink(sink, checkpoint, kept)
    claim_sink(sink, checkpoint, {name: value for name, value in kept.items() if name != "run"})
    assert not (sink / OWNER).exists()


def test_an_empty_sink_becomes_the_runs_own(tmp_path: Path) -> None:
    sink = folder(tmp_path, "out")
    write_whole(sink / "something else.txt", "")
    checkpoint = str(tmp_path / "new")
    kept = agreed(checkpoint, {})
    claim_sink(sink, checkpoint, kept)
    assert (sink / OWNER).read_text() == kept["run"]


def test_a_sink_that_was_removed_is_not_made_again_at_the_next_start(tmp_path: Path) -> None:
    sink, checkpoint = tmp_path / "out", str(tmp_path / "state")
    claim_sink(sink, checkpoint, agreed(checkpoint, {}))
    shutil.rmtree(sink)
    claim_sink(sink, checkpoint, agreed(checkpoint, {}))  # nothing was written yet
    (tmp_path / "state" / "spark" / "commits").mkdir(parents=True)
    (tmp_path / "state" / "spark" / "commits" / "0").touch()
    shutil.rmtree(sink)
    with pytest.raises(UsageError, match="was removed after the run had begun"):
        claim_sink(sink, checkpoint, agreed(checkpoint, {}))
    assert not sink.exists()
    claim_sink(tmp_path / "another", checkpoint, agreed(checkpoint, {}))
    assert (tmp_path / "another" / OWNER).exists()
