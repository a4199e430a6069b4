"""The state of a graph as pages of bytes, and giving up what can no longer matter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from weft.kernels import buckets, compact, follow, occurrences
from weft.runtime import blocks
from weft.runtime.events import Int64s
from weft.runtime.graph.joins import SequencesOperator
from weft.runtime.graph.operators import Operator, Store

if TYPE_CHECKING:
    from weft.runtime.graph.run import GraphRun

LEAST_ROWS = 1 << 15  # fewer rows are not worth a sweep
PAGE = 1 << 16  # bytes of a page

Array = npt.NDArray[np.generic]


# -- sweeping -------------------------------------------------------------------------------------


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


# -- pages ----------------------------------------------------------------------------------------


def graph_pages(run: GraphRun) -> Iterator[tuple[str, bytes]]:
    """All state, as named pages."""
    for name, array in _arrays(run):
        content = array.tobytes()
        for number in range(0, max(len(content), 1), PAGE):
            yield f"{name}/{number // PAGE}", content[number : number + PAGE]
    arena = run.arena
    summary = {
        "events": arena.event_count,
        "clock": run.running.clock,
        "safe": [operator.safe for operator in run.operators],
        "taken": [output.taken for output in run.outputs],
        "texts": arena.texts.texts(),
        "sweep_at": run.sweep_at,
        "reported": [sorted(key.hex() for key in output.reported or ()) for output in run.outputs],
    }
    yield "summary", json.dumps(summary).encode()
    for chunk in run.remembered.chunks:
        yield f"remembered/{chunk.positions[0]}", blocks.pack(chunk)


def _arrays(run: GraphRun) -> Iterator[tuple[str, Array]]:
    """Everything that is kept in arrays, as far as it is used."""
    arena = run.arena
    yield "arena/control", arena.control
    yield "arena/rows", arena.rows[: arena.row_count * occurrences.ROW]
    yield "arena/slots", arena.slots[: arena.control[follow.SLOTS_USED]]
    yield "arena/events", arena.events[: arena.event_count * occurrences.EVENT]
    yield "arena/values", arena.values[: arena.event_count * arena.width]
    for operator in run.operators:
        name = f"node/{operator.number}"
        yield f"{name}/control", operator.control
        yield f"{name}/out", operator.given()
        for side, store in enumerate(operator.stores):
            yield f"{name}/store/{side}/control", store.control
            yield f"{name}/store/{side}/entries", store.used().ravel()
            yield f"{name}/store/{side}/table", store.table
        if isinstance(operator, SequencesOperator):
            yield f"{name}/members", operator.members[: operator.member_count * 3]
            yield f"{name}/reach", operator.reach[: operator.reach_count]


def load_graph(run: GraphRun, pages: Mapping[str, bytes]) -> None:
    """Go on from a snapshot."""
    summary = json.loads(pages["summary"])
    arena = run.arena
    ints = _Loader(pages)
    arena.control[:] = ints.read("arena/control")
    arena.rows, arena.slots = ints.read("arena/rows"), ints.read("arena/slots")
    arena.events, arena.event_count = ints.read("arena/events"), summary["events"]
    arena.values = ints.read("arena/values").view(np.float64)
    arena.restore_texts(summary["texts"])
    for operator, safe in zip(run.operators, summary["safe"], strict=True):
        name = f"node/{operator.number}"
        operator.safe = safe
        operator.control[:] = ints.read(f"{name}/control")
        operator.out = ints.read(f"{name}/out")
        for side, store in enumerate(operator.stores):
            store.control[:] = ints.read(f"{name}/store/{side}/control")
            store.entries = ints.read(f"{name}/store/{side}/entries")
            store.table = ints.read(f"{name}/store/{side}/table")
        if isinstance(operator, SequencesOperator):
            operator.members, operator.reach = ints.read(f"{name}/members"), ints.read(f"{name}/reach")
    for output, taken, reported in zip(run.outputs, summary["taken"], summary["reported"], strict=True):
        output.taken = taken
        if output.reported is not None:
            output.reported.update(map(bytes.fromhex, reported))
    run.running.clock, run.sweep_at = summary["clock"], summary["sweep_at"]
    chunks = [pages[name] for name in _by_number(name for name in pages if name.startswith("remembered/"))]
    run.remembered.chunks = [blocks.unpack(chunk) for chunk in chunks]


class _Loader:
    """Reads arrays that were cut into pages."""

    def __init__(self, pages: Mapping[str, bytes]) -> None:
        self._pages = pages
        self._names: dict[str, list[str]] = {}
        for name in pages:
            self._names.setdefault(name.rpartition("/")[0], []).append(name)

    def read(self, name: str) -> Int64s:
        """An array of whole numbers, to be written to."""
        content = b"".join(self._pages[page] for page in _by_number(self._names[name]))
        return np.frombuffer(bytearray(content), np.int64)


def _by_number(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: int(name.rpartition("/")[2]))
