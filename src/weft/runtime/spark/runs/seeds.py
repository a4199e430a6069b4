"""Where lanes begin that are new in a stream that has begun: as far as the others have come, by the saved state."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.runtime.spark.job import Seed
from weft.runtime.spark.lanes.state import HEAD, RUN, seed_of


def read_seed(session: SparkSession, checkpoint: str) -> Seed:
    """What any lane of the last completed trigger knows of the stream: all lanes know the same of it."""
    place = str(Path(checkpoint).absolute() / "spark")
    pages = session.read.format("statestore").option("stateVarName", "pages").load(place)
    name, page, lane = F.col("user_map_key.name"), F.col("user_map_value.page"), F.col("key.lane")
    rows = pages.where((name == HEAD) | name.startswith(RUN)).select(lane, name, page).collect()
    heads = {row[0]: bytes(row[2]) for row in rows if row[1] == HEAD}
    # A lane of queries that ended has stopped where they did.
    latest = max(heads, key=lambda number: _trigger(heads[number]))
    return seed_of(heads[latest], [bytes(row[2]) for row in rows if row[0] == latest and row[1] != HEAD])


def _trigger(head: bytes) -> int:
    return int(json.loads(head)["trigger"])
