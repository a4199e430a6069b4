"""Aggregates over spans of the matched rows, with Spark's result types."""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.row_patterns import RowAggregate
from weft.errors import InputError
from weft.kernels.row_patterns.folds import ADD_UP, GREATEST, LEAST, first_occurrences, running
from weft.kernels.row_patterns.tables import Int64s, UInt8s
from weft.runtime.operators.row_patterns.ordering import EXACT, has_nan, largest_of

LISTS = ("array_agg", "collect_list")
_COUNTS = ("count_if", "approx_count_distinct")  # zero over no rows
_KINDS = {"sum": ADD_UP, "avg": ADD_UP, "mean": ADD_UP, "min": LEAST, "max": GREATEST}


@dataclass
class Spans:
    """The rows from `low` up to `high` that each value aggregates; `edges` are where the rows of each match begin."""

    low: Int64s
    high: Int64s
    edges: Int64s


def aggregated(node: RowAggregate, arguments: list[pa.Array], spans: Spans) -> pa.Array:
    """Return the values of an aggregate."""
    name = node.function
    if name == "count" and not arguments:
        return pa.array(spans.high - spans.low)
    if node.distinct:
        arguments, spans = _without_repeats(arguments, spans)
    if name == "count":
        return pa.array(_before(_valid(arguments), spans))
    if name in LISTS:
        return _lists(arguments[0], spans)
    if name in _KINDS and len(arguments) == 1:
        return _folded(name, arguments[0], spans)
    return _one_by_one(name, arguments, spans)


def _valid(arguments: list[pa.Array]) -> UInt8s:
    found = np.ones(len(arguments[0]), np.uint8)
    for argument in arguments:
        if argument.null_count:
            found &= np.asarray(argument.is_valid()).astype(np.uint8)
    return found


def _before(valid: UInt8s, spans: Spans) -> Int64s:
    """Return the number of valid values in each span."""
    counts = np.zeros(len(valid) + 1, np.int64)
    np.cumsum(valid, out=counts[1:])
    return counts[spans.high] - counts[spans.low]


def _without_repeats(arguments: list[pa.Array], spans: Spans) -> tuple[list[pa.Array], Spans]:
    """Keep only the first occurrence of each value in its match."""
    codes = np.zeros(len(arguments[0]), np.int64)
    for argument in arguments:
        if pa.types.is_floating(argument.type):
            argument = pc.add(argument, pa.scalar(0.0, argument.type))  # -0.0 is 0.0
        encoded = argument.dictionary_encode(null_encoding="encode")
        joint = pa.array(codes * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy(zero_copy_only=False))
        codes = joint.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.zeros(len(codes), np.uint8)
    first_occurrences(codes, spans.edges, np.zeros(int(codes.max(initial=0)) + 1, np.int64), first)
    kept = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(first, out=kept[1:])
    mask = pa.array(first.astype(np.bool_))
    return [argument.filter(mask) for argument in arguments], Spans(
        *(kept[x] for x in (spans.low, spans.high, spans.edges))
    )


def _lists(values: pa.Array, spans: Spans) -> pa.Array:
    sizes = spans.high - spans.low
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    places = np.arange(offsets[-1]) + np.repeat(spans.low - offsets[:-1], sizes)
    mask = pa.array(sizes == 0)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pa.array(places)), mask=mask)


def _folded(name: str, values: pa.Array, spans: Spans) -> pa.Array:
    """Return sums, averages and extremes of values with running aggregates."""
    kind = values.type
    if pa.types.is_decimal(kind) and name not in ("min", "max"):
        return _one_by_one(name, [values], spans)
    floating = pa.types.is_floating(kind)
    if name in ("min", "max") and (not _is_number(kind) or (floating and has_nan(values))):
        return _extreme_of_any(name, values, spans)
    if not _is_number(kind):
        if pa.types.is_null(kind):
            return pa.nulls(len(spans.low), pa.float64())
        raise InputError(f"{name.upper()} takes numbers, not {kind}")
    if (
        name not in ("min", "max")
        and not floating
        and largest_of(values) * len(values) >= (2**63 if name == "sum" else EXACT)
    ):
        return _exact_sums(name, values, spans)
    numbers = values.cast(pa.float64() if floating else pa.int64()).fill_null(0)
    result = _last_of(_KINDS[name], numbers.to_numpy(zero_copy_only=False), _valid([values]), spans)
    if name in ("avg", "mean"):
        counts = _before(_valid([values]), spans)
        return pc.divide(result.cast(pa.float64(), safe=False), pa.array(np.maximum(counts, 1).astype(np.float64)))
    if name == "sum":
        return result
    return result.cast(kind)


