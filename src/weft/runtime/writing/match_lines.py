"""Match tables as JSON lines, the form in which `weft match` writes them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernels.matches.json_lines import MatchColumns, Texts, Words, write_json_lines


def _constant(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array that cannot be changed, as Arrow's: the kernel is compiled for these."""
    values.flags.writeable = False
    return values


_TEXTS = (b'", "start": ', b', "end": ', b', "positions": [', b'], "bindings": {', b'}, "event": ')
_WORDS = Words(*(np.frombuffer(text, np.uint8) for text in _TEXTS))
_NO_WORD, _NO_PLACES = _constant(np.empty(0, np.uint8)), _constant(np.empty(0, np.int64))
_BARE = Words(_WORDS.start, _WORDS.end, _NO_WORD, _NO_WORD, np.frombuffer(b', "event": ', np.uint8))
# More than any line needs beside its query, id, variables and numbers.
_FRAME = 160
_LONGEST_NUMBER = 22


def json_lines(rows: pa.RecordBatch) -> memoryview:
    """The rows (of MATCH_SCHEMA, maybe without places) as JSON objects, one per line, in UTF-8."""
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
    words = _WORDS if "positions" in rows.schema.names else _BARE
    return out.data[: write_json_lines(columns, words, out)]


def _compact(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with all offsets beginning at zero, as flat arrays need them."""
    if all(column.offset == 0 for column in rows.columns):
        return rows
    return rows.take(pa.array(np.arange(len(rows))))


def _flat_columns(rows: pa.RecordBatch) -> MatchColumns:
    query = rows.column("query").dictionary_encode()
    return MatchColumns(
        heads=_texts([f'{{"query": {_quoted(name)}, "id": "' for name in query.dictionary.to_pylist()]),
        queries=query.indices.to_numpy(),
        ids=_string_buffers(rows.column("id")),
        starts=rows.column("start").to_numpy(),
        ends=rows.column("end").to_numpy(),
        **(_places(rows) if "positions" in rows.schema.names else _no_places(len(rows))),
        events=_string_buffers(rows.column("event")),
    )


def _places(rows: pa.RecordBatch) -> dict[str, Any]:
    """The columns of positions and bindings."""
    positions, bindings = rows.column("positions"), rows.column("bindings")
    keys = bindings.keys.dictionary_encode()
    return {
        "position_offsets": positions.offsets.to_numpy(),
        "positions": positions.values.to_numpy(),
        "keys": _texts([f"{_quoted(name)}: [" for name in keys.dictionary.to_pylist()]),
        "entry_offsets": bindings.offsets.to_numpy(),
        "entry_keys": keys.indices.to_numpy(),
        "value_offsets": bindings.items.offsets.to_numpy(),
        "values": bindings.items.values.to_numpy(),
    }


def _no_places(count: int) -> dict[str, Any]:
    """Columns of positions and bindings for matches that have none."""
    offsets, none = _constant(np.zeros(count + 1, np.int32)), _constant(np.empty(0, np.int32))
    entries = {"keys": _texts([]), "entry_offsets": offsets, "entry_keys": none}
    values = {"value_offsets": none, "values": _NO_PLACES}
    return {"position_offsets": offsets, "positions": _NO_PLACES, **entries, **values}


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
