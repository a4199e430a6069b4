"""Computed fields of matches: aggregates over their events and expressions on them, for all matches at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.numbers import worth
from weft.algebra.predicates import Aggregate, Attribute, Expression
from weft.runtime.classify import vectors
from weft.runtime.classify.functions import Numbers, Vector, to_column
from weft.runtime.data.events import Column, EventBatch, Int64s
from weft.runtime.data.exact import shown
from weft.tree import Node

# Reads an attribute: its values for all events bound to its variable, and where those of each match begin.
Read = Callable[[Attribute], tuple[Column, Int64s]]


def computed_field(value: Expression, matches: int, read: Read) -> pa.Array:
    """Evaluate an expression once for each match."""
    columns: dict[str, Column] = {}

    def leaf(node: Node) -> Node:
        """Replace aggregates, and attributes outside of them, by attributes of the match."""
        if not isinstance(node, Aggregate | Attribute):
            return node.map_children(leaf)
        function, attribute = ("FIRST", node) if isinstance(node, Attribute) else (node.function, node.attribute)
        columns[repr(node)] = _aggregate(function, *read(attribute), whole=attribute.name == "*")
        return Attribute(repr(node))

    plain = leaf(value)
    assert isinstance(plain, Expression)
    places = np.arange(matches, dtype=np.int64)
    batch = EventBatch(pa.nulls(matches), places, places, places, columns=columns)
    if isinstance(plain, Attribute):  # the value of one event is shown with its original digits
        return shown(columns[plain.name], matches)
    return shown(vectors.shown_column(plain, batch), matches)


def _aggregate(function: str, column: Column, begins: Int64s, *, whole: bool) -> Column:
    if whole:
        return Column(numbers=pa.array(np.diff(begins)))
    kinds = [values for values in (column.numbers, column.texts, column.booleans) if values is not None]
    match function:
        case "COUNT":
            valid = np.logical_or.reduce([np.asarray(v.is_valid()) for v in kinds]) if kinds else np.zeros(begins[-1])
            return Column(numbers=pa.array(np.diff(np.concatenate(([0], np.cumsum(valid)))[begins]).astype(np.int64)))
        case "FIRST" | "LAST":
            some = begins[1:] > begins[:-1]
            at = pa.array(begins[:-1] if function == "FIRST" else begins[1:] - 1, mask=~some)
            return column.map(lambda values: values.take(at))
        case "MIN" | "MAX":
            at = pa.array(_extremes(function, column, begins), pa.int64())
            return replace(column, booleans=None).map(lambda values: values.take(at))
    return Column() if column.numbers is None else _total(function, column, begins)


def _extremes(function: str, column: Column, begins: Int64s) -> list[int | None]:
    """Return the row of the least or greatest value of each match; numbers precede texts."""
    choose = min if function == "MIN" else max
    kinds: list[tuple[list[int], Callable[[int], Any]]] = []
    if column.numbers is not None:
        numbers = vectors.attribute(column).numbers
        assert numbers is not None
        plain = numbers.values.dtype != object
        keys = numbers.values.tolist() if plain else [worth(value) for value in numbers.values]
        kinds.append((np.flatnonzero(numbers.valid).tolist(), keys.__getitem__))
    if column.texts is not None:
        texts = column.texts.to_pylist()
        kinds.append((np.flatnonzero(np.asarray(column.texts.is_valid())).tolist(), texts.__getitem__))
    found: list[int | None] = [None] * (len(begins) - 1)
    for rows, key in reversed(kinds):  # numbers last: they override texts
        bounds = np.searchsorted(rows, begins).tolist()
        for match, (low, high) in enumerate(pairwise(bounds)):
            if low < high:
                found[match] = choose(rows[low:high], key=key)
    return found


def _total(function: str, column: Column, begins: Int64s) -> Column:
    """Return the sum, added in the order of events, or the average."""
    numbers = vectors.attribute_by_kind(column).numbers
    assert numbers is not None
    rows = np.flatnonzero(numbers.valid)
    offsets = np.searchsorted(rows, begins)
    values, counts = numbers.values[rows], np.diff(offsets)
    total, valid = np.zeros(len(counts), np.int64), counts > 0
    for place in range(int(counts.max(initial=0))):
        longer = np.flatnonzero(counts > place)
        added = _all_valid(values[offsets[:-1][longer] + place])
        sums = vectors.arithmetic("+", Vector(Numbers(total[longer], valid[longer])), added).numbers
        assert sums is not None
        if sums.values.dtype != total.dtype:
            total = total.astype(object if object in (sums.values.dtype, total.dtype) or place else sums.values.dtype)
        total[longer], valid[longer] = sums.values, sums.valid
    result = Vector(Numbers(total, valid))
    if function == "AVG":
        result = vectors.arithmetic("/", result, _all_valid(counts))
    return to_column(result, len(counts))


def _all_valid(values: npt.NDArray[np.generic]) -> Vector:
    return Vector(Numbers(values, np.ones(len(values), bool)))
