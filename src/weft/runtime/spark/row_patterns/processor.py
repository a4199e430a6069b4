"""The stateful operator of row patterns on a stream: one lane of keys per group, its rows in Spark's state store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.algebra.row_patterns import RowPattern
from weft.runtime.data import blocks
from weft.runtime.spark.compat import StatefulProcessor

if TYPE_CHECKING:
    import pandas as pd

    from weft.runtime.operators.row_patterns.incremental import IncrementalMatcher

LATE = "__weft_late"  # a row without a match that says how many rows were late
_PARTS = ("rows", "keys", "waiting")
_MOST_ROWS = 1 << 16


class RowPatternProcessor(StatefulProcessor):  # type: ignore[misc] # pyspark is not checked
    """Takes a lane's rows trigger by trigger and gives the rows of decided matches, packed into one column.

    Spark calls its methods by their parameters' names.
    """

    def __init__(self, query: RowPattern, schema: pa.Schema, column: str, max_steps: int, kernels: str | None) -> None:
        self._query = query
        self._schema = schema
        self._column = column
        self._max_steps = max_steps
        self._kernels = kernels

    def init(self, handle: Any) -> None:
        """Before anything else."""
        self._handle = handle
        self._pages = handle.getMapState("pages", "name string", "page binary")
        self._head = handle.getValueState("head", "watermark long, timer long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """All rows of one trigger for this lane."""
        lane = self._load()
        late = 0
        for frame in rows:
            for page in frame["rows"]:
                late += lane.add(pa.Table.from_batches([blocks.unpacked_rows(bytes(page))]).cast(self._schema))
        yield from self._go_on(lane, timerValues, late)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """Handle Spark's watermark passing the time that the key waits for."""
        yield from self._go_on(self._load(), timerValues, 0)

    def close(self) -> None:
        """After a trigger."""

    def _load(self) -> IncrementalMatcher:
        # Spark also starts a process that only asks which states there are: it can do without the kernels.
        from weft.runtime.operators.row_patterns.engine import matcher_of
        from weft.runtime.operators.row_patterns.incremental import IncrementalMatcher
        from weft.runtime.spark.kernels import receive_kernels

        receive_kernels(self._kernels)
        lane = IncrementalMatcher.begun(self._query, matcher_of(self._query, self._max_steps), self._schema)
        if self._head.exists():
            lane.watermark = int(self._head.get()[0])
            for name in _PARTS:
                if self._pages.containsKey((name,)):
                    stored = blocks.unpacked_rows(bytes(self._pages.getValue((name,))[0]))
                    setattr(lane, name, pa.Table.from_batches([stored]))
        return lane

    def _go_on(self, lane: IncrementalMatcher, timer_values: Any, late: int) -> Iterator[pd.DataFrame]:
        watermark = timer_values.getCurrentWatermarkInMs()
        found = lane.advance(watermark * 1000) if watermark > 0 else None
        self._store(lane)
        if found is not None and found.num_rows:
            yield from self._packed(found.append_column(LATE, pa.nulls(found.num_rows, pa.int64())))
        if late:
            from weft.runtime.operators.row_patterns.engine import empty_result

            kinds = empty_result(self._schema, self._query).schema
            told = [*(pa.nulls(1, field.type) for field in kinds), pa.array([late])]
            yield from self._packed(pa.table(told, [*kinds.names, LATE]))

    def _store(self, lane: IncrementalMatcher) -> None:
        """Keep the state, and be called again when the watermark passes what is waited for."""
        for name in _PARTS:
            self._pages.updateValue((name,), (blocks.packed_rows(_one_batch(getattr(lane, name))),))
        before = int(self._head.get()[1]) if self._head.exists() else -1
        timer = -1 if lane.due is None else max(1, lane.due // 1000 + 1)
        if timer != before:
            if before > 0:
                self._handle.deleteTimer(before)
            if timer > 0:
                self._handle.registerTimer(timer)
        self._head.update((lane.watermark, timer))

    def _packed(self, rows: pa.Table) -> Iterator[pd.DataFrame]:
        import pandas as pd  # as with the kernels: not where states are only asked for

        for batch in rows.combine_chunks().to_batches(max_chunksize=_MOST_ROWS):
            yield pd.DataFrame({self._column: [blocks.packed_rows(batch)]})


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)
