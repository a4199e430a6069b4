"""Automaton kernels: advance one query over a batch of events, and write the matches that end in it.

There is one for each way to report matches, so that a query's first use compiles only what it needs. Each returns when
it meets something unknown (an edge, a full buffer); Python handles it and calls again, and the kernel resumes.
"""

from __future__ import annotations

from weft.kernels.automaton.best import emit_best
from weft.kernels.automaton.conditions import Cuts
from weft.kernels.automaton.counting import Counts, count_paths
from weft.kernels.automaton.enumerate import OPEN, enumerate_matches
from weft.kernels.automaton.filtered import Tested, Wanted, enumerate_filtered
from weft.kernels.automaton.maximal import begin_again, keep_maximal
from weft.kernels.automaton.ranks import Ranks, begin_share, end_share
from weft.kernels.automaton.tecs import (
    COUNTED,
    CURRENT,
    DONE,
    EMITTED,
    EPOCH,
    EVENT,
    FINAL,
    FINAL_EVENT,
    FLUSH,
    GROUP,
    HEAD,
    OUT_MATCHES,
    PAUSE,
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
from weft.kernels.jit import bare_kernel, device_no_refcount, kernel
from weft.kernels.memory.room import lend

UPDATING, ENUMERATING = 0, 1  # PHASE


@device_no_refcount
def _begin_walk(control: Int64s) -> None:
    control[FINAL], control[STACK], control[CURRENT], control[EMITTED] = 0, 0, OPEN, 0


@device_no_refcount
def _go_on(tables: Tables, state: State, batch: Batch, control: Int64s, cuts: Cuts) -> int:
    """Advance to the next event that ends matches, unless its matches are being enumerated already."""
    if control[PHASE] == ENUMERATING:
        return FINAL_EVENT
    answer = update(tables, state, batch, control, cuts)
    if answer == FINAL_EVENT:
        control[PHASE] = ENUMERATING
        _begin_walk(control)
        control[GROUP] = control[OUT_MATCHES]
    return answer


@device_no_refcount
def _finish(tables: Tables, state: State, batch: Batch, control: Int64s, event: int) -> None:
    """Finish an event whose matches were enumerated: remove the partial matches that they consume."""
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


@device_no_refcount
def _choose(answer: int, output: Output, control: Int64s) -> None:
    """Keep only the maximal matches of an event, once all are known."""
    if answer == DONE:
        keep_maximal(output, control)
    elif answer == FLUSH:
        begin_again(output, control)


@bare_kernel
def advance_all(
    tables: Tables,
    state: State,
    batch: Batch,
    output: Output,
    control: Int64s,
    cuts: Cuts,
    path: Path,
    maximal: bool,
    ranks: Ranks,
) -> int:
    """Emit all matches, or the maximal ones of each event, or the share of a lane."""
    while True:
        answer = _go_on(tables, state, batch, control, cuts)
        if answer != FINAL_EVENT:
            return answer
        event = control[EVENT] - 1
        horizon = batch.horizons[event]
        answer = begin_share(state, control, ranks, horizon)
        if answer != DONE:
            return answer
        answer = enumerate_matches(state, batch, output, control, path.words, event, horizon, False, 0, ranks)
        if maximal:
            _choose(answer, output, control)
        if answer != DONE:
            return answer
        end_share(control, ranks)
        _finish(tables, state, batch, control, event)


@bare_kernel
def advance_counted(
    tables: Tables,
    state: State,
    batch: Batch,
    output: Output,
    control: Int64s,
    cuts: Cuts,
    path: Path,
    counts: Counts,
    few: int,
    ranks: Ranks,
) -> int:
    """Count matches: by enumeration while they are few, which is fastest, else by the numbers of paths."""
    while True:
        answer = _go_on(tables, state, batch, control, cuts)
        if answer != FINAL_EVENT:
            return answer
        event = control[EVENT] - 1
        horizon = batch.horizons[event]
        answer = enumerate_matches(state, batch, output, control, path.words, event, horizon, True, few, ranks)
        if answer == PAUSE:
            control[COUNTED] -= control[EMITTED]
            _begin_walk(control)
            answer = count_paths(state, control, counts, horizon)
            control[EMITTED] = answer == DONE  # there are some
        if answer != DONE:
            return answer
        _finish(tables, state, batch, control, event)


@bare_kernel
def advance_filtered(
    tables: Tables,
    state: State,
    batch: Batch,
    output: Output,
    control: Int64s,
    cuts: Cuts,
    path: Path,
    tested: Tested,
    wanted: Wanted,
    ranks: Ranks,
) -> int:
    """Emit the matches that satisfy joint conditions: all, the maximal ones of each event, or a lane's share."""
    conditions = tested.conditions
    lend(conditions.room, 0, tested.machine)
    while True:
        answer = _go_on(tables, state, batch, control, cuts)
        if answer != FINAL_EVENT:
            return answer
        event = control[EVENT] - 1
        horizon = batch.horizons[event]
        answer = begin_share(state, control, ranks, horizon)
        if answer != DONE:
            return answer
        answer = enumerate_filtered(state, batch, output, control, conditions, path, event, horizon, wanted, ranks)
        if wanted.maximal:
            _choose(answer, output, control)
        if answer != DONE:
            return answer
        end_share(control, ranks)
        _finish(tables, state, batch, control, event)


@kernel
def advance_best(
    tables: Tables, state: State, batch: Batch, output: Output, control: Int64s, cuts: Cuts, best: Best
) -> int:
    """Emit the best matches of each event."""
    while True:
        answer = _go_on(tables, state, batch, control, cuts)
        if answer != FINAL_EVENT:
            return answer
        event = control[EVENT] - 1
        answer = emit_best(state, batch, output, control, best, event, batch.horizons[event])
        if answer != DONE:
            return answer
        _finish(tables, state, batch, control, event)
