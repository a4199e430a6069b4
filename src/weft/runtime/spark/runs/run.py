"""`weft run`: a program over growing folders of files, without end or until all is read, exactly once."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from weft.algebra.query import AnyQuery, Program
from weft.errors import UsageError, WeftError
from weft.plan.changes import changed
from weft.plan.operators import Plan
from weft.plan.partitioning.choice import AUTO, MANY_LANES
from weft.plan.planner import plan
from weft.runtime.data.shape import Shape
from weft.runtime.reading.fronts import jump_ticks
from weft.runtime.reading.order import Reading
from weft.runtime.results.shaping import shape_of
from weft.runtime.spark.compat import require_streams, started
from weft.runtime.spark.files.batches import Reader
from weft.runtime.spark.files.log import FileLog
from weft.runtime.spark.jobs.generations import (
    Generation,
    Succession,
    compared,
    first_generation,
    generation_from_plain,
    handed_over,
    planning_parts,
    succeeded,
)
from weft.runtime.spark.jobs.handover import Move
from weft.runtime.spark.jobs.job import Job, job_of, limited, successive_job
from weft.runtime.spark.lanes.trigger import TriggerWork
from weft.runtime.spark.runs.agreement import (
    NEW_RUN,
    agreed,
    check_agreement,
    check_sink,
    claim_sink,
    has_begun,
    note,
    read_note,
)
from weft.runtime.spark.runs.checkpoint_files import check_files, remove_unfinished
from weft.runtime.spark.runs.executors import executors_of
from weft.runtime.spark.runs.failures import JAVA_GONE, MORE_MEMORY, is_passing, own_error, reason_in, told
from weft.runtime.spark.runs.inputs import inputs_of, session_settings
from weft.runtime.spark.runs.moving import change_lines, moves_of
from weft.runtime.spark.runs.options import RunOptions
from weft.runtime.spark.runs.outputs import sink_of, written_stream
from weft.runtime.spark.runs.ownership import Ownership
from weft.runtime.spark.runs.seeds import last_commit, read_files, state_folder
from weft.runtime.spark.runs.stopping import stop_query
from weft.runtime.spark.runs.warning import warners
from weft.runtime.spark.session import STATELESS_SETTINGS, cores, java_process, spark_session, start_workers
from weft.runtime.spark.streams.starting import settings
from weft.runtime.store.pages import FORMAT as LAYOUT
from weft.runtime.watching.triggers import Trigger
from weft.stored import canonical_text

TRIES, FIRST_PAUSE, LONGEST_PAUSE = 8, 1.0, 60.0  # without a trigger between them; seconds
LOG = logging.getLogger("weft.run")


class ContinuousRun:
    """A streaming query that reads folders and writes files of matches."""

    def __init__(
        self,
        program: Program,
        sources: Sequence[tuple[str, str]],
        options: RunOptions,
        formats: Mapping[str, str],
        readers: Mapping[str, Reader],
        written: Program | None = None,
    ) -> None:
        self.options = options
        self._program = program
        self._written = written or program  # as it was before it was optimised: by this it is known
        self._inputs = inputs_of(sources, program, options.type)
        self._formats = formats
        self._readers = readers
        self._owner = Ownership(options.checkpoint)
        self._sink = sink_of(options, self._told_names)
        self._sink.check = self._owner.check
        self._log = Path(options.checkpoint).absolute() / "weft" / "files.jsonl"
        self._names = self._inputs.names(frozenset())  # partitions are known when it starts
        self._sink.watchers += warners(self._log, self._names)
        self._query: StreamingQuery | None = None
        self._begin: Callable[..., StreamingQuery] | None = None
        self._again: float | None = None  # when to start the query once more
        self._tries, self._done = 0, 0
        self._ends = False  # whether the query declares the stream complete that follows all others
        self._session: SparkSession | None = None

    @property
    def counters(self) -> dict[str, int]:
        """Events, matches, late and unreadable events since this process started."""
        return dict(self._sink.counters)

    def watch(self, watcher: Callable[[Trigger], None]) -> None:
        """Have a function called after each trigger, in Spark's thread."""
        self._sink.watchers.append(watcher)

    def start(self, session: SparkSession | None = None) -> None:
        """Start the query, where the checkpoint says it had got to."""
        require_streams("continuous runs")
        options = self.options
        self._owner.acquire()
        job, session = self._job(session)
        self._session = session
        self._begin = partial(self._begun, session, job)
        try:
            self._query = self._begin()
        except (PySparkException, Py4JError) as failure:
            raise told(failure, options.checkpoint) from failure

    def _begun(self, session: SparkSession, job: Job, *, last: bool = False) -> StreamingQuery:
        """The query, started where the checkpoint says it had got to; `last`: the end follows what is there."""
        options, inputs = self.options, self._inputs
        log = FileLog(str(self._log), inputs.folders, dict(self._formats), options.settle, self._owner.epoch)
        stream = inputs.stream(session, log, job, options, self._readers, last=last)
        partitions = inputs.partitions(session, options)
        self._names.update(inputs.names(partitions))
        lateness = inputs.lateness(options, self._program.time_unit, partitions)
        work = TriggerWork(job, lateness, str(state_folder(options.checkpoint)), epoch=self._owner.epoch or 0)
        output = written_stream(inputs.runs(session, stream, job, options, last=last), work, self._sink.work)
        writer = output.writeStream.foreachBatch(self._sink.write).queryName("weft")
        checkpoint = str(Path(options.checkpoint).absolute() / "spark")
        self._sink.begin()
        remove_unfinished(options.checkpoint)
        every = options.every if options.until == "stopped" else None
        with settings(session, STATELESS_SETTINGS):
            return started(writer.option("checkpointLocation", checkpoint), every)

    @property
    def _told(self) -> list[AnyQuery]:
        """The queries whose matches are written."""
        return [query for query in self._program.queries if query.name not in self.options.counted]

    @property
    def _told_names(self) -> list[str]:
        return [query.name for query in self._told]

    def become(self, program: Program, written: Program, counted: frozenset[str] = frozenset()) -> str:
        """Let another program take this one's place when the trigger in progress is done; what it keeps, line by line.

        When something is wrong with it an error says so, and the previous program keeps running.
        """
        before = self._program, self._written, self.options
        self._program, self._written, self.options = program, written, replace(self.options, counted=counted)
        try:
            self.options.limits.guard(self._planned(program, 0).queries)
            self.stop()
            kept = self.kept()  # when the trigger in progress is done, which may be the first
            self._restart()
        except WeftError:
            self._program, self._written, self.options = before
            if self._query is not None and not self._query.isActive:
                self._restart()
            raise
        return kept

    def is_running(self, written: Program) -> bool:
        """Whether a program is the one that runs, as it was written."""
        mine = self._written
        return written.time_unit == mine.time_unit and changed(mine.queries, written.queries).is_none

    def _restart(self) -> None:
        """Start the query with the program as it is now."""
        self._sink.rename(self._told_names)
        self.start(self._session)

    def executors(self) -> list[dict[str, object]]:
        """The executors of the Spark that runs it, as plain data: cores, memory and tasks."""
        active = SparkSession.getActiveSession()
        if self._query is None or active is None or not hasattr(self._query, "_jsq"):
            return []  # of Spark Connect nothing is known
        return executors_of(active)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, that long at most; whether it has ended. An error in the query is raised here."""
        if self._query is None:
            raise UsageError("the run has not been started")
        limit = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if limit is None else max(0.01, limit - time.monotonic())  # Spark takes no 0
            try:
                if self._again is not None:
                    self._start_again(left)
                elif self._query.awaitTermination(left) is not False and self._is_over():
                    self._owner.release()
                    return True
            except (PySparkException, Py4JJavaError) as failure:  # of the query, or of an attempt to start it again
                self._failed(failure)
            except (Py4JError, OSError) as failure:
                raise UsageError(
                    f"{JAVA_GONE}: the run resumes from its checkpoint when it is started again; {MORE_MEMORY}, or "
                    "take less at once (--bytes-per-trigger)"
                ) from failure
            if limit is not None and time.monotonic() >= limit:
                return False

    def _is_over(self) -> bool:
        """Whether nothing follows a query that has ended: the end of a stream from elsewhere than files does."""
        if self._ends or self.options.until != "complete" or not self._inputs.connected or self._begin is None:
            return True
        self._ends = True
        self._begin = partial(self._begin, last=True)
        self._query = self._begin()
        return False

    def _failed(self, failure: Exception) -> None:
        """Try again in a while if a process died; else say what is wrong."""
        self._owner.check()
        done = self._sink.written
        self._tries, self._done = 1 if done > self._done else self._tries + 1, done
        if own_error(failure) is not failure or not is_passing(failure, self.options.checkpoint) or self._tries > TRIES:
            self._owner.release()
            raise told(failure, self.options.checkpoint) from failure
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._tries - 1))
        LOG.warning(
            "work was interrupted, and the run resumes from its checkpoint in %g s (%d of %d): %s",
            pause,
            self._tries,
            TRIES,
            reason_in(str(failure)),
        )
        self._again = time.monotonic() + pause

    def _start_again(self, left: float | None) -> None:
        """Wait, no longer than that, for the time to start the query again, and do so."""
        pause = (self._again or 0.0) - time.monotonic()
        time.sleep(max(0.0, pause if left is None else min(pause, left)))
        if self._again is not None and time.monotonic() >= self._again and self._begin is not None:
            self._again = None
            self._query = self._begin()

    def stop(self, patience: float = 30.0) -> None:
        """Finish the trigger in progress, unless that takes too long, and stop."""
        self._again, self._ends = None, True
        if self._query is not None:
            stop_query(self._query, patience)
        self._owner.release()

    def _job(self, session: SparkSession | None) -> tuple[Job, SparkSession]:
        """The job, with the lanes of all programs that the checkpoint has seen."""
        options = self.options
        session = session or spark_session(settings=session_settings(options, self._inputs))
        self._owner.name_java(java_process(session))
        start_workers(session)
        self._inputs.partitions(session, options)  # a topic that is not there is told before the checkpoint is claimed
        chosen = self._planned(self._program, 0)
        kept = self._agree(options.lanes or cores(session))
        wanted = options.lanes or int(kept["lanes"])
        shape = self._shape(session)
        job = self._succeeding(self._first_job(chosen, wanted, shape), kept, wanted, session)
        self._sink.expect(shape, self._program.time_unit, len(job.lanes), positions=options.positions)
        reading, readers = replace(job.reading, batch_size=1 << 18), dict(self._readers)
        job = replace(limited(job, options.limits), reading=reading, readers=readers, counted=options.counted)
        jump = jump_ticks(options.max_jump, self._program.time_unit)
        return replace(job, topics=self._inputs.topics, jump=jump, tallies=True), session

    @property
    def _reading(self) -> Reading:
        how, unit = self.options, self._program.time_unit
        return Reading(how.time, how.type, time_unit=unit, order=how.order, key=how.key)

    def _first_job(self, chosen: Plan, wanted: int, shape: Shape | None = None) -> Job:
        """Return the job of a run that begins with a plan and a number of lanes."""
        how: Any = {name: getattr(self.options, name) for name in ("partitions", "adapts", "positions")}
        return job_of(chosen, self._reading, wanted, streaming=True, shape=shape, **how)

    def _planned(self, program: Program, first: int) -> Plan:
        """The plan of a program whose queries are numbered from `first` on."""
        how, lanes = self.options, self.options.lanes or MANY_LANES
        return plan(program, first=first, strategy=how.strategy or AUTO, lanes=lanes, statistics=how.statistics)

    def _succeeding(self, job: Job, kept: dict[str, Any], wanted: int, session: SparkSession) -> Job:
        """The job after all programs and lanes that the checkpoint has seen; what began when is noted there."""
        checkpoint = self.options.checkpoint
        known = kept.get("strategy") if wanted == kept["lanes"] else None
        mine = {**kept, "lanes": wanted, "strategy": self.options.strategy or known}
        begun = first_generation(self._written.queries, job.plan, job.lanes)
        before = tuple(map(generation_from_plain, kept.get("generations") or ()))
        if not before or not has_begun(checkpoint):
            self._note({**mine, "partitions": job.partitions or len(job.lanes), "generations": [begun.to_plain()]})
            return job
        change, moves = compared(before, self._written.queries), self._moves(before, kept, job.plan)
        if len(before) == 1 and before[0].is_first and change.is_none and not any(move.is_possible for move in moves):
            self._tell_move(moves)
            if self.options.adapts is not None:
                return replace(job, lanes=before[0].lanes)
            return successive_job(job, self._program, before, None)  # in the form in which it began
        self._check_adapts()
        stand = read_files(state_folder(checkpoint), last_commit(f"{checkpoint}/spark"), before)
        before = handed_over(before, stand.gone)
        after = self._succeeded(before, kept, wanted, moves, stand.trigger)
        self._note({**mine, "generations": [own.to_plain() for own in after.generations]})
        if not change.is_none:
            LOG.info("the program has changed: %s", "; ".join(change_lines(change)))
        self._tell_move(moves)
        return successive_job(job, self._program, after.generations, stand.seed)

    def _note(self, kept: Mapping[str, Any]) -> None:
        """Let the checkpoint say this of its run, unless another process has it now."""
        self._owner.check()
        note(self.options.checkpoint, kept)

    def _moves(self, before: Sequence[Generation], kept: Mapping[str, Any], plan: Plan) -> tuple[Move, ...]:
        """Return the queries that move to other lanes, if the requested lanes differ from those in the checkpoint."""
        lanes, strategy = self.options.lanes, self.options.strategy
        if lanes in (None, kept["lanes"]) and strategy in (None, kept.get("strategy")):
            return ()
        return moves_of(before, self._written.queries, plan, lanes or int(kept["lanes"]))

    def _succeeded(
        self, before: Sequence[Generation], kept: Mapping[str, Any], wanted: int, moves: Sequence[Move], trigger: int
    ) -> Succession:
        make = planning_parts(self._written, self._program.queries, self._planned)
        return succeeded(before, self._written, make, wanted, int(kept["partitions"]), moves, trigger)

    def _check_adapts(self) -> None:
        if self.options.adapts is not None:
            raise UsageError("--adapt does not go together with a program or lanes that have changed: leave it out")

    def _tell_move(self, moves: Sequence[Move]) -> None:
        for move in moves:
            LOG.log(logging.INFO if move.is_possible else logging.WARNING, "%s", move)

    def kept(self) -> str:
        """What the program would keep of the one that the checkpoint has seen, line by line; nothing changes.

        What a start would refuse is refused, as far as that shows without Spark.
        """
        options, chosen = self.options, self._planned(self._program, 0)
        known = read_note(options.checkpoint)
        kept = {**self._mine(options.lanes or os.cpu_count() or 1), "run": NEW_RUN} if known is None else known
        self._check(kept)
        wanted = options.lanes or int(kept["lanes"])
        job = self._first_job(chosen, wanted)
        before = tuple(map(generation_from_plain, kept.get("generations") or ()))
        if not before or not has_begun(options.checkpoint):
            limited(job, options.limits)
            return "the checkpoint is new: all queries begin with the first event"
        change, moves = compared(before, self._written.queries), self._moves(before, kept, chosen)
        if not change.is_none or any(move.is_possible for move in moves):
            self._check_adapts()
        after = self._succeeded(before, kept, wanted, moves, 0)
        limited(successive_job(job, self._program, after.generations, None), options.limits)
        return "\n".join(change_lines(change, moves))

    def _reading_mark(self) -> str:
        """What a checkpoint is for, whatever the queries are: columns, unit of time and sources."""
        options = self.options
        columns = options.time, options.type, options.key, *([options.order] if options.order else [])
        text = canonical_text((self._program.time_unit, *columns, *self._inputs.identity))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def _shape(self, session: SparkSession) -> Shape | None:
        """The columns of matches in Parquet files; lines of JSON have none."""
        if not self._sink.has_columns:
            return None
        how = self.options, self._program, self._reading, self._formats, self._readers
        columns = self._inputs.columns(session, *how)
        return shape_of(self._told, columns, self._reading)

    def _agree(self, lanes: int) -> dict[str, Any]:
        """Check that the checkpoint is this run's, or make it so; what it says."""
        kept = agreed(self.options.checkpoint, self._mine(lanes))
        self._check(kept)
        return claim_sink(self._sink.folder, self.options.checkpoint, kept)

    def _mine(self, lanes: int) -> dict[str, Any]:
        """What this run says of itself to a new checkpoint."""
        return {"format": LAYOUT, "reading": self._reading_mark(), "lanes": lanes}

    def _check(self, kept: Mapping[str, Any]) -> None:
        """Refuse a checkpoint or a sink that are another run's, and files that are damaged."""
        checkpoint = self.options.checkpoint
        check_agreement(checkpoint, kept, self._mine(0))
        check_files(checkpoint)
        check_sink(self._sink.folder, checkpoint, kept)
