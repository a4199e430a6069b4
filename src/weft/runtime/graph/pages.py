"""The state of a graph as pages of bytes: what only grows is written as it grows, the rest when it differs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from weft.kernels import follow, occurrences
from weft.runtime import blocks
from weft.runtime.events import Int64s
from weft.runtime.graph.joins import SequencesOperator

if TYPE_CHECKING:
    from weft.runtime.graph.run import GraphRun

ITEMS = 1024  # on a page: numbers, texts or events

Array = npt.NDArray[np.generic]
Pages = dict[str, bytes]


@dataclass(frozen=True)
class Growing:
    """A part of the state that is only added to between sweeps: items `first` to `count`, and some of them as bytes."""

    name: str
    first: int
    count: int
    content: Callable[[int, int], bytes]

    def page(self, number: int) -> bytes:
        """The items whose numbers belong to a page."""
        return self.content(max(number * ITEMS, self.first), min((number + 1) * ITEMS, self.count))


def graph_changes(run: GraphRun) -> tuple[Pages, list[str]]:
    """Pages of the state that may have changed, and the names of pages that have not and still matter."""
    pages, kept = {"summary": _summary(run)}, []
    for name, array in _changing(run):
        for number in range(0, len(array), ITEMS):
            pages[f"{name}/{number // ITEMS}"] = array[number : number + ITEMS].tobytes()
    for part in _growing(run):
        saved = run.saved.get(part.name, 0)
        for number in range(part.first // ITEMS, -(-part.count // ITEMS)):
            if (number + 1) * ITEMS <= saved:
                kept.append(f"{part.name}/{number}")
            else:
                pages[f"{part.name}/{number}"] = part.page(number)
        run.saved[part.name] = part.count
    return pages, kept


def _summary(run: GraphRun) -> bytes:
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


def _changing(run: GraphRun) -> Iterator[tuple[str, Array]]:
    """Arrays that are written to anywhere."""
    for operator in run.operators:
        for side, store in enumerate(operator.stores):
            yield f"node/{operator.number}/store/{side}/entries", store.used().ravel()
            yield f"node/{operator.number}/store/{side}/table", store.table


def _growing(run: GraphRun) -> Iterator[Growing]:
    for name, array in _growing_arrays(run):
        yield Growing(name, 0, len(array), lambda low, high, array=array: array[low:high].tobytes())  # type: ignore[misc]
    texts, remembered = run.arena.texts, run.remembered
    yield Growing("texts", 0, len(texts), lambda low, high: json.dumps(texts.texts(low)[: high - low]).encode())
    yield Growing("remembered", remembered.first, remembered.count, lambda *rows: blocks.pack(remembered.rows(*rows)))
    for number, output in enumerate(run.outputs):
        if output.reported is not None:
            yield Growing(f"reported/{number}", 0, len(output.reported), _reported(output.reported))


def _reported(keys: Mapping[bytes, None]) -> Callable[[int, int], bytes]:
    return lambda low, high: json.dumps([key.hex() for key in islice(keys, low, high)]).encode()


def _growing_arrays(run: GraphRun) -> Iterator[tuple[str, Array]]:
    """Arrays that are only added to, as far as they are used."""
    arena = run.arena
    yield "arena/rows", arena.rows[: arena.row_count * occurrences.ROW]
    yield "arena/slots", arena.slots[: arena.control[follow.SLOTS_USED]]
    yield "arena/events", arena.events[: arena.event_count * occurrences.EVENT]
    yield "arena/values", arena.values[: arena.event_count * arena.width]
    for operator in run.operators:
        yield f"node/{operator.number}/out", operator.given()
        if isinstance(operator, SequencesOperator):
            yield f"node/{operator.number}/members", operator.members[: operator.member_count * 3]
            yield f"node/{operator.number}/reach", operator.reach[: operator.reach_count]


# -- reading --------------------------------------------------------------------------------------


def load_graph(run: GraphRun, pages: Mapping[str, bytes]) -> None:
    """Go on from the pages of snapshots."""
    summary = json.loads(pages["summary"])
    kept = _Reader(pages)
    _load_arena(run, summary["arena"], summary["events"], kept)
    for operator in run.operators:
        name = f"node/{operator.number}"
        operator.safe = summary["safe"][operator.number]
        operator.control[:] = summary["control"][operator.number]
        operator.out = kept.numbers(f"{name}/out")
        for side, store in enumerate(operator.stores):
            store.control[:] = summary["stores"][operator.number][side]
            store.entries = kept.numbers(f"{name}/store/{side}/entries")
            store.table = kept.numbers(f"{name}/store/{side}/table")
        if isinstance(operator, SequencesOperator):
            operator.members, operator.reach = kept.numbers(f"{name}/members"), kept.numbers(f"{name}/reach")
    for number, (output, taken) in enumerate(zip(run.outputs, summary["taken"], strict=True)):
        output.taken = taken
        if output.reported is not None:
            output.reported.update(dict.fromkeys(map(bytes.fromhex, kept.values(f"reported/{number}"))))
    run.running.clock, run.sweep_at = summary["clock"], summary["sweep_at"]
    run.remembered.load(map(blocks.unpack, kept.contents("remembered")), summary["remembered"])
    run.saved = {part.name: part.count for part in _growing(run)}


def _load_arena(run: GraphRun, control: list[int], events: int, kept: _Reader) -> None:
    arena = run.arena
    arena.control[:], arena.event_count = control, events
    arena.rows, arena.slots = kept.numbers("arena/rows"), kept.numbers("arena/slots")
    arena.events, arena.values = kept.numbers("arena/events"), kept.numbers("arena/values").view(np.float64)
    arena.restore_texts(kept.values("texts"))


class _Reader:
    """Reads what was cut into pages."""

    def __init__(self, pages: Mapping[str, bytes]) -> None:
        self._pages = pages
        self._names: dict[str, list[str]] = {}
        for name in pages:
            self._names.setdefault(name.rpartition("/")[0], []).append(name)

    def contents(self, name: str) -> Iterable[bytes]:
        """The pages of a part, in their order."""
        names = sorted(self._names.get(name, ()), key=lambda page: int(page.rpartition("/")[2]))
        return (self._pages[page] for page in names)

    def numbers(self, name: str) -> Int64s:
        """An array of whole numbers, to be written to."""
        return np.frombuffer(bytearray(b"".join(self.contents(name))), np.int64)

    def values(self, name: str) -> list[str]:
        """A list of texts."""
        return [value for page in self.contents(name) for value in json.loads(page)]
