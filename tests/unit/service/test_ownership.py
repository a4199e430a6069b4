"""A checkpoint has one owner: others are refused, take over when it is gone, and fence it off."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from weft.errors import UsageError
from weft.runtime.spark.runs import ownership
from weft.runtime.spark.runs.ownership import Owner, Ownership, read_owner

HOLD = (
    "import sys; from weft.runtime.spark.runs.ownership import Ownership; "
    "Ownership(sys.argv[1]).acquire(); print('mine', flush=True); sys.stdin.read()"
)


def _owner(tmp_path: Path) -> Path:
    return tmp_path / "weft" / "owner.json"


def test_a_second_process_is_refused_and_takes_over_when_the_first_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "mine\n"
        second = Ownership(str(tmp_path))
        with pytest.raises(UsageError, match=f"in use by process {first.pid} on this host"):
            second.acquire()
        first.kill()
        first.wait()
        second.acquire()
        assert second.epoch == 2
        second.check()
        second.release()


def test_the_java_process_of_an_owner_must_have_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on for a while without the process that started it, and could commit a trigger."""
    hold = HOLD.replace("acquire();", "acquire(); own.name_java(int(sys.argv[2]));")
    hold = hold.replace("Ownership(sys.argv[1]).", "own = Ownership(sys.argv[1]); own.")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as java:
        command = [sys.executable, "-c", hold, str(tmp_path), str(java.pid)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
            assert first.stdout is not None
            assert first.stdout.readline() == "mine\n"
            first.kill()
        own = Ownership(str(tmp_path))
        with monkeypatch.context() as patch:
            patch.setattr(ownership, "JAVA_ENDS", 0.0)
            with pytest.raises(UsageError, match=f"in use by the Java process {java.pid} of a run that has ended"):
                own.acquire()
        monkeypatch.setattr(ownership.time, "sleep", lambda _: java.kill())
        own.acquire()  # waits for its end
        assert own.epoch == 2
        own.name_java(None)  # of a Spark elsewhere nothing is known
        own.check()
        own.release()


def test_an_owner_that_was_taken_over_from_writes_nothing_more(tmp_path: Path) -> None:
    first, second = Ownership(str(tmp_path)), Ownership(str(tmp_path))
    first.acquire()
    first.check()
    second.acquire()  # the same process may
    with pytest.raises(UsageError, match=r"taken over by process .*epoch 2.*this run \(epoch 1\) writes nothing more"):
        first.check()
    first.release()  # it is not the owner any more: nothing changes
    second.check()
    second.release()
    third = Ownership(str(tmp_path))
    third.acquire()
    assert third.epoch == 3
    third.release()


def test_an_owner_on_another_host_is_gone_when_it_is_silent(tmp_path: Path) -> None:
    _owner(tmp_path).parent.mkdir()
    _owner(tmp_path).write_text(json.dumps({"host": "elsewhere/x", "pid": 7, "born": "1", "epoch": 4}))
    with pytest.raises(UsageError, match=r"process 7 on elsewhere \(epoch 4\), which gave a sign of life"):
        Ownership(str(tmp_path)).acquire()
    long_ago = _owner(tmp_path).stat().st_mtime - ownership.SILENT - 5
    os.utime(_owner(tmp_path), (long_ago, long_ago))
    own = Ownership(str(tmp_path))
    own.acquire()
    assert own.epoch == 5
    own.release()
    assert read_owner(_owner(tmp_path)) is not None
    assert json.loads(_owner(tmp_path).read_text())["released"]


def test_signs_of_the_future_are_of_a_clock_that_was_set_back(tmp_path: Path) -> None:
    _owner(tmp_path).parent.mkdir()
    _owner(tmp_path).write_text(json.dumps({"host": "elsewhere/x", "pid": 7, "born": "1", "epoch": 4}))
    claim = tmp_path / "weft" / "owner-5.claim"
    claim.touch()
    later = claim.stat().st_mtime + 86_400
    for path in (_owner(tmp_path), claim):
        os.utime(path, (later, later))
    own = Ownership(str(tmp_path))
    own.acquire()
    assert own.epoch == 6
    own.release()


def test_of_two_that_take_it_at_once_one_is_the_owner(tmp_path: Path) -> None:
    first = Ownership(str(tmp_path))
    first.acquire()
    first.release()
    (tmp_path / "weft" / "owner-2.claim").touch()  # another has just claimed the next epoch
    with pytest.raises(UsageError, match="at this moment"):
        Ownership(str(tmp_path)).acquire()


def _ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_claim_of_a_process_that_has_died_holds_nobody_up(tmp_path: Path) -> None:
    """It died between its claim and its note."""
    _owner(tmp_path).parent.mkdir()
    claimer = Owner(ownership.this_host(), _ended_process(), "its birth", 1)
    (tmp_path / "weft" / "owner-1.claim").write_text(json.dumps(claimer.__dict__))
    own = Ownership(str(tmp_path))
    own.acquire()
    assert own.epoch == 2  # nobody has the epoch of another
    own.release()


def test_a_claim_whose_note_cannot_be_written_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    own = Ownership(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(UsageError, match="No space left"):
            own.acquire()
    other = Ownership(str(tmp_path))
    other.acquire()
    assert other.epoch == 1
    other.release()


def test_an_owner_that_is_alive_stays_it_when_its_note_is_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "mine\n"
        _owner(tmp_path).unlink()
        with pytest.raises(UsageError, match=f"in use by process {first.pid} on this host"):
            Ownership(str(tmp_path)).acquire()
        first.kill()


def test_who_was_slow_to_claim_does_not_replace_a_later_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It had read the note of the first owner when the second and the third came and went."""
    for _ in range(3):
        own = Ownership(str(tmp_path))
        own.acquire()
        own.release()
    late, first = Ownership(str(tmp_path)), Owner("elsewhere/x", 7, "1", 1, released=True)
    seen = iter([first, read_owner(_owner(tmp_path))])
    monkeypatch.setattr(ownership, "read_owner", lambda _: next(seen))
    monkeypatch.setattr(late, "_claims", list)  # as they were then
    with pytest.raises(UsageError, match="at this moment"):
        late.acquire()
    monkeypatch.undo()
    now = read_owner(_owner(tmp_path))
    assert now is not None
    assert now.epoch == 3


def test_a_number_that_another_process_has_now_is_no_owner(tmp_path: Path) -> None:
    _owner(tmp_path).parent.mkdir()
    here = ownership.this_host()
    other = Owner(here, os.getppid(), "another birth", 1)
    _owner(tmp_path).write_text(json.dumps({**other.__dict__}))
    own = Ownership(str(tmp_path))
    own.acquire()
    own.release()


def test_an_owner_whose_note_was_lost_is_still_followed_by_a_larger_epoch(tmp_path: Path) -> None:
    for epoch in (1, 2, 3):
        own = Ownership(str(tmp_path))
        own.acquire()
        assert own.epoch == epoch
        own.release()
    _owner(tmp_path).unlink()
    own.acquire()
    assert own.epoch == 4
    own.release()


def test_signs_of_life_go_on_when_the_note_cannot_be_read_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Ownership(str(tmp_path))
    own.acquire()
    mine = read_owner(_owner(tmp_path))
    assert mine is not None
    others = Owner("elsewhere/x", 7, "1", mine.epoch + 1)
    seen = iter([None, mine, others, mine])
    monkeypatch.setattr(ownership, "read_owner", lambda _: next(seen))
    monkeypatch.setattr(ownership, "BEAT", 0.0)
    own._beat(mine, threading.Event())
    assert list(seen) == [mine]  # the first that is another's ended it
    monkeypatch.undo()
    own.release()


def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(UsageError, match=r"cannot write to the checkpoint .*No space left.*nothing in it is damaged"):
        Ownership(str(tmp_path)).acquire()


def test_an_unreadable_note_of_the_owner_is_none(tmp_path: Path) -> None:
    _owner(tmp_path).parent.mkdir()
    _owner(tmp_path).write_text("{")
    own = Ownership(str(tmp_path))
    own.acquire()
    assert own.epoch == 1
    own.release()
