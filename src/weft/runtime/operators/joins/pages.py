"""Save the state of a graph as pages of bytes, and restore it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from weft.kernels.joins import buckets, joining, occurrences
from weft.runtime.data.events import Int64s
from weft.runtime.operators.joins.joining import SequencesOperator
from weft.runtime.operators.joins.operators import JoinNode, Store
from weft.runtime.store.pages import Array, Growing, Pages, by_page, growing_array

if TYPE_CHECKING:
    from weft.runtime.operators.joins.operator import JoinOperator

_KEPT = "remembered"


def summary_of(run: JoinOperator) -> bytes:
    """Return counters, watermarks and control blocks as JSON."""
    values = {
        "clock": run.running.clock,
        "sweep_at": run.sweep_at,
        "watermark": [operator.watermark for operator in run.operators],
        "control": [operator.control[: joining.CONTROL].tolist() for operator in run.operators],
        "taken": [output.taken for output in run.outputs],
    }
    return json.dumps(values).encode()


def store_pages(run: JoinOperator) -> Iterator[tuple[str, bytes]]:
    """Yield the stored occurrences, a page for each range of ids, so that an entry stays on its page."""
    for operator in run.operators:
        for side, store in enumerate(operator.stores):
            for number, part in by_page(stored(store)):
                yield f"node/{operator.number}/store/{side}/{number}", part.tobytes()


def stored(store: Store) -> Int64s:
    """Return the entries of a store by id, one per row: id, word of the key, time from which its age counts, mark."""
    live, places = store.live(), store.table.reshape(-1, buckets.PLACE)
    words = np.repeat(places[:, buckets.WORD], places[:, buckets.TAIL] - places[:, buckets.HEAD])
    ids, since, marks = store.used()[live][:, [buckets.ID, buckets.SINCE, buckets.MARK]].T
    kept = np.stack([ids, words, since, marks], axis=1)[ids >= 0]
    ordered: Int64s = kept[np.argsort(kept[:, 0], kind="stable")]
    return ordered


def load_store(run: JoinOperator, operator: JoinNode, store: Store, kept: Int64s) -> None:
    """Fill a store with saved entries, sorted by key and end, and rebuild the table of its keys."""
    row_store = run.row_store
    ends = row_store.rows[kept[:, 0] * occurrences.ROW + occurrences.END]
    order = np.lexsort((kept[:, 0], ends, kept[:, 1]))
    entries = np.zeros((len(kept), buckets.ENTRY), np.int64)
    entries[:, [buckets.ID, buckets.SINCE, buckets.MARK]] = kept[order][:, [0, 2, 3]]
    entries[:, buckets.ENDED] = ends[order]
    words, begins = np.unique(kept[order, 1], return_index=True)
    stops = np.append(begins[1:], len(kept))[: len(words)]
    table = np.stack([words, begins, begins, stops, stops], axis=1)
    store.entries, store.table = buckets.rebuild(
        operator.tests,
        operator.key,
        store.side,
        True,
        row_store.facts(),
        row_store.rows,
        row_store.slots,
        entries.ravel(),
        table.ravel(),
        store.control,
    )


def chain_arrays(run: JoinOperator) -> Iterator[tuple[str, Array]]:
    """Yield the partial chains."""
    for chain in run.chains:
        yield f"node/{chain.number}/heads", chain.heads
        yield f"node/{chain.number}/entries", chain.used().ravel()
        yield f"node/{chain.number}/state", chain.state


def growing_parts(run: JoinOperator) -> Iterator[Growing]:
    """Yield the arrays that are only appended to between sweeps."""
    row_store, texts = run.row_store, run.row_store.texts
    for name, array in row_store.arrays().items():
        yield growing_array(f"arena/{name}", array)
    for operator in run.operators:
        yield growing_array(f"node/{operator.number}/out", operator.emitted_rows())
        if isinstance(operator, SequencesOperator):
            yield growing_array(f"node/{operator.number}/members", operator.used_members().ravel())
            yield growing_array(f"node/{operator.number}/reach", operator.used_reach().ravel())
    yield Growing("texts", 0, len(texts), lambda low, high: json.dumps(texts.texts(low)[: high - low]).encode())
    yield run.kept.growing(_KEPT)
    for number, output in enumerate(run.outputs):
        if output.reported is not None:
            yield Growing(f"reported/{number}", 0, len(output.reported), _keys(output.reported))


def _keys(reported: Mapping[bytes, None]) -> Callable[[int, int], bytes]:
    return lambda low, high: json.dumps([key.hex() for key in islice(reported, low, high)]).encode()


def load_graph(run: JoinOperator, saved: Mapping[str, bytes]) -> None:
    """Restore the state of a graph from the pages of snapshots."""
    summary, pages = json.loads(saved["summary"]), Pages(saved)
    run.row_store.load(pages, "arena/")
    for operator in run.operators:
        name = f"node/{operator.number}"
        operator.watermark = summary["watermark"][operator.number]
        operator.control[: joining.CONTROL] = summary["control"][operator.number]
        operator.out = pages.numbers(f"{name}/out")
        for side, store in enumerate(operator.stores):
            load_store(run, operator, store, pages.numbers(f"{name}/store/{side}").reshape(-1, 4))
        if isinstance(operator, SequencesOperator):
            operator.members, operator.reach = pages.numbers(f"{name}/members"), pages.numbers(f"{name}/reach")
    for chain in run.chains:
        chain.heads, chain.entries, chain.state = (
            pages.numbers(f"node/{chain.number}/{part}") for part in ("heads", "entries", "state")
        )
    for number, (output, taken) in enumerate(zip(run.outputs, summary["taken"], strict=True)):
        output.taken = taken
        if output.reported is not None:
            output.reported.update(dict.fromkeys(map(bytes.fromhex, pages.texts(f"reported/{number}"))))
    run.running.clock, run.sweep_at = summary["clock"], summary["sweep_at"]
    run.kept.load(saved, _KEPT)
