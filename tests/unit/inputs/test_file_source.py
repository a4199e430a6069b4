"""Folders that grow: new files are found once, in order, and files that change afterwards are told of."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

import weft
from weft.cli.runs.options import rate_of
from weft.errors import InputError, UsageError
from weft.runtime.reading.order import Reading
from weft.runtime.reading.pacing import Pace
from weft.runtime.watching.triggers import Trigger

pytest.importorskip("pyspark")
from weft.runtime.spark.files.log import Changes, FileLog, Folder, change_of, found_files
from weft.runtime.spark.files.source import SMALL, FileStream, FolderReader
from weft.runtime.spark.runs import run
from weft.runtime.spark.runs.options import RunOptions
from weft.runtime.spark.runs.run import ContinuousRun
from weft.runtime.spark.streams.streaming import lateness_of

TRIGGER = Trigger(number=0, at=0.0, seconds=0.0, matches={}, lanes=(), events=0, late=0, unreadable=0)


def stream_of(folder: Path, log: Path, **more: Any) -> FileStream:
    return FileStream(log_of(folder, log), b"", **more)


def log_of(folder: Path, log: Path, settle: float = 0) -> FileLog:
    return FileLog(str(log), (Folder("s", str(folder), {}),), {".jsonl": "jsonl"}, settle)


def test_a_file_that_grows_after_it_was_found_is_told_of_once(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    stream = stream_of(folder, tmp_path / "log.jsonl")
    first = folder / "a.jsonl"
    first.write_text('{"type":"A","ts":1}\n')
    (found,) = found_files(stream.log, look=True)
    assert (found.path, found.grown) == (str(first), None)
    first.write_text(first.read_text() * 2)
    for _ in range(2):
        _, changed = found_files(stream.log, look=True)
        assert (changed.path, changed.grown) == (str(first), (20, 40))
    reader = FolderReader(stream)
    start = {"files": 1, "ended": 0, "idle": [0]}
    (bundle,) = reader.partitions(start, {**start, "files": 2})
    assert bundle.parts[0].grown == (20, 40)


def written(folder: Path, **sizes: int) -> None:
    folder.mkdir(exist_ok=True)
    for at, (name, size) in enumerate(sizes.items()):
        (folder / f"{name}.jsonl").write_bytes(b" " * size)
        os.utime(folder / f"{name}.jsonl", (1000 + at, 1000 + at))


def test_a_file_that_is_replaced_by_one_of_its_size_is_told_of(tmp_path: Path) -> None:
    log = log_of(tmp_path / "in", tmp_path / "log.jsonl")
    written(tmp_path / "in", a=20)
    found_files(log, look=True)
    assert len(found_files(log, look=True)) == 1
    os.utime(tmp_path / "in" / "a.jsonl", (2000, 2000))
    _, changed = found_files(log, look=True)
    assert changed.grown == (20, 20)
    assert len(found_files(log, look=True)) == 2


def test_changes_are_told_once_and_only_from_now_on(tmp_path: Path) -> None:
    log = log_of(tmp_path / "in", tmp_path / "log.jsonl")
    early = Changes(tmp_path / "log.jsonl")
    assert early.new() == []
    written(tmp_path / "in", a=20, b=20)
    found_files(log, look=True)
    assert early.new() == []
    written(tmp_path / "in", a=20, b=1040)
    found_files(log, look=True)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('[0, "half')  # of an entry that is being written
    (changed,) = early.new()
    assert changed.path == str(tmp_path / "in" / "b.jsonl")
    assert changed.grown is not None
    assert change_of(changed.grown).startswith("had 20 bytes when it was found and has 1,040 now: ")
    assert early.new() == []
    assert Changes(tmp_path / "log.jsonl").new() == []


def test_a_run_logs_the_files_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = RunOptions(sink=str(tmp_path / "out"), checkpoint=str(tmp_path / "kept"))
    written(tmp_path / "in", a=20)
    log = log_of(tmp_path / "in", tmp_path / "kept" / "weft" / "files.jsonl")
    running = ContinuousRun(weft.compile("SELECT * WHERE A"), [("s", str(tmp_path / "in"))], options, {}, {})
    lines: list[str] = []
    monkeypatch.setattr(run.LOG, "warning", lambda text, *values: lines.append(text % values))
    for size in (20, 30, 30):
        written(tmp_path / "in", a=size)
        found_files(log, look=True)
        for watcher in running._sink.watchers:
            watcher(TRIGGER)
    (line,) = lines
    assert line.startswith(f"the file {tmp_path / 'in' / 'a.jsonl'} had 20 bytes when it was found and has 30 now: ")


def test_a_file_is_read_when_it_has_settled(tmp_path: Path) -> None:
    written(tmp_path / "in", old=1)
    (tmp_path / "in" / "new.jsonl").write_text("{}\n")
    waiting = log_of(tmp_path / "in", tmp_path / "log.jsonl", settle=3600)
    assert [os.path.basename(found.path) for found in found_files(waiting, look=True)] == ["old.jsonl"]
    at_once = log_of(tmp_path / "in", tmp_path / "log.jsonl")
    assert [os.path.basename(found.path) for found in found_files(at_once, look=True)] == ["old.jsonl", "new.jsonl"]


def test_a_file_settles_though_the_clock_was_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "in", early=1)
    waiting = log_of(tmp_path / "in", tmp_path / "log.jsonl", settle=10)
    passed = [0.0]
    monkeypatch.setattr(time, "time_ns", lambda: 5)  # long before the file was written
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    for passed[0] in (0.0, 9.0):
        assert found_files(waiting, look=True) == []
    written(tmp_path / "in", early=2)  # it has changed: it is watched anew
    passed[0] = 11.0
    assert found_files(waiting, look=True) == []
    passed[0] = 21.0
    assert [found.size for found in found_files(waiting, look=True)] == [2]


def test_a_trigger_takes_so_many_files_and_bytes(tmp_path: Path) -> None:
    written(tmp_path / "in", a=10, b=10, c=100, d=10, e=1)
    reader = FolderReader(stream_of(tmp_path / "in", tmp_path / "log", files_per_trigger=2, bytes_per_trigger=50))
    offset = {"files": 0, "ended": 0, "idle": [0], "now": 0}
    taken = []
    while (latest := reader.latestOffset(offset, ReadAllAvailable()))["files"] > offset["files"]:
        assert latest["now"] > 0  # the clock by which events that are ahead are judged, also when it is tried again
        offset = latest
        taken.append(offset["files"])
    assert taken == [2, 3, 5]  # one is taken however large it is
    assert latest == offset  # nothing new, nothing to do


def test_small_files_share_a_task(tmp_path: Path) -> None:
    written(tmp_path / "in", a=10, b=10, c=SMALL, d=10, e=1)
    reader = FolderReader(stream_of(tmp_path / "in", tmp_path / "log", tasks=4))
    start = {"files": 0, "ended": 0, "idle": [0], "now": 0}
    parts = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    assert [[part.number for part in bundle.parts] for bundle in parts] == [[0, 1], [2], [3, 4]]


@pytest.mark.parametrize("damage", [b"\xff\xfe\n", b"{}\n", b'["a", 3]\n', b"[0]\n", b"null\n", b"[0, 1, 2\n"])
def test_a_damaged_log_is_one_sentence(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "log").write_bytes(damage)
    with pytest.raises(UsageError, match="the checkpoint is damaged"):
        found_files(log_of(tmp_path / "in", tmp_path / "log"), look=True)


def test_a_log_that_lost_files_is_one_sentence(tmp_path: Path) -> None:
    written(tmp_path / "in", a=10, b=10)
    reader = FolderReader(stream_of(tmp_path / "in", tmp_path / "log"))
    start = {"files": 0, "ended": 0, "idle": [0], "now": 0}
    latest = reader.latestOffset(start, ReadAllAvailable())
    (tmp_path / "log").write_text((tmp_path / "log").read_text().splitlines()[0] + "\n")
    with pytest.raises(UsageError, match="fewer files than were read"):
        reader.partitions(start, latest)


def test_a_log_without_sizes_is_still_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text("{}\n")
    log = tmp_path / "log.jsonl"
    log.write_text(f'[0, "{folder / "a.jsonl"}"]\n')
    assert [os.path.basename(found.path) for found in found_files(log_of(folder, log), look=True)] == ["a.jsonl"]


def test_a_stream_without_a_watermark_is_warned_of() -> None:
    schema = StructType()
    job: Any = SimpleNamespace(reading=Reading())
    with pytest.warns(UserWarning, match="has no watermark"):
        assert lateness_of(schema, job, None).delay == 0
    assert lateness_of(schema, job, 5).delay == 5


# ---------------------------------------------------------------- throttling


def test_a_pace_waits_for_as_long_as_events_came_too_soon() -> None:
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(100.0, lambda: now[0], sleep)
    for _ in range(3):
        pace.keep(50)
    assert slept == [0.5, 0.5, 0.5]
    now[0] += 10
    pace.keep(50)  # it is late anyway
    assert len(slept) == 3
    Pace(None, lambda: now[0], sleep).keep(10**9)
    assert len(slept) == 3


def test_a_rate_is_shared_out_to_the_tasks_of_a_trigger_of_one_file(tmp_path: Path) -> None:
    written(tmp_path / "in", a=10, b=20, c=30)
    reader = FolderReader(stream_of(tmp_path / "in", tmp_path / "log.jsonl", rate=100.0, tasks=4))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end["files"] == 1
    (bundle,) = reader.partitions(start, end)
    assert bundle.rate == 100.0
    bundles = reader.partitions(start, {**end, "files": 3, "idle": [1]})
    assert sum(own.rate for own in bundles) == 100.0
    with pytest.raises(UsageError, match="events in a second above 0"):
        RunOptions("out", "state", rate=0)


def _work() -> Any:
    from weft.connectors.files import READERS
    from weft.plan.planner import plan
    from weft.runtime.spark.files.work import FileWork
    from weft.runtime.spark.jobs.job import job_of

    return FileWork(job_of(plan(weft.compile("SELECT * FROM S WHERE A")), Reading(), 1), dict(READERS))


def test_a_file_that_is_gone_is_a_reject_and_the_run_goes_on(tmp_path: Path) -> None:
    from weft.runtime.data import blocks

    (rows,) = _work().runs(str(tmp_path / "a.jsonl"), "jsonl", 0, 0, {})
    (reject,) = blocks.unpacked_rows(rows.column("rejects")[0].as_buffer()).to_pylist()
    assert reject["reason"].startswith("gone: the file was found")
    assert "a.jsonl" in str(reject)


def test_a_folder_that_is_gone_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder of .* is gone"):
        list(_work().runs(str(tmp_path / "unmounted" / "a.jsonl"), "jsonl", 0, 0, {}))


def test_a_clock_that_is_set_back_makes_no_event_look_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.runtime.spark.files import source

    written(tmp_path / "in", a=5)
    reader = FolderReader(stream_of(tmp_path / "in", tmp_path / "log.jsonl"))
    monkeypatch.setattr(source.time, "time_ns", lambda: 10**18)
    first = reader.latestOffset(reader.initialOffset())
    assert first["now"] == 10**18
    written(tmp_path / "in", b=5)
    monkeypatch.setattr(source.time, "time_ns", lambda: 10**17)
    assert reader.latestOffset(first) == {**first, "files": 2, "now": 10**18}


def test_a_source_with_a_rate_of_its_own_gives_one_file_in_a_trigger(tmp_path: Path) -> None:
    for name in ("trades", "quotes"):
        written(tmp_path / name, a=10, b=20)
    folders = tuple(Folder(name, str(tmp_path / name), {}) for name in ("trades", "quotes"))
    log = FileLog(str(tmp_path / "log.jsonl"), folders, {".csv": "csv", ".jsonl": "jsonl"})
    reader = FolderReader(FileStream(log, b"", rates=(1000.0, None)))
    start, taken, rates = reader.initialOffset(), [], []
    for _ in range(3):
        end = reader.latestOffset(start, ReadAllAvailable())
        bundles = reader.partitions(start, end)
        taken.append([sum(part.source == source for own in bundles for part in own.parts) for source in (0, 1)])
        rates += [own.rate for own in bundles if own.parts[0].source == 0]
        start = end
    assert [one for one, _ in taken if one] == [1, 1]
    assert sum(other for _, other in taken) == 2
    assert rates == [1000.0, 1000.0]


def test_rates_are_for_all_sources_or_by_their_names() -> None:
    assert rate_of(None) is None
    assert rate_of(["500"]) == 500.0
    assert rate_of(["trades=1000", "quotes=2.5"]) == {"trades": 1000.0, "quotes": 2.5}
    for wrong, said in ((["x"], "NAME=N"), (["5", "a=3"], "once for all")):
        with pytest.raises(UsageError, match=said):
            rate_of(wrong)
    with pytest.raises(UsageError, match="above 0"):
        RunOptions("out", "state", rate={"a": 0.0})
