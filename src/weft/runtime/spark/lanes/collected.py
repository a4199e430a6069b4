"""Matches of several lanes, collected in this process, in match order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.runtime.data.buffers import fixed, values_of
from weft.runtime.data.matches import put_in_order
from weft.runtime.reading.kinds import ticks_of


def in_match_order(matches: pa.Table, query_names: Sequence[str], time_unit: str = "ms") -> pa.Table:
    """A table of matches sorted by end, start, positions, query (in the given order) and id."""
    if len(matches) < 2:
        return matches
    rows = matches.combine_chunks().to_batches()[0]
    positions = rows.column("positions")
    names = rows.column("query").dictionary_encode()
    ranks = np.array([query_names.index(name) for name in names.dictionary.to_pylist()], np.int32)
    high, low = _words(rows.column("id"))
    columns = [
        values_of(_ticks(rows.column("end"), time_unit)),
        values_of(_ticks(rows.column("start"), time_unit)),
        fixed(positions.offsets.to_numpy().astype(np.int64)),
        values_of(positions.values),
        fixed(ranks[names.indices.to_numpy()]),
        fixed(high),
        fixed(low),
    ]
    return pa.Table.from_batches([rows.take(pa.array(put_in_order(0, len(rows), columns)))])


def _ticks(times: pa.Array, time_unit: str) -> pa.Array:
    return ticks_of(times, time_unit) if pa.types.is_timestamp(times.type) else times


def _words(ids: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Ids, 32 hexadecimal digits each, as two words each."""
    digits = bytes.fromhex("".join(ids.to_pylist()))
    words = np.frombuffer(digits, ">u8").astype(np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])
