"""A damaged checkpoint is refused in one sentence, which names the file; so are failures of Spark."""

from __future__ import annotations

import errno
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
from py4j.protocol import Py4JError

from weft.errors import BudgetError, InputError, UsageError
from weft.runtime.spark.detect import failing_in_words
from weft.runtime.spark.files.log import FileLog, Folder, found_files
from weft.runtime.spark.lanes.state_files import DamagedState, LaneFiles, state_names
from weft.runtime.spark.runs import verifying
from weft.runtime.spark.runs.agreement import agreed
from weft.runtime.spark.runs.checkpoint_files import check_files, remove_unfinished
from weft.runtime.spark.runs.failures import is_passing, reason_in, told
from weft.runtime.spark.runs.verifying import find_damage

FILES = {
    "spark/metadata": '{"id":"452b7a16"}',
    "spark/offsets/0": 'v1\n{"batchWatermarkMs":0}\n{"files": 1, "ended": 0, "idle": [0], "now": 5}',
    "spark/offsets/1": 'v1\n{"batchWatermarkMs":0}\n{"files": 2, "ended": 0, "idle": [0], "now": 9}',
    "spark/commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    "spark/commits/1": 'v1\n{"nextBatchWatermarkMs":0}',
    "weft/files.jsonl": '[0, "in/0.jsonl", 5, -1, 1]\n[0, "in/1.jsonl", 5, -1, 2]\n',
    "weft/run.json": json.dumps({"format": 1, "program": "x", "lanes": 2, "run": "y"}),
}


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def noise(path: Path) -> None:
    path.write_bytes(b"\xff\x00noise\n")


def nothing(path: Path) -> None:
    path.write_bytes(b"")


WAYS = (half, noise, nothing, Path.unlink)


def written(folder: Path) -> Path:
    for name, text in FILES.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


def test_a_sound_checkpoint_is_taken(tmp_path: Path) -> None:
    check_files(str(tmp_path / "new"))
    check_files(str(written(tmp_path)))
    (tmp_path / "spark" / "commits" / "1").unlink()  # the process died before it was written
    check_files(str(tmp_path))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("spark/")])
def test_damage_to_a_file_of_sparks_is_one_sentence(tmp_path: Path, name: str, way: Callable[[Path], None]) -> None:
    if way is Path.unlink and name in ("spark/commits/0", "spark/commits/1", "spark/offsets/0"):
        pytest.skip("a run goes on without it")
    way(written(tmp_path) / name)
    with pytest.raises(
        UsageError, match=f"is damaged \\({name} is (not whole|missing)\\): use a copy of it"
    ) as refused:
        check_files(str(tmp_path))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_damage_to_the_log_of_files_is_one_sentence(tmp_path: Path, way: Callable[[Path], None]) -> None:
    """Files would be left out in silence if it began anew."""
    way(written(tmp_path) / "weft/files.jsonl")
    with pytest.raises(UsageError, match=r"checkpoint .*is damaged") as refused:
        check_files(str(tmp_path))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("way", [half, noise, nothing], ids=lambda way: way.__name__)
def test_damage_to_what_the_run_says_of_itself_is_one_sentence(tmp_path: Path, way: Callable[[Path], None]) -> None:
    way(written(tmp_path) / "weft/run.json")
    with pytest.raises(UsageError, match=r"cannot be used: weft/run\.json") as refused:
        agreed(str(tmp_path), {})
    assert "\n" not in str(refused.value)


def test_an_entry_that_was_never_finished_does_not_keep_a_run_from_beginning(tmp_path: Path) -> None:
    remove_unfinished(str(tmp_path / "new"))
    written(tmp_path)
    left = tmp_path / "spark" / "offsets" / ".0.9f.tmp"
    left.write_bytes(b"")
    remove_unfinished(str(tmp_path))
    assert left.exists()  # Spark knows what to do with it once there are others
    for name in ("offsets/0", "offsets/1", "commits/0", "commits/1"):
        (tmp_path / "spark" / name).unlink()
    remove_unfinished(str(tmp_path))
    assert not left.exists()
    assert (tmp_path / "spark" / "metadata").exists()


def test_who_waits_for_matches_is_told_why_they_do_not_come() -> None:
    def fail(during: BaseException, then: Exception) -> None:
        with failing_in_words():
            try:
                raise during
            finally:
                raise then

    lost = Py4JError("An error occurred while calling o225.getResult")
    with pytest.raises(KeyboardInterrupt):
        fail(KeyboardInterrupt(), lost)
    for gone in (lost, ConnectionRefusedError("Connection refused")):
        with pytest.raises(UsageError, match=r"Java process has ended.*give it more.*`weft run`"):
            fail(OSError("nothing came"), gone)
    with pytest.raises(FileNotFoundError):
        fail(OSError("nothing came"), FileNotFoundError("a.jsonl"))


