"""Runs on a real Spark that go on from a damaged checkpoint say so in one sentence, or find what is to be found.

`make chaos-spark`: DAMAGES=… says how many damages are tried, kinds of files in turn, and SEED=… which; 0 is all.
`make test` leaves them out, each costs a run; unit/service/test_damaged_checkpoints.py damages files without one.
Files that a run does not need any more may be damaged without harm.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.chaos.lives import Lives
from tests.chaos.test_spark_kills import PROGRAMS, SEED, expectation, written

from weft import api
from weft.connectors.files import ENDINGS, READERS
from weft.errors import WeftError
from weft.optimizer.pipeline import optimize
from weft.runtime.spark.runs.options import RunOptions, Until
from weft.runtime.spark.runs.run import ContinuousRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAMAGES = int(os.environ.get("WEFT_DAMAGES", "0"))
pytestmark = [
    pytest.mark.skipif("WEFT_DAMAGES" not in os.environ, reason="real runs take minutes: make chaos-spark"),
    pytest.mark.spark,
]
PATIENCE = 60.0  # seconds for a run to end


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def noise(path: Path) -> None:
    path.write_bytes(b"\xff\x00noise\n" * 3)


def nothing(path: Path) -> None:
    path.write_bytes(b"")


WAYS: tuple[Callable[[Path], None], ...] = (half, noise, nothing, Path.unlink)
Damage = tuple[Path, Callable[[Path], None]]


def run_in(folder: Path, until: Until) -> ContinuousRun:
    program = api.merge_programs([api.compile(folder.parent / name) for name in PROGRAMS])
    places = str(folder / "out"), str(folder / "state")
    options = RunOptions(*places, delay=9, lanes=2, partitions=2, files_per_trigger=1, until=until)
    return ContinuousRun(optimize(program), [("in", str(folder.parent / "in"))], options, ENDINGS, READERS, program)


def checkpoint_of(folder: Path, session: SparkSession) -> Lives:
    """A run of several triggers with a checkpoint in `run`, and one more file to read; the events of all files."""
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    lives = Lives(folder, "local", tuple(PROGRAMS), Random(SEED))
    for files in (5, 1):
        for _ in range(files):
            lives.feed()
        run = run_in(folder / "run", "read")
        run.start(session)
        assert run.wait(PATIENCE)
    lives.feed()
    return lives


def damages(state: Path) -> list[Damage]:
    """Every way to damage every file: kinds take turns, in an order that the seed chooses, the latest file first."""
    chance = Random(SEED)
    files = sorted((path for path in state.rglob("*") if path.is_file()), key=lambda path: -path.stat().st_mtime_ns)
    kinds: dict[str, list[Damage]] = {}
    for file in (path.relative_to(state) for path in files):
        kind = re.sub(r"[0-9a-f]{8}-[0-9a-f-]+|\d+", "N", str(file))
        kinds.setdefault(kind, []).extend((file, way) for way in chance.sample(WAYS, len(WAYS)))
    turns = zip_longest(*chance.sample(list(kinds.values()), len(kinds)))
    return [case for turn in turns for case in turn if case is not None]


def outcome(folder: Path, session: SparkSession, expected: Counter[tuple[object, object]]) -> str:
    """What a run on a damaged checkpoint comes to: what it says, or that all is right."""
    run = None
    try:
        run = run_in(folder, "complete")
        run.start(session)
        if not run.wait(PATIENCE):
            return "wrong: it does not end"
    except WeftError as error:
        return f"wrong: more than one line: {error}" if "\n" in str(error) else str(error)
    finally:
        if run is not None:
            run.stop(1.0)
    found = written(folder)
    return "all is found" if found == expected else f"wrong: {(expected - found).total()} lost of {expected.total()}"


def test_damage_is_told_in_one_sentence_or_does_no_harm(spark: SparkSession, tmp_path: Path) -> None:
    expected = expectation(checkpoint_of(tmp_path, spark).events, tmp_path)
    state = tmp_path / "run" / "state"
    wrong = []
    for number, (file, way) in enumerate(damages(state)[: DAMAGES or None]):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(tmp_path / "run", copy)
        way(copy / "state" / file)
        came_to = outcome(copy, spark, expected).replace(str(tmp_path), "")
        print(f"{file} {way.__name__}: {came_to}", flush=True)
        if came_to.startswith("wrong"):
            wrong.append((str(file), way.__name__, came_to))
    assert not wrong
