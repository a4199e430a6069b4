"""Rules at work: event by event, the rules that start there look back for combinations of earlier events.

All rules are in tables (`rule_tables`), all events are in one store, once for all rules. The rules that start at an
event are found by an index of their constants. Those of one row, which differ in constants only, are searched for
together: a search goes depth first over their look-backs, with the set of rules that each event suits, and writes down
what fires. Defined events that some rule looks at wait in a queue and are taken after the event that made them. When
room runs out the kernel returns, and goes on where it stood when it is called again.
"""

from __future__ import annotations

from weft.kernels import rule_tables as t
from weft.kernels.jit import bare, kernel
from weft.kernels.rule_firing import check, emit, write
from weft.kernels.rule_scan import Seen
from weft.kernels.rule_search import advance, fetch, judged, open_step, start, started
from weft.kernels.rule_series import scan_extents


@bare
def _fire(
    batch: t.Batch,
    rules: t.Rules,
    index: t.Index,
    store: t.Store,
    lanes: t.Lanes,
    width: int,
    mark_words: int,
    work: t.Work,
    output: t.Output,
    control: t.Int64s,
    counting: bool,
) -> int:
    seen = Seen(work.frames, store.values, width, rules.code, work.stack, work.results, store.texts, store.text_offsets)
    control[t.KNOWN] = control[t.CLEARED] = -1
    mode = control[t.MODE]
    while mode >= 0:
        if mode == t.FETCH:
            mode = fetch(batch, rules, index, store, lanes, mark_words, work, control, seen)
        elif mode == t.START:
            mode = start(rules, work, control, seen)
        elif mode == t.STARTED:
            mode = started(rules, control)
        elif mode == t.OPEN:
            mode = open_step(rules, store, work, control, seen)
        elif mode == t.ADVANCE:
            mode = advance(rules, store, mark_words, work, output, control, counting, seen)
        elif mode == t.JUDGED:
            mode = judged(work, control)
        elif mode == t.EMIT:
            mode = emit(rules, control)
        elif mode == t.CHECK:
            mode = check(rules, store, mark_words, work, output, control, counting, seen)
        elif mode == t.WRITE:
            mode = write(rules, store, work, output, control, counting, seen)
        else:
            mode = scan_extents(rules, store, lanes, work, control, seen)
    return int(-1 - mode)


@kernel
def fire(
    batch: t.Batch,
    rules: t.Rules,
    index: t.Index,
    store: t.Store,
    lanes: t.Lanes,
    width: int,
    mark_words: int,
    work: t.Work,
    output: t.Output,
    control: t.Int64s,
    counting: bool,
) -> int:
    """Take events until all are done or room runs out; what for is returned. An event has `mark_words` of marks."""
    return _fire(batch, rules, index, store, lanes, width, mark_words, work, output, control, counting)
