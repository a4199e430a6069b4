"""Remove expired occurrences, and the rows, events and texts that nothing refers to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from weft.kernels.joins import buckets, compact, joining
from weft.runtime.data.events import Int64s
from weft.runtime.operators.joins.joining import SequencesOperator
from weft.runtime.operators.joins.operators import BEGINNING, JoinNode, Store

if TYPE_CHECKING:
    from weft.runtime.operators.joins.operator import JoinOperator

Mask = npt.NDArray[np.bool_]
LEAST_ROWS = 1 << 15  # with fewer rows a sweep does not pay
_FEW, _MUCH = 256, 6  # a store is rebuilt if it has space for more than _FEW + _MUCH * the live entries


@dataclass(frozen=True)
class Floor:
    """A time before which some operators, by number, evict their stored occurrences."""

    time: int = BEGINNING
    operators: frozenset[int] = frozenset()

    def of(self, operator: JoinNode) -> int:
        """Return the time for an operator."""
        return self.time if operator.number in self.operators else BEGINNING


NO_FLOOR = Floor()


def sweep_graph(run: JoinOperator, floor: Floor = NO_FLOOR) -> None:
    """Remove unused rows, events and texts when there are many, and what is older than the floor."""
    if floor is NO_FLOOR and max(run.row_store.row_count, run.row_store.event_count) <= run.sweep_at:
        return
    _trim(run)
    row_store = run.row_store
    live = np.zeros(row_store.row_count, bool)
    stores = [(operator, store) for operator in run.operators for store in operator.stores]
    sparse = [_drop_expired(run, operator, store, live, floor.of(operator)) for operator, store in stores]
    places = _compact(run, live, floor)
    for _, store in stores:
        compact.renumber(store.entries, store.table, places)
    texts_changed = row_store.drop_texts()
    for (operator, store), is_sparse in zip(stores, sparse, strict=True):
        if not (texts_changed or is_sparse):
            continue
        store.entries, store.table = buckets.rebuild(
            operator.tests,
            operator.key,
            store.side,
            texts_changed,
            row_store.facts(),
            row_store.rows,
            row_store.slots,
            store.entries,
            store.table,
            store.control,
        )
    run.sweep_at = max(LEAST_ROWS, 3 * max(row_store.row_count, row_store.event_count))
    run.paging.renumbered()


def _drop_expired(run: JoinOperator, operator: JoinNode, store: Store, live: Mask, floor: int) -> bool:
    """Remove expired, evicted and decided occurrences from a store; return whether it is mostly empty."""
    oldest = floor if store.limit < 0 else max(floor, min(operator.watermark, run.running.clock) - store.limit)
    count, keys = compact.sift(store.entries, store.table, oldest, store.marks, live)
    if isinstance(operator, SequencesOperator) and oldest > BEGINNING:
        operator.forget(oldest)
    entries_used, keys_used = store.control[[buckets.USED, buckets.KEYS]].tolist()
    return bool(entries_used > _FEW + _MUCH * count or keys_used > _FEW + _MUCH * keys)


def _compact(run: JoinOperator, live: Mask, floor: Floor) -> Int64s:
    """Move the rows and events that are needed to the front, and return the new ids of rows."""
    row_store = run.row_store
    live_events = np.zeros(row_store.event_count, bool)
    for chain in run.chains:
        chain.sweep(run.running.clock, live_events, floor.of(chain))
    referenced = [ids for operator in run.operators for ids in (operator.emitted_rows(), *operator.roots())]
    for ids in referenced:
        live[ids[ids >= 0]] = True
    compact.mark(row_store.rows, live, live_events)
    places, event_places = np.zeros(len(live), np.int64), row_store.keep(live_events)
    used = int(row_store.control[joining.SLOTS_USED])
    row_store.control[:] = compact.slide(row_store.rows, row_store.slots, used, live, places, event_places)
    for ids in referenced:
        ids[:] = places[ids]
    for chain in run.chains:
        chain.renumber(event_places)
    run.kept.forget(run.oldest)
    return places


def _trim(run: JoinOperator) -> None:
    """Release output that all readers have consumed."""
    taken: list[list[int]] = [[] for _ in run.operators]
    for output in run.outputs:
        taken[output.node].append(output.taken)
    for operator in run.operators:
        for side, number in enumerate(operator.inputs):
            taken[number].append(int(operator.control[operator.cursor(side)]))
        if operator.feeds_itself:
            taken[operator.number].append(int(operator.control[joining.LEFT_AT]))
    gone = list(map(min, taken))
    for operator in run.operators:
        operator.out = operator.emitted_rows()[gone[operator.number] :].copy()
        operator.control[joining.OUT] -= gone[operator.number]
        for side, number in enumerate(operator.inputs):
            operator.control[operator.cursor(side)] -= gone[number]
        if operator.feeds_itself:
            operator.control[joining.LEFT_AT] -= gone[operator.number]
    for output in run.outputs:
        output.taken -= gone[output.node]
