"""Encode columns as JSON: a text for each value, an object for each row, identical to Python's output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernels.matches import json_texts as kernel
from weft.runtime.data.buffers import names_by_number, room, strings, text_buffers, validity_of

Int32s = npt.NDArray[np.int32]
SAMPLE = 1 << 12  # values that tell whether values repeat
_LONGEST_ESCAPE, _NULL = 6, 4
_EMPTY, _NOTHING = pa.array(["{}"]), pa.array([""])
_COMMA = ", "


def json_object(values: Mapping[str, object]) -> str:
    """Encode values by name as a JSON object."""
    return "{" + ", ".join(f"{json.dumps(name)}: {_json_text(value)}" for name, value in values.items()) + "}"


def _json_text(value: object) -> str:
    """Encode a value as JSON. JSON has no infinity, but numbers of any size and precision."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list) and any(isinstance(item, Decimal) for item in value):
        return "[" + ", ".join(map(_json_text, value)) + "]"
    text = json.dumps(value, ensure_ascii=False)
    return {"Infinity": "1e999", "-Infinity": "-1e999"}.get(text, text)


def json_objects(columns: Mapping[str, pa.Array | pa.ChunkedArray], rows: int) -> pa.Array:
    """Encode each row of the columns as a JSON object."""
    if not columns:
        return names_by_number(np.zeros(rows, np.int32), _EMPTY)
    parts = []
    for number, (name, column) in enumerate(columns.items()):
        values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        parts.append(_part(f"{', ' if number else '{'}{json.dumps(name)}: ", values))
    return _joined(parts, "}", rows)


def sparse_json_objects(columns: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """Encode each row of the columns as a JSON object without missing values."""
    parts = [_named(f"{json.dumps(name)}: ", values) for name, values in columns.items()]
    if not parts:
        return json_objects({}, rows)
    inside = pc.binary_join_element_wise(*parts, "") if len(parts) > 1 else parts[0]
    return pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(inside, len(_COMMA)), "}", "")


def _named(name: str, values: pa.Array) -> pa.Array:
    """Encode each value as JSON after a comma and its name; an empty text if it is missing."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    is_union = pa.types.is_union(values.type)  # which is never null itself
    present = pa.array([value is not None for value in values.to_pylist()]) if is_union else values.is_valid()
    texts = pc.binary_join_element_wise(_COMMA + name, pc.fill_null(_spelled(values), ""), "")
    return pc.if_else(present, texts, "")


class _Part(NamedTuple):
    """The contribution of one column: `before`, and the text chosen by number in each row; null if that is empty."""

    before: str
    texts: pa.Array
    codes: Int32s


def _part(name: str, values: pa.Array) -> _Part:
    is_coded = pa.types.is_dictionary(values.type)
    if is_coded and len(values.dictionary) > len(values):
        values, is_coded = values.dictionary_decode(), False
    elif not is_coded and _repeats(values):
        values, is_coded = values.dictionary_encode(), True
    if not is_coded:
        return _Part(name, _spelled(values), np.arange(len(values), dtype=np.int32))
    texts = pa.concat_arrays([_spelled(values.dictionary), _NOTHING])
    # There are few different values: the name is written to each of them, not to each row.
    named = _joined([_Part(name, texts, np.arange(len(texts), dtype=np.int32))], "", len(texts))
    indices = values.indices.fill_null(len(texts) - 1) if values.indices.null_count else values.indices
    return _Part("", named, indices.to_numpy().astype(np.int32, copy=False))


def _joined(parts: Sequence[_Part], after: str, rows: int) -> pa.Array:
    """Concatenate the parts in each row."""
    bases = accumulate((len(part.texts) for part in parts), initial=0)
    codes = np.concatenate([part.codes + np.int32(base) for part, base in zip(parts, bases, strict=False)])
    places, data = text_buffers(pa.concat_arrays([part.texts for part in parts]))
    between, fixed = text_buffers(pa.array([*(part.before for part in parts), after]))
    size = int(np.diff(places).take(codes).sum()) + rows * (len(fixed) + _NULL * len(parts))
    out_places, out = room(rows + 1, np.int32), room(size, np.uint8)
    return strings(out_places, out, kernel.join(codes, places, data, between, fixed, out_places, out))


def _repeats(values: pa.Array) -> bool:
    """Whether it pays to encode only distinct values."""
    if pa.types.is_boolean(values.type):
        return True
    sample = values.slice(0, SAMPLE)
    return pa.types.is_floating(values.type) and 2 * len(sample.unique()) < len(sample)


def _spelled(values: pa.Array) -> pa.Array:
    """Encode each value as JSON; null as an empty text."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        return _floats(_as(values, pa.float64()).cast(pa.string()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(_as(values, pa.string()))
    return pa.array([_json_text(value) for value in values.to_pylist()], pa.string())


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)


def _floats(digits: pa.Array) -> pa.Array:
    """Rewrite Arrow's shortest digits of floats in Python's notation."""
    places, data = text_buffers(digits)
    out_places, out = room(len(digits) + 1, np.int32), room(kernel.LONGEST_FLOAT * len(digits), np.uint8)
    return strings(out_places, out, kernel.spell_floats(places, data, out_places, out))


def _quoted(texts: pa.Array) -> pa.Array:
    places, data = text_buffers(texts)
    used = data[places[0] : places[-1]]
    escaped = int(np.count_nonzero((used < 32) | (used == 34) | (used == 92)))
    out_places = room(len(texts) + 1, np.int32)
    out = room(len(used) + 2 * len(texts) + (_LONGEST_ESCAPE - 1) * escaped, np.uint8)
    return strings(out_places, out, kernel.quote(places, data, validity_of(texts), texts.offset, out_places, out))