def _summed(path: Path, data: bytes) -> None:
    """Write a file with Hadoop's checksums beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    sums = b"".join(zlib.crc32(data[at : at + 512]).to_bytes(4, "big") for at in range(0, len(data), 512))
    path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + sums)


INTERRUPTED = [
    "[STREAM_FAILED] Query [id = 5] terminated with exception:  SQLSTATE: XXKST",
    "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] x\nCaused by: java.io.EOFException: ended early",
    "STATE_STORE\nCaused by: java.net.SocketException: Broken pipe",
]


@pytest.mark.parametrize("text", INTERRUPTED)
def test_a_checkpoint_is_damaged_only_if_a_file_fails_verification(tmp_path: Path, text: str) -> None:
    failure = RuntimeError(text)
    state = written(tmp_path) / "spark" / "state" / "0" / "0"
    for version in (1, 2):
        _summed(state / f"{version}.changelog", bytes(range(256)) * 9)
    assert is_passing(failure, str(tmp_path))
    said = str(told(failure, str(tmp_path)))
    assert "is damaged (" not in said
    assert "are whole" in said
    (state / "2.changelog").write_bytes(b"x" * 2304)
    assert not is_passing(failure, str(tmp_path))
    assert "is damaged (spark/state/0/0/2.changelog has a wrong checksum" in str(told(failure, str(tmp_path)))


def test_a_process_that_starts_too_slowly_is_told_as_such(tmp_path: Path) -> None:
    state = written(tmp_path) / "spark" / "state" / "0" / "0"
    _summed(state / "1.changelog", bytes(range(256)) * 9)
    failure = RuntimeError("org.apache.spark.SparkException: Python worker failed to connect back. SQLSTATE: XXKST")
    assert is_passing(failure, str(tmp_path))
    assert "did not start within the ten seconds" in str(told(failure, str(tmp_path)))
    (state / "1.changelog").write_bytes(b"x" * 2304)
    assert "is damaged (" in str(told(failure, str(tmp_path)))


def committed(folder: Path, triggers: int) -> Path:
    """The state files of a lane after so many triggers."""
    for trigger in range(triggers):
        pages = LaneFiles(folder, trigger)
        pages.put("head", b"%d" % trigger)
        pages.commit()
    return folder


def test_missing_state_is_damage(tmp_path: Path) -> None:
    lane = committed(written(tmp_path) / "weft" / "lanes" / "7", 2)
    _summed(tmp_path / "spark" / "metadata", FILES["spark/metadata"].encode())
    assert find_damage(str(tmp_path)) is None
    (tmp_path / "spark" / "metadata").rename(tmp_path / "elsewhere")
    assert "spark/metadata is missing" in str(find_damage(str(tmp_path)))
    (tmp_path / "elsewhere").rename(tmp_path / "spark" / "metadata")
    latest = lane / state_names(lane)[1]
    whole = latest.read_bytes()
    for way in (half, noise, nothing):
        way(latest)
        assert str(find_damage(str(tmp_path))).startswith(f"weft/lanes/7/{latest.name} is not")
        latest.write_bytes(whole)
    latest.unlink()
    assert find_damage(str(tmp_path)) == "weft/lanes/7 has no state of trigger 1"


def test_what_a_run_does_not_need_is_no_damage(tmp_path: Path) -> None:
    lane = committed(written(tmp_path) / "weft" / "lanes" / "7", 3)
    (lane / state_names(lane)[2]).write_bytes(b"noise")  # of a trigger that was not committed: it is begun again
    old = tmp_path / "spark" / "offsets" / "2"
    for number in (2, 3):
        (old.parent / str(number)).write_text(FILES["spark/offsets/1"])
    (old.parent / ".0.crc").write_bytes(b"crc\0")
    (old.parent / "0").unlink()  # Spark was killed when it had removed the entry, and its checksums not yet
    assert find_damage(str(tmp_path)) is None
    (old.parent / ".3.crc").write_bytes(b"crc\0")
    (old.parent / "3").unlink()
    assert find_damage(str(tmp_path)) == "spark/offsets/3 is missing"


def test_files_that_go_while_they_are_looked_at_are_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = committed(written(tmp_path) / "weft" / "lanes" / "7", 2)
    look = verifying.check_lane
    seen = []

    def look_while_it_goes(folder: Path, trigger: int) -> None:
        seen.append(trigger)
        if len(seen) == 1:
            raise DamagedState(lane, "is missing")
        look(folder, trigger)

    monkeypatch.setattr(verifying, "check_lane", look_while_it_goes)
    assert find_damage(str(tmp_path)) is None
    assert len(seen) == 2


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE])
def test_files_that_this_process_may_not_read_are_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    written(tmp_path)

    def refuse(*_given: object) -> bytes:
        raise OSError(number, "for this process", "spark/metadata")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert find_damage(str(tmp_path)) is None
    with pytest.raises(UsageError, match=r"cannot be read .*it is not known to be damaged"):
        check_files(str(tmp_path))


def test_a_log_is_mended_only_by_who_writes_to_it(tmp_path: Path) -> None:
    place = written(tmp_path) / "weft" / "files.jsonl"
    with place.open("a") as file:
        file.write('[0, "in/2')  # a run is about to write the rest
    assert len(found_files(FileLog(str(place), (), {}), look=False)) == 2
    assert place.read_text().endswith('[0, "in/2')
    assert len(found_files(FileLog(str(place), (), {}), look=True)) == 2
    assert place.read_text() == FILES["weft/files.jsonl"]


def test_a_run_that_was_taken_over_from_finds_no_files(tmp_path: Path) -> None:
    place = written(tmp_path) / "weft" / "files.jsonl"
    source = tmp_path / "in"
    source.mkdir()
    (source / "9.jsonl").write_text("")
    former, present = (FileLog(str(place), (Folder("in", str(source), {}),), {".jsonl": "x"}, 0.0, at) for at in (1, 2))
    (place.parent / "owner.json").write_text(json.dumps({"epoch": 2}))
    with pytest.raises(UsageError, match=r"taken over by another run \(epoch 2\): this run \(epoch 1\)"):
        found_files(former, look=True)
    assert len(found_files(present, look=True)) == 3


def test_a_full_disk_and_another_run_are_told_as_such(tmp_path: Path) -> None:
    full = RuntimeError("STATE_STORE\nCaused by: java.io.IOException: No space left on device")
    assert not is_passing(full, str(tmp_path))
    assert "no room left" in str(told(full, str(tmp_path)))
    both = RuntimeError("STREAMING_CHECKPOINT\nMultiple streaming queries are concurrently using file:/c/offsets")
    assert "another run uses" in str(told(both, str(tmp_path)))
    assert "damaged (" not in f"{told(full, str(tmp_path))}{told(both, str(tmp_path))}"


def test_failures_are_told_in_one_sentence() -> None:
    worker = RuntimeError("[STREAM_FAILED] Query [id = 5]\nSparkException: Python worker exited unexpectedly (crashed)")
    state = RuntimeError(
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] x\nCaused by: java.io.EOFException: ended early\n\tat y"
    )
    mistake = RuntimeError("Traceback\n  File x\nweft.errors.InputError: a.jsonl is gone\nmore")
    other = RuntimeError("[STREAM_FAILED] " + "x" * 5000)
    again = RuntimeError("Traceback\nweft.runtime.spark.lanes.state.InterruptedAttempt: task 7 wrote state\nmore")
    assert [is_passing(one, "c") for one in (worker, state, mistake, other)] == [True, True, False, False]
    assert is_passing(again, "c")
    stopped = RuntimeError("[STATE_STORE]\nweft.errors.BudgetError: q: one event completes more than 3 matches\nat x")
    found = told(stopped, "c")
    assert (type(found), str(found)) == (BudgetError, "q: one event completes more than 3 matches")
    found = told(mistake, "c")
    assert (type(found), str(found)) == (InputError, "a.jsonl is gone")
    assert str(told(other, "c")).startswith("Spark stopped the run")
    assert len(reason_in(str(other))) < 310
    sink = RuntimeError(
        "[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. "
        'Reason: Return Message: Traceback (most recent call last):\n  File "a.py", line 1, in call\n    raise e\n'
        "OSError: [Errno 28] No space left on device: 'out/matches-1'\n\n\tat py4j.Protocol.x(Protocol.java:1)"
    )
    assert "(OSError: [Errno 28] No space left on device: 'out/matches-1')" in str(told(sink, "c"))
    assert reason_in("x: Traceback (most recent call last):\n  nothing") == "x:"
