"""The state of a graph as pages of bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from weft.kernels import joining, occurrences
from weft.runtime import blocks
from weft.runtime.graph.joins import SequencesOperator
from weft.runtime.paging import Array, Growing, Pages, growing_array

if TYPE_CHECKING:
    from weft.runtime.graph.run import GraphRun


def summary_of(run: GraphRun) -> bytes:
    """What is small."""
    values = {
        "arena": run.arena.control.tolist(),
        "events": run.arena.event_count,
        "clock": run.running.clock,
        "sweep_at": run.sweep_at,
        "safe": [operator.safe for operator in run.operators],
        "control": [operator.control.tolist() for operator in run.operators],
        "stores": [[store.control.tolist() for store in operator.stores] for operator in run.operators],
        "taken": [output.taken for output in run.outputs],
        "remembered": run.remembered.count,
    }
    return json.dumps(values).encode()


def stored_arrays(run: GraphRun) -> Iterator[tuple[str, Array]]:
    """Arrays that are written to anywhere."""
    for operator in run.operators:
        for side, store in enumerate(operator.stores):
            yield f"node/{operator.number}/store/{side}/entries", store.used().ravel()
            yield f"node/{operator.number}/store/{side}/table", store.table


def growing_parts(run: GraphRun) -> Iterator[Growing]:
    """What is only added to, between sweeps."""
    arena, texts, remembered = run.arena, run.arena.texts, run.remembered
    yield growing_array("arena/rows", arena.rows[: arena.row_count * occurrences.ROW])
    yield growing_array("arena/slots", arena.slots[: arena.control[joining.SLOTS_USED]])
    yield growing_array("arena/events", arena.events[: arena.event_count * occurrences.EVENT])
    yield growing_array("arena/values", arena.values[: arena.event_count * arena.width])
    for operator in run.operators:
        yield growing_array(f"node/{operator.number}/out", operator.given())
        if isinstance(operator, SequencesOperator):
            yield growing_array(f"node/{operator.number}/members", operator.used_members().ravel())
            yield growing_array(f"node/{operator.number}/reach", operator.used_reach().ravel())
    yield Growing("texts", 0, len(texts), lambda low, high: json.dumps(texts.texts(low)[: high - low]).encode())
    yield Growing("remembered", remembered.first, remembered.count, lambda *rows: blocks.pack(remembered.rows(*rows)))
    for number, output in enumerate(run.outputs):
        if output.reported is not None:
            yield Growing(f"reported/{number}", 0, len(output.reported), _keys(output.reported))


def _keys(reported: Mapping[bytes, None]) -> Callable[[int, int], bytes]:
    return lambda low, high: json.dumps([key.hex() for key in islice(reported, low, high)]).encode()


def load_graph(run: GraphRun, saved: Mapping[str, bytes]) -> None:
    """Go on from the pages of snapshots."""
    summary, pages = json.loads(saved["summary"]), Pages(saved)
    _load_arena(run, summary["arena"], summary["events"], pages)
    for operator in run.operators:
        name = f"node/{operator.number}"
        operator.safe = summary["safe"][operator.number]
        operator.control[:] = summary["control"][operator.number]
        operator.out = pages.numbers(f"{name}/out")
        for side, store in enumerate(operator.stores):
            store.control[:] = summary["stores"][operator.number][side]
            store.entries = pages.numbers(f"{name}/store/{side}/entries")
            store.table = pages.numbers(f"{name}/store/{side}/table")
        if isinstance(operator, SequencesOperator):
            operator.members, operator.reach = pages.numbers(f"{name}/members"), pages.numbers(f"{name}/reach")
    for number, (output, taken) in enumerate(zip(run.outputs, summary["taken"], strict=True)):
        output.taken = taken
        if output.reported is not None:
            output.reported.update(dict.fromkeys(map(bytes.fromhex, pages.texts(f"reported/{number}"))))
    run.running.clock, run.sweep_at = summary["clock"], summary["sweep_at"]
    run.remembered.load(map(blocks.unpack, pages.contents("remembered")), summary["remembered"])


def _load_arena(run: GraphRun, control: list[int], events: int, pages: Pages) -> None:
    arena = run.arena
    arena.control[:], arena.event_count = control, events
    arena.rows, arena.slots = pages.numbers("arena/rows"), pages.numbers("arena/slots")
    arena.events, arena.values = pages.numbers("arena/events"), pages.numbers("arena/values").view(np.float64)
    arena.restore_texts(pages.texts("texts"))
