"""State as named pages of bytes, of which a snapshot gives only those that changed.

Nodes never change once made, so their pages are written as they fill and dropped when they expire. All
else is small or compared by digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from weft.kernels.automaton import tecs
from weft.kernels.automaton.update import LONG
from weft.runtime.automaton.advancing import AutomatonRun
from weft.runtime.automaton.history import History
from weft.runtime.blocks import KINDS
from weft.runtime.events import Column, Int64s

FORMAT = 4  # of all pages: another number for another layout, which this one cannot read
FOREIGN = "the saved state belongs to another program or version: start with a new checkpoint"
NODES = 1024  # nodes per page
SLOTS = 256  # partitions per page

Pages = dict[str, bytes]


class PageStore:
    """Remembers which pages a snapshot has given out, to tell the changed ones."""

    def __init__(self) -> None:
        self._digests: dict[str, bytes] = {}

    def changes(self, pages: Iterable[tuple[str, bytes]], kept: Iterable[str]) -> dict[str, bytes | None]:
        """Pages whose content is new; None for pages that are neither given nor kept unread."""
        result: dict[str, bytes | None] = {}
        digests = {name: self._digests[name] for name in kept}
        for name, page in pages:
            digests[name] = _digest(page)
            if self._digests.get(name) != digests[name]:
                result[name] = page
        result.update(dict.fromkeys(self._digests.keys() - digests.keys()))
        self._digests = digests
        return result

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Take pages as given out."""
        self._digests = {name: _digest(page) for name, page in pages.items()}


def _digest(page: bytes) -> bytes:
    return hashlib.blake2b(page, digest_size=12).digest()


# -- one automaton ------------------------------------------------------------------------------


def node_pages(run: AutomatonRun, saved: int) -> tuple[Pages, range]:
    """Pages with nodes made since the id `saved`, and the numbers of all pages that still matter."""
    head, tail = int(run.control[tecs.HEAD]), int(run.control[tecs.TAIL])
    pages: Pages = {}
    for page in range(max(saved, tail) // NODES, -(-head // NODES)):
        low, high = max(page * NODES, tail), min((page + 1) * NODES, head)
        if low < high:
            pages[f"nodes/{page}"] = low.to_bytes(8, "little") + b"".join(
                part.tobytes() for part in run.node_slices(low, high)
            )
    return pages, range(tail // NODES, -(-head // NODES) if tail < head else 0)


def load_node_page(run: AutomatonRun, page: bytes) -> None:
    """Put the nodes of a page back to where they were."""
    low = int.from_bytes(page[:8], "little")
    words = np.frombuffer(page, np.int64, offset=8)
    run.load_nodes(low, words)


def row_pages(run: AutomatonRun) -> Iterable[tuple[str, bytes]]:
    """The rows of all partitions."""
    slots = len(run.state.epochs)
    words, states = len(run.state.active) // slots, len(run.state.rows) // (2 * slots)
    for page, low in enumerate(range(0, slots, SLOTS)):
        high = min(low + SLOTS, slots)
        parts = (
            run.state.active[low * words : high * words],
            run.state.rows[low * 2 * states : high * 2 * states],
            run.state.epochs[low:high],
            run.state.lengths.reshape(slots, -1)[low:high],
        )
        yield f"rows/{page}", b"".join(part.tobytes() for part in parts)


def load_row_page(run: AutomatonRun, page: int, content: bytes) -> None:
    """Put the rows of a page back."""
    slots = len(run.state.epochs)
    words, states = len(run.state.active) // slots, len(run.state.rows) // (2 * slots)
    low, high = page * SLOTS, min((page + 1) * SLOTS, slots)
    values = np.frombuffer(content, np.int64)
    count = high - low
    run.state.active[low * words : high * words] = values[: count * words].view(np.uint64)
    run.state.rows[low * 2 * states : high * 2 * states] = values[count * words : count * (words + 2 * states)]
    end = count * (words + 2 * states + 1)
    run.state.epochs[low:high] = values[end - count : end]
    lengths = values[end:].reshape(count, -1)  # older versions did not measure them: any may be long
    run.state.lengths.reshape(slots, -1)[low:high] = lengths if lengths.size else LONG


# -- the history of selected attributes -----------------------------------------------------------


def history_pages(history: History) -> Iterable[tuple[str, bytes]]:
    """A page for each chunk, named by its first position."""
    for positions, columns in history.chunks:
        if len(positions):
            yield f"history/{positions[0]}", _pack_chunk(positions, columns)


def _pack_chunk(positions: Int64s, columns: Mapping[str, Column]) -> bytes:
    arrays, names = [pa.array(positions)], ["positions"]
    for name, column in columns.items():
        for kind in KINDS:
            values = getattr(column, kind)
            if values is not None:
                arrays.append(values)
                names.append(json.dumps([kind, name]))
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def load_history(history: History, pages: Mapping[str, bytes]) -> None:
    """Put the chunks back, oldest first."""
    for name in sorted(pages, key=lambda name: int(name.rpartition("/")[2])):
        batch = pa.ipc.open_stream(pages[name]).read_next_batch()
        kinds: dict[str, dict[str, pa.Array]] = {}
        for field, values in zip(batch.schema.names[1:], batch.columns[1:], strict=True):
            kind, attribute = json.loads(field)
            kinds.setdefault(attribute, {})[kind] = values
        columns = {name: Column(**kinds.get(name, {})) for name in history.attributes}
        history.chunks.append((np.asarray(batch.columns[0]), columns))
