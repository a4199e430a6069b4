"""The automaton kernels: advance one query over a batch of events, and write out the matches that end in it.

There is one for each way to report matches, so that a query's first use compiles only what it needs. Each stops
and asks when it meets something new (an unknown edge, a full buffer); Python answers and calls again, and it goes
on where it stopped.
"""

from __future__ import annotations

from weft.kernels.automaton.best import emit_best
from weft.kernels.automaton.conditions import Conditions
from weft.kernels.automaton.enumerate import OPEN, enumerate_matches
from weft.kernels.automaton.filtered import enumerate_filtered
from weft.kernels.automaton.tecs import (
    CURRENT,
    DONE,
    EMITTED,
    EPOCH,
    EVENT,
    FINAL,
    FINAL_EVENT,
    HEAD,
    PHASE,
    STACK,
    TAIL,
    Batch,
    Best,
    Int64s,
    Output,
    Path,
    State,
    Tables,
)
from weft.kernels.automaton.update import update
from weft.kernels.jit import inlined, kernel
from weft.kernels.machine.machine import Machine

UPDATING, ENUMERATING = 0, 1  # PHASE


@inlined
def _go_on(tables: Tables, state: State, batch: Batch, control: Int64s) -> int:
    """To the next event that ends matches, unless its matches are being enumerated already."""
    if control[PHASE] == ENUMERATING:
        return FINAL_EVENT
    answer = update(tables, state, batch, control)
    if answer == FINAL_EVENT:
        control[PHASE] = ENUMERATING
        control[FINAL], control[STACK], control[CURRENT], control[EMITTED] = 0, 0, OPEN, 0
    return answer


@inlined
def _finish(tables: Tables, state: State, batch: Batch, control: Int64s, event: int) -> None:
    """After the matches of an event: forget the runs that they consume."""
    control[PHASE] = UPDATING
    if tables.consume == 0 or control[EMITTED] == 0:
        return
    words = tables.touch.size // tables.class_count
    slot = batch.slots[event] if batch.slots.size > 0 else 0
    for word in range(words):
        state.active[slot * words + word] = 0
    if tables.consume == 2:
        control[EPOCH] += 1
        state.epochs[slot] = control[EPOCH]
        control[TAIL] = control[HEAD]


@kernel
def advance_all(
    tables: Tables, state: State, batch: Batch, output: Output, control: Int64s, path: Path, counting: bool
) -> int:
    """All matches."""
    while True:
        answer = _go_on(tables, state, batch, control)
        if answer != FINAL_EVENT:
            return answer
        event = control[EVENT] - 1
        horizon = batch.horizons[event]
        answer = enumerate_matches(state, batch, output, control, path.words, event, horizon, counting)
        if answer != DONE:
            return answer
        _finish(tables, state, batch, control, event)


@kernel
def advance_filtered(
    tables: Tables,
    state: State,
    batch: Batch,
    output: Output,
    control: Int64s,
    path: Path,
    conditions: Conditions,
    machine: Machine,
    counting: bool,
) -> int:
    """All matches that satisfy conditions over several events."""
    while True:
        answer = _go_on(tables, state, batch, control)
        if answer != FINAL_EVENT:
            return answer
        event = control[EVENT] - 1
        horizon = batch.horizons[event]
        answer = enumerate_filtered(state, batch, output, control, conditions, machine, path, event, horizon, counting)
        if answer != DONE:
            return answer
        _finish(tables, state, batch, control, event)


@kernel
def advance_best(tables: Tables, state: State, batch: Batch, output: Output, control: Int64s, best: Best) -> int:
    """The best matches of each event."""
    while True:
        answer = _go_on(tables, state, batch, control)
        if answer != FINAL_EVENT:
            return answer
        event = control[EVENT] - 1
        answer = emit_best(state, batch, output, control, best, event, batch.horizons[event])
        if answer != DONE:
            return answer
        _finish(tables, state, batch, control, event)
