"""The thesis' queries Q1 to Q3 (DCORE section 6.2): one last C, and very many matches that end at it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from benchmarks.measure import Row, cpu_seconds, row

import weft
from weft.plan.planner import plan
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.reading.order import read_events

IDS = 3
QUERIES = {
    "Q1 A;B;C": ("A AS a ; B AS b ; C AS c", lambda n: "A" * n + "B" * n, (500, 2000)),
    "Q2 A;B+;C": ("A AS a ; B+ AS b ; C AS c", lambda n: "A" + "B" * n, (18, 22)),
    "Q3 A+;B+;C": ("A+ AS a ; B+ AS b ; C AS c", lambda n: "A" * n + "B" * n, (9, 11)),
}


def run(scale: float = 1.0) -> list[Row]:
    """All three queries, alone and with `a[id] = b[id]`, against filtering their matches afterwards."""
    rows = []
    for name, (pattern, stream, (small, large)) in QUERIES.items():
        table = _events(stream(large if scale >= 1 else small) + "C")
        plain = f"SELECT * WHERE {pattern} WITHIN 1 DAY"
        matches, seconds, all_visits = _enumerate(plain, table)
        rows.append(row(f"{name}, {matches} matches", matches / seconds / 1e6, "M matches/s", goal=">= 20"))
        _, after, _ = _enumerate(plain, table, ids=np.asarray(table["id"]))
        kept, pruned, visits = _enumerate(f"SELECT * WHERE {pattern} FILTER a[id] = b[id] WITHIN 1 DAY", table)
        case = f"{name}, a[id] = b[id], {kept} kept"
        rows.append(row(case, pruned * 1e3, "ms", "filter afterwards", pruned / after, "<= 1"))
        rows.append(row(f"{case}, nodes", visits, "visits", "filter afterwards", visits / all_visits, "<= 1"))
    return rows


def _events(types: str) -> pa.Table:
    count = len(types)
    ids = np.random.default_rng(3).integers(0, IDS, count)
    return pa.table({"type": list(types), "ts": np.arange(count), "id": ids})


def _enumerate(query: str, table: pa.Table, ids: npt.NDArray[np.int64] | None = None) -> tuple[int, float, int]:
    """Matches found, seconds from events to Arrow arrays, and nodes of the match graph visited.

    With `ids`, the matches are filtered afterwards: all positions but the last (C) must have the same id.
    """
    chosen = plan(weft.compile(query))
    (batch,) = read_events(table, columns=chosen.columns)
    found = visits = 0

    def work() -> None:
        nonlocal found, visits
        matcher = Matcher(chosen)
        found = 0
        for piece in matcher.push(batch):
            if ids is not None:
                found += int(_same_ids(piece, ids).sum())
            else:
                found += len(pa.LargeListArray.from_arrays(piece.offsets, piece.positions))
        visits = matcher.counters["visits"]

    seconds = cpu_seconds(work)
    return found, seconds, visits


def _same_ids(piece: MatchBatch, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    values = ids[piece.positions]
    values[piece.offsets[1:] - 1] = values[piece.offsets[:-1]]
    starts = piece.offsets[:-1]
    return np.maximum.reduceat(values, starts) == np.minimum.reduceat(values, starts)