def _exact_sums(name: str, values: pa.Array, spans: Spans) -> pa.Array:
    """Return sums or averages of integers whose sums may not fit into 64 bits."""
    found: list[Any] = []
    numbers = values.to_pylist()
    for low, high in zip(spans.low.tolist(), spans.high.tolist(), strict=True):
        here = [number for number in numbers[low:high] if number is not None]
        found.append(None if not here else sum(here) if name == "sum" else sum(here) / len(here))
    if name == "sum" and any(total is not None and not -(2**63) <= total < 2**63 for total in found):
        raise InputError("SUM: the result is beyond 64 bits: cast the values to DOUBLE or DECIMAL")
    return pa.array(found, pa.int64() if name == "sum" else pa.float64())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _last_of(kind: int, numbers: Any, valid: UInt8s, spans: Spans) -> pa.Array:
    """Return the running aggregate at the end of each span, or null over no values."""
    out = np.zeros_like(numbers)
    running(kind, np.ascontiguousarray(numbers), valid, spans.edges, out)
    nothing = _before(valid, spans) == 0
    found = out[np.where(nothing, 0, spans.high - 1)] if len(out) else np.zeros(len(spans.low), numbers.dtype)
    return pa.array(found, mask=nothing)


def _extreme_of_any(name: str, values: pa.Array, spans: Spans) -> pa.Array:
    """Return the least or greatest of texts, times or decimals by their ranks."""
    encoded = values.dictionary_encode()
    by_value = pc.sort_indices(encoded.dictionary)
    ranks = np.zeros(max(1, len(by_value)), np.int64)
    ranks[by_value.to_numpy()] = np.arange(len(by_value))
    numbers = ranks[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    found = _last_of(_KINDS[name], numbers, _valid([values]), spans)
    return encoded.dictionary.take(by_value).take(found)


# ---------------------------------------------------------------- one by one


def _one_by_one(name: str, arguments: list[pa.Array], spans: Spans) -> pa.Array:
    if name not in _FOLDS:
        raise InputError(f"weft has no aggregate {name}: known are {', '.join(sorted(known_aggregates()))}")
    fold, kind_of = _FOLDS[name]
    kind = kind_of(*(argument.type for argument in arguments))
    lists = [argument.to_pylist() for argument in arguments]
    found = []
    for low, high in zip(spans.low.tolist(), spans.high.tolist(), strict=True):
        rows = list(zip(*(values[low:high] for values in lists), strict=True))
        found.append(fold(rows) if rows or name in _COUNTS else None)
    return pa.array(found, kind)


def known_aggregates() -> set[str]:
    """The names of aggregates that engines evaluate."""
    return {"count", *LISTS, *_KINDS, *_FOLDS}


Rows = list[tuple[Any, ...]]


def _present(rows: Rows) -> list[Any]:
    return [row[0] for row in rows if row[0] is not None]


def _of_present(fold: Callable[[list[Any]], Any]) -> Callable[[Rows], Any]:
    def folded(rows: Rows) -> Any:
        here = _present(rows)
        return fold(here) if here else None

    return folded


def _spread(power: float, less: int) -> Callable[[Rows], Any]:
    def spread(here: list[Any]) -> float | None:
        if len(here) <= less:
            return None
        mean = math.fsum(here) / len(here)
        return float((math.fsum((x - mean) ** 2 for x in here) / (len(here) - less)) ** power)

    return _of_present(spread)


def _by(pick: Callable[..., Any]) -> Callable[[Rows], Any]:
    def by(rows: Rows) -> Any:
        here = [row for row in rows if row[1] is not None]
        if not here:
            return None
        count = here[0][2] if len(here[0]) > 2 else None
        if count is None:
            return pick(here, key=lambda row: row[1])[0]
        return [row[0] for row in sorted(here, key=lambda row: row[1], reverse=pick is max)][:count]

    return by


def _several(pick: Callable[..., Any]) -> Callable[[Rows], Any]:
    def several(rows: Rows) -> Any:
        return sorted(_present(rows), reverse=pick is max)[: rows[0][1]]

    return several


def _map(rows: Rows) -> Any:
    found: dict[Any, Any] = {}
    for key, value in rows:
        if key is not None:
            found.setdefault(key, value)
    return list(found.items())


def _joined_maps(rows: Rows) -> Any:
    found: dict[Any, Any] = {}
    for row in rows:
        for key, value in row[0] or []:
            found.setdefault(key, value)
    return list(found.items())


def _text_list(rows: Rows) -> str | None:
    here = [row for row in rows if row[0] is not None]
    separator = here[0][1] if here and len(here[0]) > 1 else ""
    return separator.join(str(row[0]) for row in here) if here else None


def _decimal_average(kind: pa.DataType) -> pa.DataType:
    return (
        pa.decimal128(min(38, kind.precision + 4), min(kind.scale + 4, 37))
        if pa.types.is_decimal(kind)
        else pa.float64()
    )


def _decimal_sum(kind: pa.DataType) -> pa.DataType:
    return pa.decimal128(min(38, kind.precision + 10), kind.scale)


def _same(kind: pa.DataType, *_: pa.DataType) -> pa.DataType:
    return kind


def _by_type(kind: pa.DataType, _: pa.DataType, count: pa.DataType | None = None) -> pa.DataType:
    return kind if count is None else pa.list_(kind)


def _always(kind: pa.DataType) -> Callable[..., pa.DataType]:
    return lambda *_: kind


def _scaled_average(rows: Rows) -> Any:
    here = _present(rows)
    if not here:
        return None
    scale = min(-int(here[0].as_tuple().exponent) + 4, 37)
    return (sum(here) / len(here)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


_FOLDS: dict[str, tuple[Callable[[Rows], Any], Callable[..., pa.DataType]]] = {
    "sum": (_of_present(sum), _decimal_sum),
    "avg": (_scaled_average, _decimal_average),
    "mean": (_scaled_average, _decimal_average),
    "min": (_several(min), lambda kind, _: pa.list_(kind)),
    "max": (_several(max), lambda kind, _: pa.list_(kind)),
    "any_value": (_of_present(lambda here: here[0]), _same),
    "arbitrary": (_of_present(lambda here: here[0]), _same),
    "max_by": (_by(max), _by_type),
    "min_by": (_by(min), _by_type),
    "map_agg": (_map, lambda key, value: pa.map_(key, value)),
    "map_union": (_joined_maps, _same),
    "collect_set": (lambda rows: list(dict.fromkeys(_present(rows))), lambda kind: pa.list_(kind)),
    "count_if": (lambda rows: sum(row[0] is True for row in rows), _always(pa.int64())),
    "bool_and": (_of_present(all), _always(pa.bool_())),
    "every": (_of_present(all), _always(pa.bool_())),
    "bool_or": (_of_present(any), _always(pa.bool_())),
    "some": (_of_present(any), _always(pa.bool_())),
    "stddev": (_spread(0.5, 1), _always(pa.float64())),
    "stddev_samp": (_spread(0.5, 1), _always(pa.float64())),
    "stddev_pop": (_spread(0.5, 0), _always(pa.float64())),
    "variance": (_spread(1.0, 1), _always(pa.float64())),
    "var_samp": (_spread(1.0, 1), _always(pa.float64())),
    "var_pop": (_spread(1.0, 0), _always(pa.float64())),
    "approx_count_distinct": (lambda rows: len(set(_present(rows))), _always(pa.int64())),
    "median": (_of_present(lambda here: float(statistics.median(here))), _always(pa.float64())),
    "mode": (_of_present(statistics.mode), _same),
    "product": (_of_present(lambda here: float(math.prod(here))), _always(pa.float64())),
    "bit_and": (_of_present(lambda here: reduce(operator.and_, here)), _same),
    "bit_or": (_of_present(lambda here: reduce(operator.or_, here)), _same),
    "bit_xor": (_of_present(lambda here: reduce(operator.xor, here)), _same),
    "string_agg": (_text_list, _always(pa.string())),
    "listagg": (_text_list, _always(pa.string())),
}
