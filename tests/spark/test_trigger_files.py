"""Triggers whose lanes keep their state in files: skewed keys, lanes without events, retries and restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.pipeline import Event, job_for, local, matches_in, packed

from weft import api
from weft.algebra.query import Program
from weft.errors import UsageError
from weft.plan.operators import Plan
from weft.plan.planner import plan
from weft.runtime.reading.order import Reading
from weft.runtime.spark.files.work import FileWork
from weft.runtime.spark.jobs.generations import Generation, first_generation, generation_from_plain, succeeded
from weft.runtime.spark.jobs.job import Job, job_of, successive_job
from weft.runtime.spark.lanes import state as lane_state
from weft.runtime.spark.lanes.state_files import lanes_in, state_names
from weft.runtime.spark.lanes.trigger import TriggerWork
from weft.runtime.spark.runs.seeds import read_files
from weft.runtime.spark.schema import OUTPUT_SCHEMA
from weft.runtime.spark.streams.starting import _state_folder
from weft.runtime.spark.watermark import Lateness

LANES = 4
PROGRAM = "SELECT * WHERE A AS a ; B AS b ; C AS c PARTITION BY [k] WITHIN 20 MILLISECONDS"


@contextmanager
def in_trigger(number: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TriggerWork, "trigger", property(lambda _: number))
        yield


class FileStream:
    """All lanes of a stream, with their state in files."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job, self.folder, self.triggers = job, folder, 0
        self._work = TriggerWork(job, Lateness(3), str(folder))

    def attempt(self, runs: Sequence[pa.RecordBatch]) -> pa.Table:
        """The output of a trigger, which is not over: another attempt may follow."""
        with in_trigger(self.triggers):
            return pa.Table.from_batches(list(self._work.rows(runs)), OUTPUT_SCHEMA)

    def forget(self) -> None:
        """As in other worker processes."""
        lane_state._remembered.clear()


