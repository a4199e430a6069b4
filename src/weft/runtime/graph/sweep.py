"""Giving up what can no longer matter of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.kernels import buckets, compact, follow, occurrences
from weft.runtime.graph.operators import Operator, Store

if TYPE_CHECKING:
    from weft.runtime.graph.run import GraphRun

LEAST_ROWS = 1 << 15  # fewer rows are not worth a sweep


def sweep_graph(run: GraphRun) -> None:
    """Give up rows and events that nothing waits for, when there are many."""
    if run.arena.row_count <= run.sweep_at:
        return
    _trim(run)
    arena = run.arena
    for operator in run.operators:
        for store in operator.stores:
            _drop_expired(run, operator, store)
    live = np.zeros(arena.row_count, bool)
    live_events = np.zeros(arena.event_count, bool)
    held = [ids for operator in run.operators for ids in (operator.given(), *operator.roots())]
    for ids in held:
        live[ids[ids >= 0]] = True
    compact.mark(arena.rows, live, live_events)
    places, event_places = np.cumsum(live) - 1, np.cumsum(live_events) - 1
    rows, slots = compact.slide(
        arena.rows, arena.slots, int(arena.control[follow.SLOTS_USED]), live, places, event_places
    )
    arena.control[:] = rows, slots
    arena.event_count = int(compact.slide_events(arena.events, arena.values, arena.width, live_events))
    for ids in held:
        known = ids >= 0
        ids[known] = places[ids[known]]
    if arena.event_count:
        run.remembered.forget(int(arena.events[occurrences.POSITION]))
    else:
        run.remembered.chunks.clear()
    run.sweep_at = max(LEAST_ROWS, 2 * arena.row_count)
    run.paging.renumbered()


def _trim(run: GraphRun) -> None:
    """Forget what was given out and has been taken by all."""
    taken = [[output.taken for output in run.outputs if output.node == op.number] for op in run.operators]
    for operator in run.operators:
        for side, number in enumerate(operator.inputs):
            taken[number].append(int(operator.control[operator.cursor(side)]))
        if operator.feeds_itself:
            taken[operator.number].append(int(operator.control[follow.LEFT_AT]))
    for operator in run.operators:
        gone = min(taken[operator.number])
        operator.out = operator.given()[gone:].copy()
        operator.control[follow.OUT] -= gone
        for user in run.operators:
            for side, number in enumerate(user.inputs):
                if number == operator.number:
                    user.control[user.cursor(side)] -= gone
        if operator.feeds_itself:
            operator.control[follow.LEFT_AT] -= gone
        for output in run.outputs:
            if output.node == operator.number:
                output.taken -= gone


def _drop_expired(run: GraphRun, operator: Operator, store: Store) -> None:
    """Build a store anew without what has waited too long, or was decided."""
    arena, time = run.arena, min(operator.safe, run.running.clock)
    buckets.rebuild(
        store.entries,
        store.table,
        store.control,
        arena.rows,
        arena.slots,
        arena.events,
        time,
        operator.limit,
        operator.limit_slot,
        operator.marks,
    )
