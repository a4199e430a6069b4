"""Columns as JSON objects: byte for byte what Python writes."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.runtime.data.json_texts import SAMPLE, json_object, json_objects

FLOATS = st.floats() | st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0])
TEXTS = st.text(max_size=20) | st.sampled_from(["\x00", "\x1f\x7f", '"\\/', "\b\f\n\r\t", "\u2028", "größe 😀"])
COLUMNS = st.one_of(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1).map(lambda found: pa.array(found, pa.int64())),
    st.lists(st.none() | FLOATS, min_size=1).map(lambda found: pa.array(found, pa.float64())),
    st.lists(st.none() | TEXTS, min_size=1).map(lambda found: pa.array(found, pa.string())),
    st.lists(st.none() | TEXTS, min_size=1).map(lambda found: pa.array(found, pa.large_string()).dictionary_encode()),
    st.lists(st.none() | st.booleans(), min_size=1).map(lambda found: pa.array(found, pa.bool_())),
    st.lists(st.none() | st.lists(st.integers(0, 9)), min_size=1).map(
        lambda found: pa.array(found, pa.list_(pa.int64()))
    ),
)


def written(columns: dict[str, pa.Array]) -> list[str]:
    rows = len(next(iter(columns.values())))
    found = json_objects(columns, rows)
    found.validate(full=True)
    texts: list[str] = found.to_pylist()
    return texts


def expected(columns: dict[str, pa.Array]) -> list[str]:
    values = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    return [json_object(dict(zip(columns, row, strict=True))) for row in values]


@settings(max_examples=75, deadline=None)
@given(st.lists(COLUMNS, min_size=1, max_size=3), st.integers(0, 3))
def test_objects_are_what_json_would_write(columns: list[pa.Array], begin: int) -> None:
    rows = min(map(len, columns))
    begin = min(begin, rows)
    chosen = {f'f"{number}': column.slice(begin, rows - begin) for number, column in enumerate(columns)}
    assert written(chosen) == expected(chosen)


@pytest.mark.parametrize("number", [0.0, -0.0, 1e-4, 9.999e-5, 1e10, 123456789012.5, 1e15, 1e16, 1e22, 5e-324, 20.0])
def test_numbers_are_written_as_python_writes_them(number: float) -> None:
    columns = {"x": pa.array([number, -number])}
    assert written(columns) == expected(columns)


def test_values_that_repeat_and_values_that_do_not() -> None:
    count = SAMPLE + 100
    columns = {
        "few": pa.array([number % 7 / 2 if number % 5 else None for number in range(count)]),
        "many": pa.array([number / 7 for number in range(count)]),
        "known": pa.DictionaryArray.from_arrays(
            pa.array([count - 1, None] * (count // 2)), pa.array(map(str, range(count)))
        ),
    }
    assert written(columns) == expected(columns)
    few = {name: column.slice(0, 3) for name, column in columns.items()}  # of the many texts, one is used
    assert written(few) == expected(few)


def test_rows_without_columns_are_empty_objects() -> None:
    assert json_objects({}, 2).to_pylist() == ["{}", "{}"]
