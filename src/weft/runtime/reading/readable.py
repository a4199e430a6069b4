"""Checks of events: they need a type, and attributes of the declared kinds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.runtime.data.events import STREAM, Column
from weft.runtime.reading.chunks import Chunk
from weft.runtime.reading.halves import NOT_UNICODE, halved, has_half
from weft.runtime.reading.times import valid_mask
from weft.schema import Catalog, EventType, Kind

Mask = npt.NDArray[np.bool_]


def check_texts(chunk: Chunk, needed: Collection[str] | None, problems: dict[int, str]) -> None:
    """Report the rows with texts that are not Unicode, in any column, so that rejections do not depend on the query.

    Needed columns are built for this (None: all), which shows whether they must be checked.
    """
    if chunk.values is None:  # the reader has checked them
        return
    if chunk.sparse:  # checking each column would take rows times names
        rows = [row for row in range(chunk.length) if row not in chunk.problems and has_half(chunk.row(row))]
        problems.update(dict.fromkeys(rows, NOT_UNICODE))
        return
    for name in chunk.names:
        is_made = needed is None or name in needed
        if not is_made or chunk.column(name).others is not None:
            problems.update(dict.fromkeys(halved(chunk.values(name)), NOT_UNICODE))


def check_types(chunk: Chunk, name: str, problems: dict[int, str]) -> None:
    """Report the rows whose type is not a text."""
    column = chunk.column(name)
    if column.texts is not None and column.texts.null_count == 0:
        return
    typed = np.zeros(chunk.length, bool) if column.texts is None else valid_mask(column.texts)
    for row in np.flatnonzero(~typed):
        value = column.value(int(row))
        reason = f"no type: no value in {name!r}" if value is None else f"{name!r} is not a text: {value!r}"
        problems.setdefault(int(row), reason)


def check_kinds(chunk: Chunk, type_name: str, catalog: Catalog, problems: dict[int, str]) -> None:
    """Report the rows that fit no declaration of their type (in their stream, if that is declared)."""
    types = chunk.column(type_name).texts
    if types is None:
        return
    wrong = _WrongKinds(chunk)
    for name in dict.fromkeys(t.name for t in catalog.all_types()):
        declared = [t for t in catalog.all_types() if t.name == name]
        masks = [mask for t in declared for a, k in t.attributes if (mask := wrong.rows(a, k)) is not None]
        if not masks:
            continue
        suspects = pc.equal(types, name).fill_null(False).to_numpy(zero_copy_only=False) & np.logical_or.reduce(masks)
        for row in map(int, np.flatnonzero(suspects)):
            meant = _declarations(catalog, name, chunk.column(STREAM), row)
            reasons = [wrong.reason(declaration, row) for declaration in meant]
            if reasons and reasons[0] is not None and None not in reasons:
                problems.setdefault(row, reasons[0])


def _declarations(catalog: Catalog, name: str, streams: Column, row: int) -> Sequence[EventType]:
    stream = streams.texts[row].as_py() if streams.texts is not None else None
    declared = None if stream is None else catalog.stream_named(stream)
    candidates = catalog.all_types() if declared is None else declared.types
    return [t for t in candidates if t.name == name]


def check_keys(chunk: Chunk, names: Sequence[str], problems: dict[int, str]) -> None:
    """Report the rows without a value in one of the columns from which ids are computed."""
    for name in names:
        column = chunk.column(name)
        present = [valid_mask(array) for array in (column.numbers, column.texts, column.booleans) if array is not None]
        missing = ~np.logical_or.reduce([np.zeros(chunk.length, bool), *present])
        for row in np.flatnonzero(missing).tolist():
            problems.setdefault(row, f"no key: no number, text or Boolean in {name!r}")


class _WrongKinds:
    """Rows of a chunk whose attributes are not of a declared kind, computed once for each pair."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._rows: dict[tuple[str, Kind], Mask | None] = {}

    def rows(self, attribute: str, kind: Kind) -> Mask | None:
        """Return a mask of the rows whose attribute is of another kind, or None if there are none."""
        key = (attribute, kind)
        if key not in self._rows:
            self._rows[key] = _wrong_rows(self._chunk.column(attribute), kind)
        return self._rows[key]

    def reason(self, declaration: EventType, row: int) -> str | None:
        """Return why a row does not fit a declaration, or None if it fits."""
        for attribute, kind in declaration.attributes:
            rows = self.rows(attribute, kind)
            if rows is not None and rows[row]:
                value = self._chunk.column(attribute).value(row)
                found = "a value of no kind" if value is None else repr(value)
                return f"{attribute!r} of {declaration.name} is declared {kind.value}, not {found}"
        return None


def _wrong_rows(column: Column, kind: Kind) -> Mask | None:
    by_family = {"number": column.numbers, "text": column.texts, "boolean": column.booleans, "none": column.others}
    wrong = [valid_mask(a) for family, a in by_family.items() if family != kind.family and _has_values(a)]
    numbers = column.numbers
    if kind is Kind.INT and numbers is not None and pa.types.is_float64(numbers.type):
        values = numbers.fill_null(0.0).to_numpy(zero_copy_only=False)
        wrong.append((np.floor(values) != values) | np.isinf(values))
    wrong = [mask for mask in wrong if mask.any()]
    return np.logical_or.reduce(wrong) if wrong else None


def _has_values(array: pa.Array | None) -> bool:
    return array is not None and array.null_count < len(array)
