"""Pieces of the input as they arrive: dicts, Arrow tables and streams, pandas and Polars frames."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import DataWarning, InputError, UsageError, callers_level
from weft.runtime.data.events import Column
from weft.runtime.reading.halves import NOT_UNICODE, has_half
from weft.runtime.reading.kinds import (
    column_of,
    column_of_values,
    columns_of_dicts,
    field_of,
    plain_array,
    values_of_dicts,
)

MOST_SHOWN = 1024  # attributes of sparse events in a table of matches
SPARSE = 8  # so many times as many cells as values: rows of few attributes with many names


Form = Literal["columns", "rows", "sparse rows"]


def form_of(names: int, events: Sequence[Sized]) -> Form:
    """Return the form of rows with these different names: in sparse rows most are missing."""
    return "sparse rows" if names * len(events) > SPARSE * sum(map(len, events)) else "rows"


class Chunk:
    """Some rows of the input. Columns are built on first access."""

    def __init__(
        self,
        length: int,
        names: Collection[str],
        load: Callable[[str], Column],
        row: Callable[[int], Mapping[str, object] | None],
        *,
        problems: Mapping[int, str] | None = None,
        place: Callable[[int], tuple[str, int]] | None = None,
        form: Form = "columns",
        values: Callable[[str], Sequence[object]] | None = None,
        original: Callable[[str], pa.Array] | None = None,
    ) -> None:
        self.length = length
        self.names = names
        self.row = row
        self.problems = problems or {}  # rows that are no events, and why
        self.place = place  # file and line of a row, if it is from a file
        self.tabular = form == "columns"  # columns are the input's; with dicts each row has its own attributes
        self.sparse = form == "sparse rows"  # most rows have few attributes, so that rows are cheaper than columns
        self.values = values  # those of a column if they are Python's, whose texts may be no Unicode
        self._load = load
        self._original = original  # a column with the type of the input, if it has types
        self._columns: dict[str, Column] = {}

    def has(self, name: str) -> bool:
        """Whether there is such a column, or a struct that may have such a field."""
        return name in self.names or ("." in name and name.partition(".")[0] in self.names)

    def column(self, name: str) -> Column:
        """Return the column of that name (`device.os`: the field of a struct), or an empty one."""
        if name not in self._columns:
            self._columns[name] = self._load(name) if self.has(name) else Column()
        return self._columns[name]

    def slice(self, first: int, count: int) -> Chunk:
        """Return some of the rows as a chunk."""
        place, values, original = self.place, self.values, self._original
        form: Form = "columns" if self.tabular else "sparse rows" if self.sparse else "rows"
        return Chunk(
            count,
            self.names,
            lambda name: _sliced(self.column(name), first, count),
            lambda row: self.row(first + row),
            problems={row - first: why for row, why in self.problems.items() if first <= row < first + count},
            place=None if place is None else lambda row: place(first + row),
            form=form,
            values=None if values is None else lambda name: values(name)[first : first + count],
            original=None if original is None else lambda name: original(name).slice(first, count),
        )

    def array(self, name: str) -> pa.Array:
        """Return the column of that name in the type of the input."""
        if self._original is not None:
            return self._original(name)
        return plain_array(self.column(name), self.length)

    def rows(self, wanted: Collection[str] | None) -> pa.RecordBatch:
        """Return the rows as the input has them, with the wanted columns, or all if `wanted` is None."""
        names = [name for name in self.names if wanted is None or name in wanted]
        if self.sparse and len(names) > MOST_SHOWN:
            names = self._frequent(names)
        return pa.RecordBatch.from_arrays([self.array(name) for name in names], names=names)

    def _frequent(self, names: Sequence[str]) -> list[str]:
        """Return the names that most rows have, in their order: a table has a cell for each row and name."""
        counts = Counter(name for row in range(self.length) for name in self.row(row) or ())
        kept = set(sorted(names, key=lambda name: -counts[name])[:MOST_SHOWN])
        text = (
            f"events have {len(names)} attributes, most of them in few events: "
            f"tables of matches show the {MOST_SHOWN} that most events have"
        )
        warnings.warn(text, DataWarning, stacklevel=callers_level())
        return [name for name in names if name in kept]


def makes_chunks(kind: type) -> bool:
    """Whether this is a class of texts that can be converted to chunks, as `JsonText` is."""
    return callable(getattr(kind, "chunks", None))


def chunks_of(data: Any, batch_size: int, time_unit: str) -> Iterator[Chunk]:
    """Yield the input in chunks of about `batch_size` rows, in its own order."""
    if makes_chunks(type(data)):
        yield from data.chunks(time_unit)
        return
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        yield from _arrow_chunks([data], batch_size, time_unit)
    elif _is_from(data, "pandas") and hasattr(data, "columns"):
        yield from _pandas_chunks(data, batch_size, time_unit)
    elif _is_from(data, "polars") and hasattr(data, "collect"):
        yield from chunks_of(data.collect(), batch_size, time_unit)
    elif hasattr(data, "__arrow_c_stream__"):
        yield from _arrow_chunks(pa.RecordBatchReader.from_stream(data), batch_size, time_unit)
    elif hasattr(data, "__arrow_c_array__"):
        yield from _arrow_chunks([pa.record_batch(data)], batch_size, time_unit)
    elif isinstance(data, (Mapping, str, bytes)) or not isinstance(data, Iterable):
        raise UsageError(
            f"events cannot be read from {_described(data)}: give an iterable of dicts, an Arrow table, "
            "record batches, or a pandas or Polars frame"
        )
    else:
        yield from _item_chunks(data, batch_size, time_unit)


def _is_from(data: object, package: str) -> bool:
    return type(data).__module__.partition(".")[0] == package


def _described(data: object) -> str:
    return f"one {type(data).__name__}" if isinstance(data, (Mapping, str, bytes)) else f"a {type(data).__name__}"


def _arrow_chunks(data: Iterable[pa.Table | pa.RecordBatch], batch_size: int, time_unit: str) -> Iterator[Chunk]:
    for piece in data:
        table = pa.Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else piece
        for batch in table.to_batches(max_chunksize=batch_size):
            yield arrow_chunk(batch, time_unit)


def arrow_chunk(batch: pa.RecordBatch, time_unit: str) -> Chunk:
    """Convert a record batch to a chunk."""
    names = batch.schema.names
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"two columns of the input are called {twice!r}: rename one")
    places = {name: i for i, name in enumerate(names)}
    return Chunk(
        len(batch),
        places,
        lambda name: column_at(name, places, lambda top: batch.column(places[top]), time_unit),
        lambda row: dict(batch.slice(row, 1).to_pylist()[0]),
        original=lambda name: batch.column(places[name]),
    )


def column_at(name: str, names: Collection[str], top: Callable[[str], pa.Array], time_unit: str) -> Column:
    """Return a column, or a field of a struct column."""
    if name in names:
        return column_of(top(name), time_unit)
    first, *rest = name.split(".")
    array = top(first)
    for field in rest:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(field) < 0:
            return Column()
        array = pc.struct_field(array, [array.type.get_field_index(field)])
    return column_of(array, time_unit)


def _pandas_chunks(frame: Any, batch_size: int, time_unit: str) -> Iterator[Chunk]:
    made: dict[str, Column] = {}

    def column(name: str) -> Column:
        if name not in made:
            if name in names:
                made[name] = _pandas_column(frame[name], time_unit)
            else:
                made[name] = column_of_values(
                    [field_of(row, name) for row in frame[[name.partition(".")[0]]].to_dict("records")], time_unit
                )
        return made[name]

    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise InputError("two columns of the frame have one name: rename one")
    for first in range(0, len(frame), batch_size):
        length = min(batch_size, len(frame) - first)
        yield Chunk(
            length,
            names,
            lambda name, first=first, length=length: _sliced(column(name), first, length),  # type: ignore[misc]
            lambda row, first=first: dict(frame.iloc[first + row].to_dict()),  # type: ignore[misc]
            values=partial(_pandas_values, frame, first, length),
            original=partial(_pandas_array, frame, first, length),
        )


def _pandas_values(frame: Any, first: int, length: int, name: str) -> Sequence[object]:
    """Return values of a column that may contain Python texts; numbers and times cannot."""
    return list(frame[name].iloc[first : first + length]) if frame[name].dtype.kind == "O" else ()


def _sliced(column: Column, first: int, length: int) -> Column:
    others = None if column.others is None else column.others.slice(first, length)
    return replace(column.map(lambda array: array.slice(first, length)), others=others)


def _pandas_array(frame: Any, first: int, length: int, name: str) -> pa.Array:
    """Convert values of a column, to texts if Arrow has no type for them."""
    values = frame[name].iloc[first : first + length]
    try:
        array = pa.Array.from_pandas(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        texts = (None if value is None else str(value).encode("utf-8", "replace").decode() for value in values)
        return pa.array(texts, pa.string())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _pandas_column(series: Any, time_unit: str) -> Column:
    try:
        array = pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return column_of_values(list(series), time_unit)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    return column_of(array, time_unit)


def _item_chunks(items: Iterable[object], batch_size: int, time_unit: str) -> Iterator[Chunk]:
    """Yield chunks of dicts, record batches and tables in order."""
    remaining = iter(items)
    while taken := list(islice(remaining, batch_size)):
        kinds = set(map(type, taken))
        if any(map(makes_chunks, kinds)):
            for item in taken:
                alone = item if makes_chunks(type(item)) or hasattr(item, "columns") else [item]
                yield from chunks_of(alone, batch_size, time_unit)
            continue
        if kinds.isdisjoint((pa.RecordBatch, pa.Table)):
            yield dict_chunk(taken, time_unit)
            del taken  # before the next are read
            continue
        for is_arrow, run in groupby(taken, lambda item: isinstance(item, (pa.RecordBatch, pa.Table))):
            if is_arrow:
                yield from _arrow_chunks(run, batch_size, time_unit)
            else:
                yield dict_chunk(list(run), time_unit)


def dict_chunk(items: Sequence[object], time_unit: str) -> Chunk:
    """Convert dicts to a chunk. An item that is not a dict becomes a row with a problem."""
    problems: dict[int, str] = {}
    events: Sequence[Mapping[str, object]] = items  # type: ignore[assignment]
    if set(map(type, items)) != {dict}:
        problems = {i: f"not an event: {item!r}" for i, item in enumerate(items) if not isinstance(item, Mapping)}
        events = [item if isinstance(item, Mapping) else {} for item in items]
    names = dict.fromkeys(chain.from_iterable(events))
    halved = {name for name in names if has_half(name)}
    if halved:
        problems |= {i: NOT_UNICODE for i, event in enumerate(events) if not halved.isdisjoint(event)}
        names = {name: None for name in names if name not in halved}
    return Chunk(
        len(events),
        names,
        lambda name: columns_of_dicts(events, [name], time_unit)[name],
        lambda row: None if row in problems else events[row],
        problems=problems,
        form=form_of(len(names), events),
        values=lambda name: values_of_dicts(events, name),
    )
