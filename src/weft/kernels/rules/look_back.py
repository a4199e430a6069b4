"""Execution of rules: at each event, the rules that start there look back for combinations of earlier events.

All rules are in tables (`rule_tables`), and all events are in one store. The rules that start at an event are found by
an index of their constants. Those of one row, which differ only in constants, are searched together: a depth-first
search over their look-backs tracks the set of rules that each event satisfies, and writes firings. Defined events that
rules read are queued, and processed after the event that caused them. When space runs out the kernel returns, and
resumes when it is called again.
"""

from __future__ import annotations

from weft.kernels.jit import bare_kernel
from weft.kernels.memory.room import lend
from weft.kernels.rules import arrays as r
from weft.kernels.rules import tables as t
from weft.kernels.rules.firing import check, emit, write
from weft.kernels.rules.search import advance, fetch, judged, open_step, start, started
from weft.kernels.rules.summaries import scan_extents


@bare_kernel
def fire(
    batch: t.Batch,
    rules: t.Rules,
    index: t.Index,
    store: t.Store,
    lanes: t.Lanes,
    work: t.Work,
    output: t.Output,
    control: t.Int64s,
    room: t.Int64s,
) -> int:
    """Process events; return whether all are done, which array is full, or PAUSE after many steps."""
    lend(room, r.BATCH, batch)
    lend(room, r.RULES, rules)
    r.lend_to_machine(room, rules, store, work)
    lend(room, r.INDEX, index)
    lend(room, r.STORE, store)
    lend(room, r.LANES, lanes)
    lend(room, r.WORK, work)
    lend(room, r.OUTPUT, output)
    lend(room, r.CONTROL, (control,))
    if control[t.RESUMES] == 0:  # else no array was moved
        control[t.KNOWN] = control[t.CLEARED] = -1
    control[t.RESUMES] = 0
    mode = control[t.MODE]
    while mode >= 0:
        if mode == t.FETCH:
            mode = fetch(room)
        elif mode == t.START:
            mode = start(room)
        elif mode == t.STARTED:
            mode = started(room)
        elif mode == t.OPEN:
            mode = open_step(room)
        elif mode == t.ADVANCE:
            mode = advance(room)
            if control[t.STEPS_LEFT] < 0 and mode >= 0:
                control[t.MODE], control[t.RESUMES] = mode, 1
                return t.PAUSE
        elif mode == t.JUDGED:
            mode = judged(room)
        elif mode == t.EMIT:
            mode = emit(room)
        elif mode == t.CHECK:
            mode = check(room)
        elif mode == t.WRITE:
            mode = write(room)
        else:
            mode = scan_extents(room)
    return int(-1 - mode)
