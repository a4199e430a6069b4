"""Scalar functions that are evaluated value by value: on lists, patterns of texts, decimals."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import Any

import pyarrow as pa

from weft.errors import InputError
from weft.runtime.operators.row_patterns.sql_types import Value

_COMPARISONS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def call(function: str, arguments: list[Value]) -> Value:
    """Call a function for each row."""
    evaluate, kind_of, is_strict = FUNCTIONS[function]
    kinds = [argument.type for argument in arguments]
    return each(evaluate, arguments, kind_of(*kinds), is_strict=is_strict)


def each(evaluate: Callable[..., Any], arguments: list[Value], kind: pa.DataType | None, *, is_strict: bool) -> Value:
    """Call a Python function row by row; the result is a scalar if all arguments are."""
    sizes = [len(argument) for argument in arguments if not isinstance(argument, pa.Scalar)]
    count = sizes[0] if sizes else 1
    lists = [
        [argument.as_py()] * count if isinstance(argument, pa.Scalar) else argument.to_pylist()
        for argument in arguments
    ]
    rows = zip(*lists, strict=True) if lists else [()]
    found = pa.array([None if is_strict and None in row else evaluate(*row) for row in rows], kind)
    return found if sizes else found[0]


def compared(function: str, left: Value, right: Value) -> Value:
    """Compare lists."""
    return each(_COMPARISONS[function], [left, right], pa.bool_(), is_strict=True)


def divided(left: Value, right: Value) -> Value:
    """Divide decimals, with Spark's precision and scale."""
    one, two = left.type, right.type
    scale = max(6, one.scale + two.precision + 1)
    whole = one.precision - one.scale + two.scale
    if whole + scale > 38:
        scale = max(38 - whole, min(scale, 6))
    kind = pa.decimal128(min(38, whole + scale), scale)
    step = Decimal(1).scaleb(-scale)

    def divide(x: Decimal, y: Decimal) -> Decimal:
        if y == 0:
            raise InputError("division by zero: use NULLIF(divisor, 0), or try_divide")
        with localcontext(prec=80):
            return (x / y).quantize(step, ROUND_HALF_UP)

    return each(divide, [left, right], kind, is_strict=True)


@lru_cache(maxsize=256)
def _like_pattern(pattern: str, escape: str) -> re.Pattern[str]:
    found, k = [], 0
    while k < len(pattern):
        c = pattern[k]
        if c == escape and k + 1 < len(pattern):
            k += 1
            found.append(re.escape(pattern[k]))
        else:
            found.append(".*" if c == "%" else "." if c == "_" else re.escape(c))
        k += 1
    return re.compile("".join(found), re.DOTALL)


def _like(text: str, pattern: str, escape: str = "\\") -> bool:
    return _like_pattern(pattern, escape).fullmatch(text) is not None


def _substring(text: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)]


def _with_separator(separator: str | None, *parts: Any) -> str | None:
    if separator is None:
        return None
    flat = [item for part in parts for item in (part if isinstance(part, list) else [part])]
    return separator.join(str(item) for item in flat if item is not None)


def _array_join(items: list[Any], separator: str, instead: str | None = None) -> str:
    return separator.join(str(instead if item is None else item) for item in items if item is not None or instead)


def _element(container: Any, place: Any) -> Any:
    pairs = dict(container) if container and isinstance(container[0], tuple) else None
    if pairs is not None:
        return pairs.get(place)
    return container[place - 1 if place > 0 else place] if 0 < abs(place) <= len(container) else None


def _subscript(container: Any, place: Any) -> Any:
    if container and isinstance(container[0], tuple):
        return dict(container).get(place)
    return container[place] if 0 <= place < len(container) else None


def _extreme(pick: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def extreme(items: list[Any]) -> Any:
        here = [item for item in items if item is not None]
        return pick(here) if here else None

    return extreme


def _round(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def _item_type(kind: pa.DataType, *_: pa.DataType) -> pa.DataType | None:
    return kind.item_type if pa.types.is_map(kind) else getattr(kind, "value_type", None)


def _list_type(*kinds: pa.DataType) -> pa.DataType:
    known = [kind for kind in kinds if not pa.types.is_null(kind)]
    return pa.list_(known[0] if known else pa.null())


def _map(*items: Any) -> list[tuple[Any, Any]]:
    """Build a map from alternating keys and values, or from a list of keys and a list of values."""
    if len(items) == 2 and isinstance(items[0], list):
        return list(zip(*items, strict=True))
    return list(zip(items[::2], items[1::2], strict=True))


def _map_type(*kinds: pa.DataType) -> pa.DataType:
    if len(kinds) == 2 and pa.types.is_list(kinds[0]):
        return pa.map_(kinds[0].value_type, kinds[1].value_type)
    return pa.map_(kinds[0], kinds[1]) if kinds else pa.map_(pa.null(), pa.null())


def _always(kind: pa.DataType) -> Callable[..., pa.DataType]:
    return lambda *_: kind


def _first(kind: pa.DataType, *_: pa.DataType) -> pa.DataType:
    return kind


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., pa.DataType | None], bool]] = {
    "like": (_like, _always(pa.bool_()), True),
    "ilike": (lambda text, pattern, *escape: _like(text.lower(), pattern.lower(), *escape), _always(pa.bool_()), True),
    "startswith": (lambda text, part: text.startswith(part), _always(pa.bool_()), True),
    "endswith": (lambda text, part: text.endswith(part), _always(pa.bool_()), True),
    "contains": (lambda text, part: part in text, _always(pa.bool_()), True),
    "instr": (lambda text, part: text.find(part) + 1, _always(pa.int32()), True),
    "rlike": (lambda text, pattern: re.search(pattern, text) is not None, _always(pa.bool_()), True),
    "substring": (_substring, _always(pa.string()), True),
    "substr": (_substring, _always(pa.string()), True),
    "left": (lambda text, n: text[: max(n, 0)], _always(pa.string()), True),
    "right": (lambda text, n: text[-n:] if n > 0 else "", _always(pa.string()), True),
    "replace": (lambda text, old, new="": text.replace(old, new), _always(pa.string()), True),
    "repeat": (lambda text, n: text * max(n, 0), _always(pa.string()), True),
    "concat_ws": (_with_separator, _always(pa.string()), False),
    "array": (lambda *items: list(items), _list_type, False),
    "map": (_map, _map_type, False),
    "map_from_arrays": (_map, _map_type, False),
    "[]": (_subscript, _item_type, True),
    "element_at": (_element, _item_type, True),
    "array_max": (_extreme(max), _item_type, True),
    "array_min": (_extreme(min), _item_type, True),
    "array_join": (_array_join, _always(pa.string()), True),
    "array_contains": (lambda items, item: item in items, _always(pa.bool_()), True),
    "size": (len, _always(pa.int32()), True),
    "cardinality": (len, _always(pa.int32()), True),
    "%": (lambda x, y: x % y, _first, True),
    "round": (_round, lambda kind, _: pa.decimal128(kind.precision, kind.scale), True),
}
