"""Seeds of new lanes in a running stream: the progress of the existing lanes, from the saved state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.runtime.spark.jobs.job import Seed
from weft.runtime.spark.lanes.state import HEAD, RECORD, RUN, seed_of
from weft.runtime.spark.lanes.state_files import LaneFiles, lanes_in
from weft.runtime.spark.runs.checkpoint_files import numbers_in


class Stand(NamedTuple):
    """How a stream stands after its last completed trigger: what any lane knows of it, and what each has left."""

    seed: Seed
    trigger: int
    gone: Mapping[int, frozenset[int]]  # queries by lane
    record: str | None = None  # see `Job`


def state_folder(checkpoint: str) -> Path:
    """Where the lanes of a run keep their state."""
    return Path(checkpoint).absolute() / "weft" / "lanes"


def last_commit(place: str) -> int:
    """The last completed trigger by Spark's checkpoint."""
    return numbers_in(Path(place) / "commits")[-1]


def read_files(folder: Path, trigger: int) -> Stand:
    """What the lanes know of the stream after a trigger, by their state files."""
    pages = {
        (lane, name): page
        for lane in lanes_in(folder)
        for name, page in LaneFiles(folder / str(lane), trigger + 1, new=True).items()
    }
    return stand_of(pages)


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
