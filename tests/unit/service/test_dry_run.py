"""`weft run --dry-run` refuses what a start would refuse, in the same sentence, and changes nothing. No Java here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from weft import api, engines
from weft.cli.main import app
from weft.errors import InputError, UsageError
from weft.optimizer.pipeline import Choices
from weft.runtime.limits.budgets import Budget
from weft.runtime.limits.guarding import Limits
from weft.runtime.limits.shedding import Shed
from weft.runtime.spark.runs.run import ContinuousRun

QUERY = "SELECT a, b[x] FROM S WHERE A AS a ; B AS b FILTER a[x] < b[x] PARTITION BY [k] WITHIN 50 EVENTS"
NEW = "the checkpoint is new: all queries begin with the first event"


def run_of(folder: Path, query: str = QUERY, checkpoint: str = "checkpoint", **more: Any) -> ContinuousRun:
    (folder / "in").mkdir(exist_ok=True)
    given: dict[str, Any] = {"sink": str(folder / "out"), "checkpoint": str(folder / checkpoint), "lanes": 2, **more}
    return engines.continuous(api.compile(query), [("in", str(folder / "in"))], choices=Choices(), **given)


def begun(folder: Path) -> None:
    """As a run leaves it that has completed a trigger."""
    run = run_of(folder)
    kept = run._agree(2)
    run._succeeding(run._first_job(run._planned(run._program, 0), 2), kept, 2, None)
    spark = folder / "checkpoint" / "spark"
    for log in ("offsets", "commits"):
        (spark / log).mkdir(parents=True)
        (spark / log / "0").write_text('v1\n{"files": 0}\n')
    (spark / "metadata").write_text('{"id": "5"}')
    (folder / "checkpoint" / "weft" / "files.jsonl").write_text("")
    (folder / "out" / "matches-00000000.jsonl").write_text("{}\n")


def files_in(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def note(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "checkpoint" / "weft" / "run.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def damage(folder: Path) -> None:
    (folder / "checkpoint" / "weft" / "run.json").write_text("{")


def damage_spark(folder: Path) -> None:
    (folder / "checkpoint" / "spark" / "offsets" / "0").write_text("")


def test_a_run_that_would_begin_or_go_on_says_so_and_changes_nothing(tmp_path: Path) -> None:
    assert run_of(tmp_path, sink=str(tmp_path / "deep" / "out"), rejects=str(tmp_path / "no")).kept() == NEW
    assert [path.name for path in tmp_path.rglob("*")] == ["in"]
    begun(tmp_path)
    before = files_in(tmp_path)
    assert run_of(tmp_path).kept() == "q: keeps its state"
    assert run_of(tmp_path, QUERY.replace("<", ">")).kept() == "q: begins anew, it has changed"
    assert "q: goes over to other lanes" in run_of(tmp_path, lanes=3).kept()
    assert files_in(tmp_path) == before


REFUSED: dict[str, tuple[Callable[[Path], object], dict[str, Any], str]] = {
    "new checkpoint, old sink": (lambda folder: None, {"checkpoint": "another"}, "matches of another run"),
    "lost note": (
        lambda folder: shutil.rmtree(folder / "checkpoint" / "weft"),
        {},
        "matches of another run|is damaged",
    ),
    "damaged note": (damage, {}, r"cannot be used: weft/run\.json"),
    "strange note": (lambda folder: note(folder, lambda kept: []), {}, "made by another version"),
    "note without lanes": (lambda folder: note(folder, lambda kept: kept.pop("lanes") and kept), {}, "another version"),
    "other version": (lambda folder: note(folder, lambda kept: {**kept, "format": 0}), {}, "another version"),
    "other columns": (lambda folder: None, {"time": "at"}, "other columns or sources"),
    "damaged log": (damage_spark, {}, "is damaged"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_start_refuses_is_refused_in_the_same_sentence(tmp_path: Path, case: str) -> None:
    begun(tmp_path)
    change, more, why = REFUSED[case]
    change(tmp_path)
    before = files_in(tmp_path)
    with pytest.raises(UsageError, match=why) as told:
        run_of(tmp_path, **more).kept()
    assert files_in(tmp_path) == before
    with pytest.raises(UsageError) as started:
        run_of(tmp_path, **more)._agree(2)
    assert str(told.value) == str(started.value)


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"limits": Limits({"other": Budget(matches_per_batch=5)})}, "no such query"),
        ({"limits": Limits(None, Shed(above=5)), "strategy": "rank"}, "must see the same events"),
        ({"strategy": "nothing"}, "nothing"),
    ],
)
def test_limits_and_strategies_that_cannot_be_are_refused(
    tmp_path: Path, more: dict[str, Any], why: str, is_new: bool
) -> None:
    if not is_new:
        begun(tmp_path)
    with pytest.raises(UsageError, match=why):
        run_of(tmp_path, **more).kept()


def test_to_adapt_does_not_go_with_another_program(tmp_path: Path) -> None:
    begun(tmp_path)
    assert run_of(tmp_path, adapt=True).kept() == "q: keeps its state"
    with pytest.raises(UsageError, match="--adapt does not go together"):
        run_of(tmp_path, QUERY.replace("<", ">"), adapt=True).kept()


@pytest.mark.parametrize("place", ["sink", "checkpoint", "rejects"])
def test_folders_that_cannot_be_made_are_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*file/out: Not a directory"):
        run_of(tmp_path, **{place: str(tmp_path / "file" / "out")})
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "in"]


def test_the_command_ends_with_the_sentence(tmp_path: Path) -> None:
    begun(tmp_path)

    def weft_run(checkpoint: str, source: str = "in") -> Result:
        places = {"--source": f"in={tmp_path / source}", "--sink": tmp_path / "out"}
        given = [str(text) for pair in places.items() for text in pair]
        return CliRunner().invoke(app, ["run", "-q", QUERY, *given, "--checkpoint", checkpoint, "--dry-run"])

    assert weft_run(str(tmp_path / "checkpoint")).stdout == "q: keeps its state\n"
    refused = weft_run(str(tmp_path / "another"))
    assert refused.exit_code == 2  # as the start itself
    assert "matches of another run" in refused.stderr
    assert NEW not in refused.stdout
    unknown = weft_run(str(tmp_path / "checkpoint"), "nowhere")
    assert unknown.exit_code == 2
    assert "no such folder" in unknown.stderr
