"""A streaming DataFrame whose program changes: the earlier programs in its checkpoint, and the resulting job.

When the frame is created, it is unknown whether its query will be started. So nothing is written then: lanes keep the
running program with their state (`Job.record`), and it changes with the first completed trigger.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weft.algebra.query import Program
from weft.errors import UsageError
from weft.runtime.spark.jobs.generations import Generation, Make, first_generation, generation_from_plain, succeeded
from weft.runtime.spark.jobs.job import Job, successive_job
from weft.runtime.spark.lanes.state_files import lanes_in
from weft.runtime.spark.runs.seeds import Stand, last_commit, read_files, read_stand

Sharing = tuple[str | None, int | None]  # strategy and number of lanes, as far as they are asked for
_OPERATOR = "transformWithState"  # how Spark calls ours, in one of its versions


def recorded(job: Job, written: Program, strategy: str | None, wanted: int) -> Job:
    """Return the job of a stream that begins: its lanes record the running program."""
    begun = first_generation(written.queries, job.plan, job.lanes)
    return replace(job, record=_record(strategy, wanted, len(job.lanes), [begun]))


def _record(strategy: str | None, lanes: int, partitions: int, generations: Sequence[Generation]) -> str:
    plain = [own.to_plain() for own in generations]
    return json.dumps({"strategy": strategy, "lanes": lanes, "partitions": partitions, "generations": plain})


def succeeding(
    session: SparkSession,
    checkpoint: str,
    job: Job,
    written: Program,
    make: Make,
    sharing: Sharing,
) -> Job | None:
    """The job after all programs that a checkpoint has seen, or None if it is new."""
    folder = checkpoint.removeprefix("file://")
    if "://" in folder:
        raise UsageError(f"the checkpoint {checkpoint} is not in a local folder: leave out `checkpoint`")
    commits = Path(folder) / "commits"
    if not commits.is_dir() or not any(path.name.isdigit() for path in commits.iterdir()):
        return None
    stand, partitions = _stand(session, folder)
    if stand.record is None:
        raise UsageError(
            f"the checkpoint {checkpoint} does not say which program it is of, as an older version of weft made it: "
            "leave out `checkpoint` to go on with the same program, or use a new one"
        )
    kept = json.loads(stand.record)
    strategy, lanes = sharing
    if strategy not in (None, kept["strategy"]) or lanes not in (None, kept["lanes"]):
        raise UsageError(
            f"the checkpoint {checkpoint} is of a stream with {kept['lanes']} lanes and the strategy "
            f"{kept['strategy'] or 'auto'}: of a DataFrame these cannot change; leave out `lanes` and `strategy`"
        )
    before = tuple(map(generation_from_plain, kept["generations"]))
    stand.require(before)
    partitions = int(kept.get("partitions", partitions))
    after = succeeded(before, written, make, kept["lanes"], partitions)
    record = _record(kept["strategy"], kept["lanes"], partitions, after.generations)
    changed = successive_job(job, job.plan.program, after.generations, stand.seed)
    return replace(changed, record=record, partitions=partitions)


def _stand(session: SparkSession, folder: str) -> tuple[Stand, int]:
    """How the stream stands, and how many partitions its state has."""
    operators = lanes_in(Path(folder) / "weft")
    if operators:
        _check_single(folder, len(operators))
        state = Path(folder).absolute() / "weft" / str(operators[0])
        return read_files(state, last_commit(folder)), len(lanes_in(state))
    try:
        found = session.read.format("state-metadata").load(folder).collect()
        ours = {row["operatorId"]: row["numPartitions"] for row in found if _OPERATOR in row["operatorName"]}
        _check_single(folder, len(ours))
        ((operator, partitions),) = ours.items()
        return read_stand(session, folder, operator), int(partitions)
    except (PySparkException, ValueError) as error:
        raise UsageError(f"the checkpoint {folder} cannot be read: {str(error).splitlines()[0]}") from None


def _check_single(folder: str, operators: int) -> None:
    if operators != 1:
        raise UsageError(
            f"the checkpoint {folder} has {operators} operators like weft.match, so that it is not known which is "
            "meant: use a new one for another program"
        )
