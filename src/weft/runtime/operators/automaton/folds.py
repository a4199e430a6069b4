"""Summaries of the events of one variable in a group of partial matches: count, sum, extremes, last value.

Values have kinds as in the kernels (`kernels/machine/tagged.py`), so that both compute the same results.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from weft.kernels.machine.tagged import (
    EQUAL,
    FLOAT,
    GREATER,
    GREATER_EQUAL,
    INTEGER,
    LESS,
    LESS_EQUAL,
    MISSING,
    TEXT,
    UNEQUAL,
)
from weft.runtime.classify.texts import TextTable

Tagged = tuple[int, int]
NONE: Tagged = (MISSING, 0)
_ORDERS = {LESS: (-1,), LESS_EQUAL: (-1, 0), GREATER: (1,), GREATER_EQUAL: (0, 1), EQUAL: (0,), UNEQUAL: (-1, 1)}


def holds(texts: TextTable, operator: int, one: Tagged, other: Tagged) -> bool:
    """Compare two values as the kernels do."""
    if MISSING in (one[0], other[0]) or _class_of(one) != _class_of(other):
        return False
    return _order(texts, one, other) in _ORDERS[operator]


def _class_of(value: Tagged) -> int:
    """Return the class of comparable values: integers and floats share one."""
    return INTEGER if value[0] == FLOAT else value[0]


def _order(texts: TextTable, one: Tagged, other: Tagged) -> int:
    a, b = _worth(texts, one), _worth(texts, other)
    return int(a > b) - int(a < b)


def _worth(texts: TextTable, value: Tagged) -> Any:
    kind, word = value
    if kind == TEXT:
        pool, offsets = texts.buffers
        return pool[offsets[word] : offsets[word + 1]].tobytes()
    return _float_of(word) if kind == FLOAT else word


def _float_of(word: int) -> float:
    number: float = struct.unpack("<d", struct.pack("<q", word))[0]
    return number


def _float(number: float) -> Tagged:
    return NONE if math.isnan(number) else (FLOAT, struct.unpack("<q", struct.pack("<d", number))[0])


def _number(value: Tagged) -> int | float:
    return _float_of(value[1]) if value[0] == FLOAT else value[1]


def _sum(one: Tagged, other: Tagged) -> Tagged:
    """Add two numbers; integers stay integers while they fit into 64 bits."""
    if one[0] not in (INTEGER, FLOAT):
        return NONE
    if one[0] == other[0] == INTEGER:
        total = one[1] + other[1]
        return (INTEGER, total) if -(2**63) <= total < 2**63 else _float(float(total))
    return _float(float(_number(one)) + float(_number(other)))


@dataclass(frozen=True)
class Last:
    """The value of the last event, or nothing before the first."""

    slot: int
    column: int
    nothing: ClassVar[tuple[()]] = ()

    def after(self, known: Any, value: Tagged, texts: TextTable) -> object:
        """Return the summary after one more event."""
        return value


@dataclass(frozen=True)
class Known:
    """The values that decide whether an event compares with all earlier ones: the least, the greatest, or all."""

    slot: int
    column: int
    operator: int  # with which later values are compared
    nothing: ClassVar[tuple[Tagged, ...]] = ()

    def after(self, known: Any, value: Tagged, texts: TextTable) -> object:
        """Return the summary after one more event."""
        if value in known:
            return known
        if self.operator in (EQUAL, UNEQUAL):
            return tuple(sorted((*known, value)))
        kept = [other for other in known if _class_of(other) != _class_of(value)]
        alike = [other for other in known if _class_of(other) == _class_of(value)]
        for other in alike:  # at most one
            order = _order(texts, other, value)
            if order < 0 if self.operator in (LESS, LESS_EQUAL) else order > 0:
                value = other
        return tuple(sorted((*kept, value)))


@dataclass(frozen=True)
class Fold:
    """An aggregate of all events: how many counted, and a value."""

    slot: int
    column: int
    function: str
    most: int | None = None  # counts above this have the same effect
    nothing: ClassVar[tuple[()]] = ()
    EVENT: ClassVar[Tagged] = (INTEGER, 1)  # stands for the event where events are counted

    def after(self, known: Any, value: Tagged, texts: TextTable) -> object:
        """Return the summary after one more event."""
        count, total = known or (0, (INTEGER, 0) if self.function in ("SUM", "AVG") else NONE)
        is_number = value[0] in (INTEGER, FLOAT)
        match self.function:
            case "COUNT":
                counted = count + (value[0] != MISSING)
                return counted if self.most is None else min(counted, self.most), NONE
            case "SUM" | "AVG":
                return (count + 1, _sum(total, value)) if is_number else (count, total)
            case "FIRST":
                return known or (1, value)
            case "LAST":
                return 1, value
        if not is_number and value[0] != TEXT:
            return count, total
        better = total[0] == MISSING or (is_number and total[0] == TEXT)  # numbers precede texts
        if not better and _class_of(total) == _class_of(value):
            better = _order(texts, value, total) == (-1 if self.function == "MIN" else 1)
        return 1, value if better else total

    def result(self, known: Any) -> Tagged:
        """Return the value of the aggregate."""
        count, total = known or (0, NONE)
        match self.function:
            case "COUNT":
                return INTEGER, count
            case "SUM":
                return total if count else NONE
            case "AVG" if not count or total[0] == MISSING:
                return NONE
            case "AVG":
                return _float(_number(total) / count)
        return total


Tracker = Last | Known | Fold
