"""State files of lanes: a trigger that is tried again starts from the one before; long chains are made complete."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from weft.errors import UsageError
from weft.runtime.spark.lanes import state_files
from weft.runtime.spark.lanes.state_files import DamagedState, LaneFiles, check_lane, note_rows, state_names


def run_trigger(folder: Path, trigger: int, changes: dict[str, bytes | None]) -> None:
    files = LaneFiles(folder, trigger)
    for name, page in changes.items():
        if page is None:
            files.remove(name)
        else:
            files.put(name, page)
    files.commit()


CHANGES = st.dictionaries(st.sampled_from("abcd"), st.none() | st.binary(max_size=40), max_size=4)
ATTEMPTS = st.lists(st.lists(CHANGES, min_size=1, max_size=3), max_size=12)  # of each trigger, the last one counts


@settings(max_examples=60, deadline=None)
@given(ATTEMPTS, st.integers(1, 4), st.sampled_from([0, 60]))
def test_pages_are_those_of_the_last_attempt_of_each_trigger(
    tmp_path_factory: pytest.TempPathFactory, triggers: list[list[dict[str, bytes | None]]], longest: int, small: int
) -> None:
    folder = tmp_path_factory.mktemp("lanes") / "3"
    expected: dict[str, bytes] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(state_files, "LONGEST_CHAIN", longest)
        patched.setattr(state_files, "SMALL", small)
        for number, attempts in enumerate(triggers):
            for changes in attempts:
                assert dict(LaneFiles(folder, number).items()) == expected
                run_trigger(folder, number, changes)
            expected |= {name: page for name, page in attempts[-1].items() if page is not None}
            expected = {name: page for name, page in expected.items() if attempts[-1].get(name, page) is not None}
        found = LaneFiles(folder, len(triggers))
        assert dict(found.items()) == expected
        assert {name: found.get(name) for name in "abcd"} == {name: expected.get(name) for name in "abcd"}


def test_files_that_nobody_needs_are_removed(tmp_path: Path) -> None:
    for trigger in range(200):
        run_trigger(tmp_path / "1", trigger, {"head": b"%d" % trigger})
    assert len(list((tmp_path / "1").iterdir())) <= 2 * state_files.LONGEST_CHAIN + 1
    assert dict(LaneFiles(tmp_path / "1", 200).items()) == {"head": b"199"}
    assert dict(LaneFiles(tmp_path / "1", 199).items()) == {"head": b"198"}


def test_triggers_without_rows_leave_the_state_as_it_was(tmp_path: Path) -> None:
    note_rows(tmp_path, 0, 0, are_there=False)
    run_trigger(tmp_path / "1", 1, {"head": b"x"})
    for trigger in (2, 3):
        note_rows(tmp_path, trigger, 0, are_there=False)
    assert dict(LaneFiles(tmp_path / "1", 4).items()) == {"head": b"x"}


def test_a_trigger_whose_output_was_not_taken_is_noticed(tmp_path: Path) -> None:
    run_trigger(tmp_path / "1", 0, {"head": b"x"})
    with pytest.raises(UsageError, match="has no state of trigger 1"):
        LaneFiles(tmp_path / "1", 2)
    with pytest.raises(UsageError, match="has no state of trigger 1"):
        LaneFiles(tmp_path / "1", 2, new=True)
    assert not state_names(tmp_path / "2")
    with pytest.raises(UsageError, match="has no state of trigger 1"):
        LaneFiles(tmp_path / "2", 2)
    assert not dict(LaneFiles(tmp_path / "2", 2, new=True).items())


def test_a_lost_file_is_noticed_though_another_task_had_no_rows(tmp_path: Path) -> None:
    for trigger in range(3):
        note_rows(tmp_path, trigger, 1, are_there=False)
        files = LaneFiles(tmp_path / "4", trigger, task=0)
        files.put("head", b"%d" % trigger)
        files.commit()
    check_lane(tmp_path / "4", 2)
    (tmp_path / "4" / state_names(tmp_path / "4")[2]).unlink()
    with pytest.raises(UsageError, match="has no state of trigger 2"):
        LaneFiles(tmp_path / "4", 3, task=0)
    with pytest.raises(UsageError, match="has no state of trigger 2"):
        LaneFiles(tmp_path / "4", 3)
    with pytest.raises(DamagedState):
        check_lane(tmp_path / "4", 2)
    note_rows(tmp_path, 2, 0, are_there=False)
    note_rows(tmp_path, 2, 0, are_there=True)  # an attempt that did bring rows came after it
    with pytest.raises(UsageError, match="has no state of trigger 2"):
        LaneFiles(tmp_path / "4", 3, task=0)


def test_a_late_attempt_of_a_former_owner_does_not_count(tmp_path: Path) -> None:
    run_trigger(tmp_path / "1", 0, {"head": b"0"})
    former = LaneFiles(tmp_path / "1", 1, epoch=1)
    present = LaneFiles(tmp_path / "1", 1, epoch=2)
    for files, page in ((present, b"new"), (former, b"old")):
        files.put("head", page)
        files.commit()
    assert dict(LaneFiles(tmp_path / "1", 2, epoch=2).items()) == {"head": b"new"}


def test_a_full_disk_is_not_filled_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        run_trigger(tmp_path / "1", 0, {"head": b"0" * 1000})
    assert list((tmp_path / "1").iterdir()) == []


def test_only_the_files_that_are_needed_must_be_whole(tmp_path: Path) -> None:
    for trigger in range(4):
        run_trigger(tmp_path / "1", trigger, {"head": b"%d" % trigger})
    names = state_names(tmp_path / "1")
    (tmp_path / "1" / names[3]).write_bytes(b"noise")  # of a trigger that is not committed: it is begun again
    check_lane(tmp_path / "1", 2)
    (tmp_path / "1" / names[1]).unlink()
    with pytest.raises(DamagedState) as found:
        check_lane(tmp_path / "1", 2)
    assert (found.value.path.name, found.value.why) == (names[1], "is missing")


def test_files_are_smaller_than_pages_that_repeat_themselves(tmp_path: Path) -> None:
    pages = {"arena": bytes(100_000), "events": b"0123456789abcdef" * 5_000}
    run_trigger(tmp_path / "3", 0, dict(pages))
    assert sum(path.stat().st_size for path in (tmp_path / "3").iterdir()) < sum(map(len, pages.values())) // 10
    assert dict(LaneFiles(tmp_path / "3", 1).items()) == pages


def test_files_that_were_not_compressed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(state_files, "CODEC", None)
        patch.setattr(state_files.pa, "compress", lambda data, codec, asbytes: data)
        run_trigger(tmp_path / "3", 0, {"a": b"once", "b": b""})
    run_trigger(tmp_path / "3", 1, {"b": b"twice"})
    assert dict(LaneFiles(tmp_path / "3", 2).items()) == {"a": b"once", "b": b"twice"}
