"""Another program for a run that watches: where it is put, and what happens when the run refuses it. No Spark here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Event, Thread

import pytest

from weft.errors import UsageError
from weft.running import registry
from weft.running.changing import ProgramChange, change, last_change
from weft.running.program_files import ProgramFiles


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "a.ceql").write_text("old")
    return folder


@contextmanager
def running(watched: list[Path], answer: Callable[[str], ProgramChange | None]) -> Iterator[list[list[str]]]:
    """A run that takes over what it sees, or refuses it; gives what it saw."""
    registration = registry.Registration("night", {"watched": [str(path) for path in watched]})
    files, seen, stop = ProgramFiles([str(path) for path in watched]), list[list[str]](), Event()

    def look() -> None:
        while not stop.wait(0.01):
            at = time.time()
            if files.have_changed():
                texts = [Path(path).read_text() for path in files.paths() if Path(path).exists()]
                seen.append(texts)
                found = answer(" ".join(texts))
                if found is not None:
                    registration.tell(change={**asdict(found), "at": at})

    thread = Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def told(text: str) -> ProgramChange:
    return (
        ProgramChange(0.0, "no such thing", refused=True)
        if "wrong" in text or not text
        else ProgramChange(0.0, text, ["a"])
    )


def test_a_file_that_is_watched_is_written(folder: Path) -> None:
    with running([folder / "a.ceql"], told):
        found = change("night", "b.ceql", "new")
        assert found is not None
        assert (found.told, found.refused) == ("new", False)
        with pytest.raises(UsageError, match="in its language"):
            change("night", "b.tesla", "new")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a.ceql": "new"}
    assert last_change(registry.entry("night")) == found


def test_in_a_folder_the_file_gives_way_to_one_of_another_name(folder: Path) -> None:
    with running([folder], told) as seen:
        assert change("night", "b.tesla", "new") is not None
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"b.tesla": "new"}
    assert not any({"old", "new"} <= set(texts) for texts in seen)


def test_of_several_programs_the_one_of_the_same_name_is_replaced(folder: Path) -> None:
    (folder / "b.ceql").write_text("other")
    with running([folder], told):
        assert change("night", "b.ceql", "new") is not None
        with pytest.raises(UsageError, match=r"several programs \(a.ceql, b.ceql\)"):
            change("night", "c.ceql", "new")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a.ceql": "old", "b.ceql": "new"}


@pytest.mark.parametrize("name", ["a.ceql", "b.tesla"])
def test_a_program_that_is_refused_is_taken_back(folder: Path, name: str) -> None:
    with running([folder], told), pytest.raises(UsageError, match="keeps running the previous program: no such thing"):
        change("night", name, "wrong")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a.ceql": "old"}


def test_a_run_that_is_at_work_takes_it_over_later(folder: Path) -> None:
    with running([folder], lambda text: None):
        assert change("night", "a.ceql", "new", patience=0.3) is None
    assert (folder / "a.ceql").read_text() == "new"


def test_runs_that_have_ended_or_do_not_watch_are_not_changed(folder: Path) -> None:
    with running([], told), pytest.raises(UsageError, match="--watch"):
        change("night", "a.ceql", "new")
    registry.Registration("gone", {"watched": [str(folder)]}).tell(pid=2**22, birth="never")
    with pytest.raises(UsageError, match="has ended"):
        change("gone", "a.ceql", "new")
    assert (folder / "a.ceql").read_text() == "old"
