"""Blocks of events: sliced, gathered, merged in stream order, and encoded (Arrow IPC) for shuffles and state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.errors import InputError
from weft.runtime.data.events import Column, EventBatch, Int64s
from weft.runtime.data.exact import as_floats
from weft.runtime.data.joint_types import join_rows

_ROWS = "r"
KINDS = ("numbers", "texts", "booleans", "exact")
PUSHED = 65536  # events at a time that kernels like

# What is said of more texts than one array of Arrow's holds.
TOO_LONG = (
    "one batch has more than 2 GiB of different texts in one attribute: give smaller batches (batch_size, "
    "--bytes-per-trigger), or leave such texts out of the program"
)


def _change(batch: EventBatch, arrow: Callable[[pa.Array], pa.Array], times: Callable[[Int64s], Int64s]) -> EventBatch:
    ends = times(batch.ends)
    positions = ends if batch.positions is batch.ends else times(batch.positions)
    return EventBatch(
        types=arrow(batch.types),
        starts=ends if batch.starts is batch.ends else times(batch.starts),
        ends=ends,
        positions=positions,
        columns={name: column.map(arrow) for name, column in batch.columns.items()},
        streams=None if batch.streams is None else arrow(batch.streams),
        rows=None if batch.rows is None else arrow(batch.rows),
    )


def slice(batch: EventBatch, offset: int, length: int | None = None) -> EventBatch:
    """Return consecutive events of a batch, without a copy."""
    stop = len(batch) if length is None else min(len(batch), offset + length)
    if offset == 0 and stop == len(batch):
        return batch
    return _change(batch, lambda a: a.slice(offset, stop - offset), lambda a: a[offset:stop])


def take(batch: EventBatch, indices: npt.NDArray[np.integer]) -> EventBatch:
    """Return the events at these places of the batch, in this order."""
    index = pa.array(indices)
    return _change(batch, lambda a: a.take(index), lambda a: a[indices])


def concat(batches: Iterable[EventBatch]) -> EventBatch:
    """Return the events of all batches, one batch after another."""
    parts = [batch for batch in batches if len(batch.ends)]
    if not parts:
        return empty()
    if len(parts) == 1:
        return parts[0]
    lengths = [len(part.ends) for part in parts]
    instant = all(part.starts is part.ends for part in parts)
    ends = np.concatenate([part.ends for part in parts])
    names = dict.fromkeys(name for part in parts for name in part.columns)
    return EventBatch(
        types=join([part.types for part in parts], lengths),
        starts=ends if instant else np.concatenate([part.starts for part in parts]),
        ends=ends,
        positions=np.concatenate([part.positions for part in parts]),
        columns={name: join_columns([part.columns.get(name) for part in parts], lengths) for name in names},
        streams=join([part.streams for part in parts], lengths) if any(p.streams is not None for p in parts) else None,
        rows=join_rows([part.rows for part in parts]) if all(part.rows is not None for part in parts) else None,
    )


def pieces(batch: EventBatch, events: int = PUSHED) -> Iterator[EventBatch]:
    """Split a batch into batches of at most `events` events."""
    return (slice(batch, first, events) for first in range(0, len(batch), events))


def joined(batches: Iterable[EventBatch], events: int) -> Iterator[EventBatch]:
    """Concatenate batches into larger ones, of about `events` events."""
    pending: list[EventBatch] = []
    count = 0
    for batch in batches:
        if pending and count + len(batch) > events:
            yield concat(pending)
            pending, count = [], 0
        pending.append(batch)
        count += len(batch)
    if pending:
        yield concat(pending)


def empty() -> EventBatch:
    """Return a batch without events."""
    none = np.empty(0, np.int64)
    return EventBatch(pa.array([], pa.string()), none, none, none)


def merge(batches: Iterable[EventBatch]) -> EventBatch:
    """Return the events of all batches in stream order: by end, start, position."""
    batch = concat(batches)
    if in_order(batch):
        return batch
    return take(batch, np.lexsort((batch.positions, batch.starts, batch.ends)))


def in_order(batch: EventBatch) -> bool:
    """Whether the events are in stream order already."""
    ends, starts, positions = batch.ends, batch.starts, batch.positions
    later = ends[1:] > ends[:-1]
    if bool(later.all()):
        return True
    tied = ends[1:] == ends[:-1]
    after = (starts[1:] > starts[:-1]) | ((starts[1:] == starts[:-1]) & (positions[1:] >= positions[:-1]))
    return bool((later | (tied & after)).all())


def join_columns(columns: Sequence[Column | None], lengths: Sequence[int]) -> Column:
    """Concatenate columns of these lengths; None means a part without the attribute."""
    arrays: dict[str, pa.Array] = {}
    if len({column.numbers.type for column in columns if column is not None and column.numbers is not None}) > 1:
        columns = [None if column is None else as_floats(column) for column in columns]
    for kind in KINDS:
        parts = [None if column is None else getattr(column, kind) for column in columns]
        if any(part is not None for part in parts):
            arrays[kind] = join(parts, lengths)
    return Column(**arrays)


def join(arrays: Sequence[pa.Array | None], lengths: Sequence[int]) -> pa.Array:
    """Concatenate arrays of one kind, where None means nulls; dictionaries are decoded to texts."""
    if all(array is not None for array in arrays):
        try:
            return pa.concat_arrays(arrays)
        except pa.ArrowInvalid:  # of several types, or more than two gigabytes of texts
            pass
    types = {array.type for array in arrays if array is not None}
    several = pa.float64() if pa.float64() in types else pa.string()
    target = types.pop() if len(types) == 1 else several
    parts = []
    for array, length in zip(arrays, lengths, strict=True):
        if array is None:
            parts.append(pa.nulls(length, target))
        else:
            parts.append(array if array.type == target else array.cast(target, safe=False))
    if len(parts) == 1:
        return parts[0]
    if pa.types.is_dictionary(target):
        try:
            joined = pa.chunked_array(parts).unify_dictionaries().combine_chunks()
            return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
        except (pa.ArrowInvalid, pa.ArrowCapacityError, pa.ArrowIndexError):
            raise InputError(TOO_LONG) from None
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid:  # more than two gigabytes of texts
        return join([part.dictionary_encode() for part in parts], lengths)


def pack(batch: EventBatch, compression: str | None = None) -> bytes:
    """Encode the batch as bytes; `compression` is None, "lz4" or "zstd"."""
    names, arrays = ["p", "e"], [pa.array(batch.positions), pa.array(batch.ends)]
    if batch.starts is not batch.ends and not np.array_equal(batch.starts, batch.ends):
        names.append("s")
        arrays.append(pa.array(batch.starts))
    names.append("t")
    arrays.append(_compact(batch.types))
    if batch.streams is not None:
        names.append("m")
        arrays.append(_compact(batch.streams))
    for name, column in batch.columns.items():
        for kind in KINDS:
            array = getattr(column, kind)
            if array is not None:
                names.append(f"{kind}:{name}")
                arrays.append(_compact(array))
    if batch.rows is not None:
        names.append(_ROWS)
        arrays.append(batch.rows.to_struct_array())
    return packed_rows(pa.record_batch(arrays, names=names), compression)


def packed_rows(rows: pa.RecordBatch, compression: str | None = None) -> bytes:
    """Encode a record batch as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpacked_rows(data: bytes | pa.Buffer) -> pa.RecordBatch:
    """Decode the result of `packed_rows`."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()


def _compact(array: pa.Array) -> pa.Array:
    """Replace a dictionary that is larger than the batch by plain texts."""
    if pa.types.is_dictionary(array.type) and len(array.dictionary) > len(array):
        return array.cast(pa.string())
    return array


def unpack(data: bytes | pa.Buffer) -> EventBatch:
    """Decode the result of `pack`; its arrays share the memory of the bytes."""
    return unpacked(unpacked_rows(data))


def unpacked(rows: pa.RecordBatch) -> EventBatch:
    """Convert the record batch of a packed batch back to a batch."""
    core: dict[str, pa.Array] = {}
    kinds: dict[str, dict[str, pa.Array]] = {}
    for name, array in zip(rows.schema.names, rows.columns, strict=True):
        kind, colon, attribute = name.partition(":")
        if colon:
            kinds.setdefault(attribute, {})[kind] = array
        else:
            core[name] = array
    ends = core["e"].to_numpy()
    return EventBatch(
        types=core["t"],
        starts=core["s"].to_numpy() if "s" in core else ends,
        ends=ends,
        positions=core["p"].to_numpy(),
        columns={name: Column(**arrays) for name, arrays in kinds.items()},
        streams=core.get("m"),
        rows=pa.RecordBatch.from_struct_array(core[_ROWS]) if _ROWS in core else None,
    )
