"""Named sources of events: a source supplies attributes that its events lack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.query import Program
from weft.runtime.data.events import STREAM, Column
from weft.runtime.reading.chunks import Chunk
from weft.runtime.reading.kinds import plain_array
from weft.runtime.reading.order import EventSource, Reading
from weft.runtime.reading.times import valid_mask


@dataclass(frozen=True)
class NamedSource:
    """Events from one place: all of them as chunks, or items as they arrive.

    `defaults` are texts for columns in which an event has no value: its stream, perhaps its type.
    """

    name: str
    chunks: Callable[[], Iterable[Chunk]] | None = None
    items: Iterator[Any] | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)

    def whole(self) -> Iterator[Chunk]:
        """Yield all chunks with the defaults."""
        return (with_defaults(chunk, self.defaults) for chunk in (self.chunks() if self.chunks else ()))


def defaults_of(name: str, count: int, program: Program, type: str) -> dict[str, str]:
    """Return the default attributes of a source's events, derived from its name and the number of sources.

    It is their stream if there are several sources or the program declares such a stream, and their type (whose
    column is called `type`) if the program declares such a type.
    """
    streams = {stream.name for stream in program.catalog.streams}
    declared = {source.type for source in program.inputs}
    return ({STREAM: name} if count > 1 or name in streams else {}) | ({type: name} if name in declared else {})


def whole_source(sources: Sequence[NamedSource], reading: Reading) -> EventSource:
    """Join finite sources to one sorted input; at equal times the source named first comes first."""

    def chunks() -> Iterator[Chunk]:
        for source in sources:
            yield from source.whole()

    return EventSource(chunks, reading)


def with_defaults(chunk: Chunk, defaults: Mapping[str, str]) -> Chunk:
    """Fill these columns with a text where a row has no value."""
    if not defaults:
        return chunk
    return Chunk(
        chunk.length,
        dict.fromkeys([*chunk.names, *defaults]),
        partial(_filled, chunk, defaults),
        partial(_row, chunk, defaults),
        problems=chunk.problems,
        place=chunk.place,
        form="columns" if chunk.tabular else "rows",
        original=partial(_original, chunk, defaults),
    )


def _original(chunk: Chunk, defaults: Mapping[str, str], name: str) -> pa.Array:
    return plain_array(_filled(chunk, defaults, name), chunk.length) if name in defaults else chunk.array(name)


def _filled(chunk: Chunk, defaults: Mapping[str, str], name: str) -> Column:
    column = chunk.column(name)
    if name not in defaults:
        return column
    text = defaults[name]
    present = [
        values for values in (column.texts, column.numbers, column.booleans, column.others) if values is not None
    ]
    if all(values.null_count == len(values) for values in present):
        return Column(texts=pa.array([text]).dictionary_encode().take(pa.array(np.zeros(chunk.length, np.int32))))
    missing = ~np.logical_or.reduce([valid_mask(values) for values in present])
    if not missing.any():
        return column
    texts = pa.nulls(chunk.length, pa.string()) if column.texts is None else column.texts.cast(pa.string())
    return replace(column, texts=pc.if_else(pa.array(missing), text, texts))


def _row(chunk: Chunk, defaults: Mapping[str, str], row: int) -> Mapping[str, object] | None:
    known = chunk.row(row)
    return None if known is None else {**defaults, **known}
