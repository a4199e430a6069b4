"""Seeds of new lanes in a running stream: the progress of the existing lanes, from the saved state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.errors import UsageError
from weft.runtime.spark.jobs.generations import Generation
from weft.runtime.spark.jobs.job import Seed
from weft.runtime.spark.lanes.state import HEAD, RECORD, RUN, seed_of
from weft.runtime.spark.lanes.state_files import LaneFiles, lanes_in
from weft.runtime.spark.runs.checkpoint_files import numbers_in


@dataclass(frozen=True)
class Stand:
    """How a stream stands after its last completed trigger: what any lane knows of it, and what each has left.

    `lacking`: lanes whose state cannot be read, and why; those of queries that ended have stopped, and need none.
    """

    seed: Seed
    trigger: int
    gone: Mapping[int, frozenset[int]]  # queries by lane
    record: str | None = None  # see `Job`
    lacking: Mapping[int, UsageError] = field(default_factory=dict)

    def require(self, generations: Iterable[Generation]) -> Stand:
        """Refuse to go on without the state of a lane that still has something to tell."""
        for lane in (lane.id for own in generations for lane in own.lanes_left):
            if lane in self.lacking:
                raise self.lacking[lane]
        return self


def state_folder(checkpoint: str) -> Path:
    """Where the lanes of a run keep their state."""
    return Path(checkpoint).absolute() / "weft" / "lanes"


def last_commit(place: str) -> int:
    """The last completed trigger by Spark's checkpoint."""
    return numbers_in(Path(place) / "commits")[-1]


def read_files(folder: Path, trigger: int, generations: Sequence[Generation] = ()) -> Stand:
    """What the lanes know of the stream after a trigger, by their state files; those of `generations` must know it."""
    pages: dict[tuple[int, str], bytes] = {}
    lacking: dict[int, UsageError] = {}
    for lane in lanes_in(folder):
        try:
            own = dict(LaneFiles(folder / str(lane), trigger + 1, new=True).items())
        except UsageError as problem:
            lacking[lane] = problem
            continue
        pages.update({(lane, name): page for name, page in own.items()})
    if not pages and lacking:
        raise min(lacking.items())[1]
    return replace(stand_of(pages), lacking=lacking).require(generations)


def read_stand(session: SparkSession, place: str, operator: int = 0) -> Stand:
    """What the lanes of the last completed trigger know of the stream, by Spark's checkpoint: all know the same."""
    source = session.read.format("statestore").option("stateVarName", "pages").option("operatorId", operator)
    pages = source.load(str(Path(place).absolute()))
    name, page, lane = F.col("user_map_key.name"), F.col("user_map_value.page"), F.col("key.lane")
    rows = pages.where(name.isin(HEAD, RECORD) | name.startswith(RUN)).select(lane, name, page).collect()
    return stand_of({(row[0], row[1]): bytes(row[2]) for row in rows})


def stand_of(pages: Mapping[tuple[int, str], bytes]) -> Stand:
    """The same of pages by lane and name."""
    heads = {lane: json.loads(page) for (lane, name), page in pages.items() if name == HEAD}
    # A lane of queries that ended has stopped where they did.
    latest = max(heads, key=lambda lane: int(heads[lane]["trigger"]))
    runs = [page for (lane, name), page in pages.items() if lane == latest and name.startswith(RUN)]
    gone = {lane: frozenset[int](head.get("gone", ())) for lane, head in heads.items()}
    record = pages.get((latest, RECORD))
    seed = seed_of(pages[latest, HEAD], runs)
    return Stand(seed, int(heads[latest]["trigger"]), gone, None if record is None else record.decode())
