"""What ids are made of in place of positions, if key columns are named: two hashes of each event's key.

They are the same for equal values in every process, however the input is cut or stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.errors import UsageError
from weft.runtime.classify.keys import key_hashes
from weft.runtime.events import EventBatch, Int64s
from weft.runtime.kept import Kept
from weft.runtime.state.pages import FOREIGN, Paging

UInt64s = npt.NDArray[np.uint64]
_NAMES, _HASHES = "names", "hashes"


class EventKeys:
    """The hashes of the events that a later match may be made of; nothing when no column is named."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._kept, self._paging = Kept(), Paging()

    def add(self, batch: EventBatch) -> None:
        """Keep the keys of a batch, which come after all others."""
        if self.names and len(batch):
            _, *hashes = key_hashes(batch, tuple((name,) for name in self.names))
            self._kept.add(replace(batch, rows=pa.record_batch(list(map(pa.array, hashes)), names=["high", "low"])))

    def forget(self, oldest: Callable[[], int | None]) -> None:
        """Give up the keys of events before a position; see `Kept.forget`."""
        self._kept.forget(oldest)

    @property
    def words(self) -> Callable[[Int64s], tuple[UInt64s, UInt64s]] | None:
        """The two hashes of the events at some positions; None: ids are made of the positions themselves."""
        return self._words if self.names else None

    def _words(self, positions: Int64s) -> tuple[UInt64s, UInt64s]:
        if not len(positions):
            return np.empty(0, np.uint64), np.empty(0, np.uint64)
        found = self._kept.shown(positions).at(positions)
        return np.asarray(found.column(0)), np.asarray(found.column(1))

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages that changed since the last snapshot; None: the page is gone."""
        names = {_NAMES: json.dumps(self.names).encode()} if self.names else {}
        return self._paging.changes(names, growing=[self._kept.growing(_HASHES)])

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Go on from the pages of snapshots, which must be of the same columns."""
        if tuple(json.loads(pages.get(_NAMES, b"[]"))) != self.names:
            raise UsageError(FOREIGN)
        self._kept.load(pages, _HASHES)
        self._paging.load(pages, [self._kept.growing(_HASHES)])
