"""Giving up what can no longer matter: expired occurrences, and the rows, events and texts that nothing refers to."""

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
LEAST_ROWS = 1 << 15  # fewer rows are not worth a sweep
_FEW, _MUCH = 256, 6  # a store is made anew when it has room for so many, and so many times what is left


@dataclass(frozen=True)
class Floor:
    """Some operators, by number, give up what counts since before a time."""

    time: int = BEGINNING
    operators: frozenset[int] = frozenset()

    def of(self, operator: JoinNode) -> int:
        """The time of an operator."""
        return self.time if operator.number in self.operators else BEGINNING


NO_FLOOR = Floor()


def sweep_graph(run: JoinOperator, floor: Floor = NO_FLOOR) -> None:
    """Give up rows, events and texts that nothing waits for, when there are many, and what is below the floor."""
    if floor is NO_FLOOR and max(run.arena.row_count, run.arena.event_count) <= run.sweep_at:
        return
    _trim(run)
    arena = run.arena
    live = np.zeros(arena.row_count, bool)
    stores = [(operator, store) for operator in run.operators for store in operator.stores]
    sparse = [_drop_expired(run, operator, store, live, floor.of(operator)) for operator, store in stores]
    places = _compact(run, live, floor)
    for _, store in stores:
        compact.renumber(store.entries, store.table, places)
    anew = arena.drop_texts()
    for (operator, store), is_sparse in zip(stores, sparse, strict=True):
        if not (anew or is_sparse):
            continue
        store.entries, store.table = buckets.rebuild(
            operator.tests,
            operator.key,
            store.side,
            anew,
            arena.facts(),
            arena.rows,
            arena.slots,
            store.entries,
            store.table,
            store.control,
        )
    run.sweep_at = max(LEAST_ROWS, 3 * max(arena.row_count, arena.event_count))
    run.paging.renumbered()


def _drop_expired(run: JoinOperator, operator: JoinNode, store: Store, live: Mask, floor: int) -> bool:
    """Take occurrences that have waited too long, or were decided, out of a store; whether little of it is left."""
    oldest = floor if store.limit < 0 else max(floor, min(operator.watermark, run.running.clock) - store.limit)
    count, keys = compact.sift(store.entries, store.table, oldest, store.marks, live)
    if isinstance(operator, SequencesOperator) and oldest > BEGINNING:
        operator.forget(oldest)
    entries_used, keys_used = store.control[[buckets.USED, buckets.KEYS]].tolist()
    return bool(entries_used > _FEW + _MUCH * count or keys_used > _FEW + _MUCH * keys)


def _compact(run: JoinOperator, live: Mask, floor: Floor) -> Int64s:
    """Move the rows and events that are needed down; the new ids of rows."""
    arena = run.arena
    live_events = np.zeros(arena.event_count, bool)
    for chain in run.chains:
        chain.sweep(run.running.clock, live_events, floor.of(chain))
    held = [ids for operator in run.operators for ids in (operator.given(), *operator.roots())]
    for ids in held:
        live[ids[ids >= 0]] = True
    compact.mark(arena.rows, live, live_events)
    places, event_places = np.zeros(len(live), np.int64), np.zeros(len(live_events), np.int64)
    memory = arena.events, arena.values, arena.width
    arena.event_count = int(compact.slide_events(*memory, live_events, event_places))
    used = int(arena.control[joining.SLOTS_USED])
    arena.control[:] = compact.slide(arena.rows, arena.slots, used, live, places, event_places)
    for ids in held:
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
        operator.out = operator.given()[gone[operator.number] :].copy()
        operator.control[joining.OUT] -= gone[operator.number]
        for side, number in enumerate(operator.inputs):
            operator.control[operator.cursor(side)] -= gone[number]
        if operator.feeds_itself:
            operator.control[joining.LEFT_AT] -= gone[operator.number]
    for output in run.outputs:
        output.taken -= gone[output.node]
