"""Save the state of one automaton as pages: nodes are immutable, so their pages are written once they fill."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft.kernels.automaton import tecs
from weft.kernels.automaton.update import LONG
from weft.runtime.operators.automaton.advancing import AutomatonRun

NODES = 1024  # nodes per page
SLOTS = 256  # partitions per page


def node_pages(run: AutomatonRun, saved: int) -> tuple[dict[str, bytes], range]:
    """Return the pages with nodes added since the id `saved`, and the numbers of all pages that are still needed."""
    head, tail = int(run.control[tecs.HEAD]), int(run.control[tecs.TAIL])
    pages: dict[str, bytes] = {}
    for page in range(max(saved, tail) // NODES, -(-head // NODES)):
        low, high = max(page * NODES, tail), min((page + 1) * NODES, head)
        if low < high:
            pages[f"nodes/{page}"] = low.to_bytes(8, "little") + b"".join(
                part.tobytes() for part in run.node_slices(low, high)
            )
    return pages, range(tail // NODES, -(-head // NODES) if tail < head else 0)


def load_node_page(run: AutomatonRun, page: bytes) -> None:
    """Restore the nodes of a page."""
    low = int.from_bytes(page[:8], "little")
    words = np.frombuffer(page, np.int64, offset=8)
    run.load_nodes(low, words)


def row_pages(run: AutomatonRun) -> Iterable[tuple[str, bytes]]:
    """Yield the rows of all partitions as pages."""
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
    """Restore the rows of a page."""
    slots = len(run.state.epochs)
    words, states = len(run.state.active) // slots, len(run.state.rows) // (2 * slots)
    low, high = page * SLOTS, min((page + 1) * SLOTS, slots)
    values = np.frombuffer(content, np.int64)
    count = high - low
    run.state.active[low * words : high * words] = values[: count * words].view(np.uint64)
    run.state.rows[low * 2 * states : high * 2 * states] = values[count * words : count * (words + 2 * states)]
    end = count * (words + 2 * states + 1)
    run.state.epochs[low:high] = values[end - count : end]
    lengths = values[end:].reshape(count, -1)  # older versions did not store them, so assume the greatest
    run.state.lengths.reshape(slots, -1)[low:high] = lengths if lengths.size else LONG
