"""Matches as columns: the form in which every engine gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True)
class MatchBatch:
    """Matches of one query, ordered by end position (not yet by start and positions).

    Match i covers the times `starts[i]..ends[i]` and the positions `firsts[i]..lasts[i]`; it is made of
    `positions[offsets[i]:offsets[i+1]]`, ascending. `labels` runs parallel to `positions`: `names[label]`
    are the variables that position is bound to. `keys` are 64-bit hashes of the partition key (0 without one).
    """

    query: str
    names: tuple[tuple[str, ...], ...]
    starts: Int64s
    ends: Int64s
    firsts: Int64s
    lasts: Int64s
    offsets: Int64s
    positions: Int64s
    labels: Int32s
    keys: npt.NDArray[np.uint64]
    fields: Mapping[str, pa.Array] = field(default_factory=dict)  # selected attributes, one value per match

    def __len__(self) -> int:
        return len(self.starts)
