"""Aggregates of SQL over Python values: one tuple of arguments for each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

from weft.algebra.meaning.row_patterns.comparisons import order_key
from weft.errors import InputError

Given = Sequence[tuple[Any, ...]]
_KEEPS_NULLS = frozenset({"collect_list", "map_agg"})


def fold(function: str, rows: Given, distinct: bool) -> Any:
    """The value of an aggregate; over no values null, of `count` 0. Nulls are left out, but not of lists."""
    if function == "count" and all(not row for row in rows):
        return len(rows)
    found = _FOLDS.get(function)
    if found is None:
        hint = "run it on Spark, which has it if it is one of Spark's"
        raise InputError(f"there is no aggregate {function!r} among weft's own; {hint}")
    kept = [row for row in rows if function in _KEEPS_NULLS or all(value is not None for value in row[:1])]
    if distinct:
        kept = _distinct(kept)
    return found(kept)


def _distinct(rows: Given) -> list[tuple[Any, ...]]:
    seen: list[Any] = []
    kept: list[tuple[Any, ...]] = []
    for row in rows:
        key = [order_key(value) for value in row]
        if key not in seen:
            seen.append(key)
            kept.append(row)
    return kept


def _values(rows: Given) -> list[Any]:
    return [row[0] for row in rows]


def _sum(rows: Given) -> Any:
    values = _values(rows)
    if not values:
        return None
    total = values[0]
    with localcontext(prec=38):
        for value in values[1:]:
            if isinstance(total, float) != isinstance(value, float):
                total, value = float(total), float(value)
            total = total + value
    return total


def _whole_sum(rows: Given) -> Any:
    total = _sum(rows)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise InputError("SUM: the result is beyond 64 bits: cast the values to DOUBLE or DECIMAL")
    return total


def _average(rows: Given) -> Any:
    total = _sum(rows)
    if total is None:
        return None
    with localcontext(prec=38):
        return total / len(rows) if not isinstance(total, Decimal) else total / Decimal(len(rows))


def _extreme(greatest: bool) -> Callable[[Given], Any]:
    def found(rows: Given) -> Any:
        values = sorted(_values(rows), key=order_key, reverse=greatest)
        if rows and len(rows[0]) > 1:
            return values[: rows[0][1]]
        return values[0] if values else None

    return found


def _extreme_by(greatest: bool) -> Callable[[Given], Any]:
    """The first argument where the second is greatest or least; rows where that is null do not count."""

    def found(rows: Given) -> Any:
        known = [row for row in rows if row[1] is not None]
        ordered = sorted(known, key=lambda row: order_key(row[1]), reverse=greatest)
        if rows and len(rows[0]) > 2:
            return [row[0] for row in ordered[: rows[0][2]]]
        return ordered[0][0] if ordered else None

    return found


def _deviation(sample: bool, root: bool) -> Callable[[Given], Any]:
    def found(rows: Given) -> Any:
        values = [float(value) for value in _values(rows)]
        divisor = len(values) - sample
        if divisor <= 0:
            return None
        mean = math.fsum(values) / len(values)
        variance = math.fsum((value - mean) ** 2 for value in values) / divisor
        return math.sqrt(variance) if root else variance

    return found


def _percentile(rows: Given, share: float | None = None) -> Any:
    values = sorted(float(value) for value in _values(rows))
    if not values:
        return None
    place = (float(rows[0][1]) if share is None else share) * (len(values) - 1)
    low, high = math.floor(place), math.ceil(place)
    return values[low] + (values[high] - values[low]) * (place - low)


def _mode(rows: Given) -> Any:
    values = _values(rows)
    return max(values, key=values.count) if values else None


def _string_agg(rows: Given) -> Any:
    separator = rows[0][1] if rows and len(rows[0]) > 1 else ""
    return separator.join(map(str, _values(rows))) if rows else None


def _map_union(rows: Given) -> Any:
    union: dict[Any, Any] = {}
    for value in _values(rows):
        for key, item in value.items():
            union.setdefault(key, item)
    return union if rows else None


def _product(rows: Given) -> Any:
    return math.prod(float(value) for value in _values(rows)) if rows else None


_FOLDS: dict[str, Callable[[Given], Any]] = {
    "count": len,
    "sum": _whole_sum,
    "avg": _average,
    "min": _extreme(greatest=False),
    "max": _extreme(greatest=True),
    "min_by": _extreme_by(greatest=False),
    "max_by": _extreme_by(greatest=True),
    "collect_list": lambda rows: _values(rows) if rows else None,
    "collect_set": lambda rows: _values(_distinct(rows)) if rows else None,
    "any_value": lambda rows: rows[0][0] if rows else None,
    "bool_and": lambda rows: all(_values(rows)) if rows else None,
    "bool_or": lambda rows: any(_values(rows)) if rows else None,
    "count_if": lambda rows: sum(value is True for value in _values(rows)),
    "approx_count_distinct": lambda rows: len(_distinct([row[:1] for row in rows])),
    "stddev_samp": _deviation(sample=True, root=True),
    "stddev_pop": _deviation(sample=False, root=True),
    "var_samp": _deviation(sample=True, root=False),
    "var_pop": _deviation(sample=False, root=False),
    "median": lambda rows: _percentile(rows, 0.5),
    "percentile": _percentile,
    "mode": _mode,
    "string_agg": _string_agg,
    "map_agg": lambda rows: {row[0]: row[1] for row in rows if row[0] is not None} if rows else None,
    "map_union": _map_union,
    "product": _product,
}
AGGREGATES = frozenset(_FOLDS)
