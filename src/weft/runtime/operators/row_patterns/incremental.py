"""Row patterns over rows that arrive in pieces: a match is emitted once no preferred one is possible.

State of a key: the rows from the oldest undecided attempt on (and as many before as PREV reads), where the next
attempt starts, and the number of matches so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.row_patterns import RowPattern
from weft.kernels.row_patterns import tables as t
from weft.plan.row_patterns.conditions import reach_of
from weft.runtime.operators.row_patterns.layout import RowLayout, laid_out, partition_codes
from weft.runtime.operators.row_patterns.matches import FoundMatches
from weft.runtime.operators.row_patterns.matching import Attempts, RowMatcher
from weft.runtime.operators.row_patterns.output import result_table

# Columns of the state of keys, besides the partition columns: the next attempt and the end of the last match,
# counted from the first stored row; the matches so far; whether rows before the first were removed.
ATTEMPT, COVERED, NUMBER, DROPPED = "__weft_attempt", "__weft_covered", "__weft_number", "__weft_dropped"
_FACTS = (ATTEMPT, COVERED, NUMBER, DROPPED)
BEFORE_ALL = -(2**62)  # the initial watermark


@dataclass
class IncrementalMatcher:
    """State of one query over a growing input."""

    query: RowPattern
    matcher: RowMatcher
    rows: pa.Table  # stored rows, by key and order
    keys: pa.Table  # the state of each key
    waiting: pa.Table  # rows after the watermark
    watermark: int = BEFORE_ALL

    @classmethod
    def begun(cls, query: RowPattern, matcher: RowMatcher, schema: pa.Schema) -> IncrementalMatcher:
        """Return a matcher without rows."""
        facts = [pa.field(name, pa.int64()) for name in _FACTS]
        keys = pa.schema([*(schema.field(name) for name in query.partition), *facts])
        return cls(query, matcher, schema.empty_table(), keys.empty_table(), schema.empty_table())

    def add(self, rows: pa.Table) -> int:
        """Add rows in any order, and return how many are too late, as the watermark passed them."""
        times = self._times(rows)
        on_time = times >= self.watermark
        self.waiting = pa.concat_tables([self.waiting, rows.filter(pa.array(on_time))])
        return int(np.count_nonzero(~on_time))

    def advance(self, watermark: int) -> pa.Table | None:
        """Process the rows before the watermark (microseconds); return the rows of final matches, or None."""
        if watermark <= self.watermark:
            return None
        self.watermark = watermark
        due = self._times(self.waiting) < watermark
        released = self.waiting.filter(pa.array(due))
        self.waiting = self.waiting.filter(pa.array(~due))
        if not released.num_rows and (self.query.within is None or not self.rows.num_rows):
            return None
        return self._matched(pa.concat_tables([self.rows, released]).combine_chunks())

    @property
    def due(self) -> int | None:
        """The watermark at which `advance` has something to do, or None."""
        times = self._times(self.waiting)
        found = [int(times.min())] if len(times) else []
        if self.query.within is not None and self.rows.num_rows:
            found.append(int(self._times(self.rows).min()) + self.query.within)
        return min(found, default=None)

    def _times(self, rows: pa.Table) -> t.Int64s:
        values = rows.column(self.query.order[0].column)
        values = values.cast(pa.timestamp("us", getattr(values.type, "tz", None)), safe=False).cast(pa.int64())
        return np.asarray(pc.fill_null(values, BEFORE_ALL - 1).to_numpy(), np.int64)

    def _matched(self, rows: pa.Table) -> pa.Table:
        query = self.query
        layout = laid_out(rows, query, by_others=True)
        before, after = reach_of(query)
        known = self._facts_of(layout)
        words = np.zeros((len(layout.begins), t.PARTITION), np.int64)
        words[:, t.FIRST], words[:, t.LAST] = layout.begins, layout.ends
        words[:, t.SEEN] = np.maximum(layout.ends - after, layout.begins)
        words[:, t.ATTEMPT] = layout.begins + known[ATTEMPT]
        words[:, t.NUMBER] = known[NUMBER]
        words[:, t.WHOLE] = known[DROPPED] == 0
        flat = words.reshape(-1)
        found, failed = self.matcher.find(layout, Attempts(flat, is_open=True, passed=self.watermark))
        covered = layout.begins + known[COVERED]
        output = result_table(query, found, failed, covered)
        self._keep(layout, flat.reshape(-1, t.PARTITION), _covered(found, covered), known[DROPPED], before)
        return output

    def _facts_of(self, layout: RowLayout) -> dict[str, t.Int64s]:
        """Return the state of each partition's key, or the initial state of new keys; other keys are kept aside."""
        names = self.query.partition
        own = pa.table([*self._key_columns(layout), pa.nulls(len(layout.begins))], [*names, NUMBER])
        stored = self.keys.select([*names, NUMBER]).set_column(len(names), NUMBER, pa.nulls(len(self.keys)))
        codes = partition_codes(pa.concat_tables([own, stored]), names)
        first = layout.begins
        place = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
        place[codes[len(first) :]] = np.arange(len(self.keys))
        at = place[codes[: len(first)]]
        facts = {}
        for name in _FACTS:
            values = np.append(self.keys.column(name).to_numpy(), 0)
            facts[name] = values[at]  # -1: the zero at the end
        self._others = self.keys.take(pa.array(np.setdiff1d(np.arange(len(self.keys)), at)))
        return facts

    def _key_columns(self, layout: RowLayout) -> list[pa.ChunkedArray]:
        return [layout.taken(name, layout.begins) for name in self.query.partition]

    def _keep(self, layout: RowLayout, words: t.Int64s, covered: t.Int64s, dropped: t.Int64s, before: int) -> None:
        """Store the rows that later attempts read, and the state of all keys."""
        attempts = words[:, t.ATTEMPT]
        kept = np.maximum(layout.begins, attempts - before)
        sizes = layout.ends - kept
        places = np.arange(int(sizes.sum())) + np.repeat(kept - np.cumsum(sizes) + sizes, sizes)
        order = places if layout.order is None else layout.order[places]
        facts = {
            ATTEMPT: attempts - kept,
            COVERED: np.maximum(covered - kept, 0),
            NUMBER: words[:, t.NUMBER],
            DROPPED: np.maximum(dropped, kept > layout.begins),
        }
        columns = [*self._key_columns(layout), *(pa.array(values.astype(np.int64)) for values in facts.values())]
        keys = pa.table(columns, schema=self.keys.schema)
        self.rows = layout.table.take(pa.array(order))
        self.keys = pa.concat_tables([self._others, keys])


def _covered(found: FoundMatches, before: t.Int64s) -> t.Int64s:
    """Return the row up to which matches cover each partition."""
    covered = before.copy()
    np.maximum.at(covered, found.facts[:, t.OF], np.where(found.sizes > 0, found.starts + found.sizes, 0))
    return covered