def events_of(seed: int, count: int, keys: Sequence[object]) -> list[Event]:
    chance = Random(seed)
    return [{"type": chance.choice("ABCX"), "ts": at // 2, "k": chance.choice(keys)} for at in range(count)]


KEYS = (["u"], ["u"] * 30 + [1, 2.0, None], list(range(50)))  # all events in one lane, most of them, and all lanes


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(KEYS), st.lists(st.sampled_from(["", "again", "forget"]), min_size=5))
def test_lanes_find_what_one_process_does(
    tmp_path_factory: pytest.TempPathFactory, seed: int, keys: Sequence[object], histories: list[str]
) -> None:
    """A lane may get most of the events, or none but the time; a trigger may be tried twice, and its worker be new."""
    program = api.compile(PROGRAM)
    stream = FileStream(job_for(program, LANES, strategy="key", streaming=True), tmp_path_factory.mktemp("weft"))
    events = events_of(seed, 12 * len(histories), keys)
    output: list[pa.Table] = []
    for number, history in enumerate(histories):
        part = events[12 * number : 12 * number + 12]
        runs = [packed(part[:5], 0, stream.job), packed(part[5:], 1, stream.job)]
        if history == "again":
            first = stream.attempt(runs)
            assert matches_in(stream.attempt(runs[::-1])) == matches_in(first)
            output.append(first)
        else:
            output.append(stream.attempt(runs))
        if history == "forget":
            stream.forget()
        stream.triggers += 1
    output.append(stream.attempt([FileWork(stream.job, {}).end(0)]))
    assert matches_in(pa.concat_tables(output)) == local(program, events)


def test_a_lane_that_receives_only_time_keeps_up_and_stays_small(tmp_path: Path) -> None:
    stream = FileStream(job_for(api.compile(PROGRAM), LANES, strategy="key", streaming=True), tmp_path)
    sizes: list[int] = []
    for number in range(40):
        part: list[Event] = [{"type": "A", "ts": 10 * number + at, "k": "u"} for at in range(10)]
        stream.attempt([packed(part, 0, stream.job)])
        stream.triggers += 1
        lanes = [tmp_path / str(lane) for lane in lanes_in(tmp_path)]
        assert len(lanes) == LANES
        assert all(number in state_names(lane) for lane in lanes)
        sizes.append(sum((lane / state_names(lane)[number]).stat().st_size for lane in lanes))
    assert max(sizes[20:]) < 3 * max(sizes[:10])  # what is past does not make state grow


def test_a_trigger_without_rows_is_no_gap(tmp_path: Path) -> None:
    program = api.compile(PROGRAM)
    stream = FileStream(job_for(program, LANES, strategy="key", streaming=True), tmp_path)
    events = events_of(5, 40, KEYS[2])
    output = []
    for runs in ([packed(events[:20], 0, stream.job)], [], [packed(events[20:], 0, stream.job)], []):
        output.append(stream.attempt(runs))
        stream.triggers += 1
    output.append(stream.attempt([FileWork(stream.job, {}).end(0)]))
    assert matches_in(pa.concat_tables(output)) == local(program, events)


def test_lanes_of_queries_that_ended_have_stopped_and_need_no_state(tmp_path: Path) -> None:
    text = "SELECT * WHERE A AS a ; B AS b WITHIN {} MILLISECONDS"
    for name, ticks in (("kept", 20), ("left", 9), ("new", 5)):
        (tmp_path / f"{name}.ceql").write_text(text.format(ticks))
    kept, left, new = (api.compile(tmp_path / f"{name}.ceql") for name in ("kept", "left", "new"))
    folder = tmp_path / "lanes"
    events, output = events_of(7, 80, ["u"]), []
    reading, number = Reading(), 0
    job = job_of(plan(api.merge_programs([kept, left]), strategy="query", lanes=2), reading, 2, streaming=True)
    generations: tuple[Generation, ...] = (first_generation(job.plan.queries, job.plan, job.lanes),)

    def make(part: Program, first: int) -> Plan:
        return plan(part, first=first, strategy="query", lanes=2)

    for programs in ([kept, left], [kept], [kept, new], [kept, new]):
        written = api.merge_programs(programs)
        if number:
            before = tuple(map(generation_from_plain, json.loads(json.dumps([own.to_plain() for own in generations]))))
            stand = read_files(folder, number - 1, before)
            generations = succeeded(before, written, make, 2, 2, (), stand.trigger).generations
            job = successive_job(job, written, generations, stand.seed)
        stream = FileStream(job, folder)
        stream.triggers = number
        stream.forget()
        output.append(stream.attempt([packed(events[20 * number : 20 * number + 20], 0, job)]))
        number += 1
    needed = {lane.id for own in generations for lane in own.lanes_left}
    assert needed < set(lanes_in(folder))
    stream.triggers = number
    output.append(stream.attempt([FileWork(job, {}).end(0)]))
    found = [match for match in matches_in(pa.concat_tables(output)) if match.query == "kept"]
    assert found == local(kept, events)
    lane = folder / str(min(needed))
    (lane / state_names(lane)[3]).unlink()
    with pytest.raises(UsageError, match="has no state of trigger 3"):
        read_files(folder, 3, generations)


class Conf:
    """A session, as far as its settings are asked for."""

    def __init__(self) -> None:
        self.conf: dict[str, str] = {}


def test_state_is_beside_the_checkpoint(tmp_path: Path) -> None:
    session = Conf()
    for location in (str(tmp_path), f"file://{tmp_path}", f"file:{tmp_path}"):
        assert _state_folder(session, {"checkpointLocation": location}) == tmp_path / "weft"  # type: ignore[arg-type]
    assert _state_folder(session, {"queryName": "q"}).is_dir()  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"use weft\.match"):
        _state_folder(session, {"checkpointlocation": "s3a://bucket/state"})  # type: ignore[arg-type]
