"""Match tables as JSON lines, the form in which `weft match` writes them."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernels.matches.json_lines import MatchColumns, Texts, Words, write_json_lines

_WORDS = Words(
    *(
        np.frombuffer(text, np.uint8)
        for text in (b'", "start": ', b', "end": ', b', "positions": [', b'], "bindings": {', b'}, "event": ')
    )
)
# More than any line needs beside its query, id, variables and numbers.
_FRAME = 160
_LONGEST_NUMBER = 22


def json_lines(rows: pa.RecordBatch) -> memoryview:
    """The rows (of MATCH_SCHEMA) as JSON objects, one per line, in UTF-8."""
    rows = _compact(rows)
    columns = _flat_columns(rows)
    capacity = (
        _FRAME * len(rows)
        + _LONGEST_NUMBER * (len(columns.positions) + len(columns.values))
        + int(np.diff(columns.heads.offsets)[columns.queries].sum())
        + int((np.diff(columns.keys.offsets)[columns.entry_keys] + 3).sum())
        + len(columns.ids.data)
        + len(columns.events.data)
    )
    out = np.empty(capacity, np.uint8)
    return out.data[: write_json_lines(columns, _WORDS, out)]


def _compact(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with all offsets beginning at zero, as flat arrays need them."""
    if all(column.offset == 0 for column in rows.columns):
        return rows
    return rows.take(pa.array(np.arange(len(rows))))


def _flat_columns(rows: pa.RecordBatch) -> MatchColumns:
    query = rows.column("query").dictionary_encode()
    positions = rows.column("positions")
    bindings = rows.column("bindings")
    keys = bindings.keys.dictionary_encode()
    return MatchColumns(
        heads=_texts([f'{{"query": {_quoted(name)}, "id": "' for name in query.dictionary.to_pylist()]),
        queries=query.indices.to_numpy(),
        ids=_string_buffers(rows.column("id")),
        starts=rows.column("start").to_numpy(),
        ends=rows.column("end").to_numpy(),
        position_offsets=positions.offsets.to_numpy(),
        positions=positions.values.to_numpy(),
        keys=_texts([f"{_quoted(name)}: [" for name in keys.dictionary.to_pylist()]),
        entry_offsets=bindings.offsets.to_numpy(),
        entry_keys=keys.indices.to_numpy(),
        value_offsets=bindings.items.offsets.to_numpy(),
        values=bindings.items.values.to_numpy(),
        events=_string_buffers(rows.column("event")),
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _texts(texts: list[str]) -> Texts:
    return _string_buffers(pa.array(texts, pa.string()))


def _string_buffers(texts: pa.Array) -> Texts:
    if not pa.types.is_string(texts.type):
        texts = pc.cast(texts, pa.string())
    _, offsets, data = texts.buffers()
    ends: npt.NDArray[np.int32] = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
    for array in (ends, letters):
        array.flags.writeable = False  # as all columns of Arrow's are: the kernel is compiled once
    return Texts(ends, letters)
