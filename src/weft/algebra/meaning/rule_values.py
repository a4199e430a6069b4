"""Values in rules: summaries over events, and the kinds of fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeVar, cast

from weft.algebra.meaning.functions import is_number
from weft.algebra.meaning.values import (
    EventDict,
    Value,
    ValueScope,
    as_held,
    attribute_of,
    calculable,
    evaluate,
    number_of,
    worth,
)
from weft.algebra.predicates import Attribute, Expression
from weft.algebra.rules import Summary
from weft.schema import Kind
from weft.tree import Node

AnyNode = TypeVar("AnyNode", bound=Node)
Bound = Mapping[str | None, EventDict]  # the event of each variable
Summarized = Sequence[tuple[Summary, Sequence[EventDict]]]  # summaries, and the events each is about


def value_of(expression: Expression, summaries: Summarized, bound: Bound) -> Value | None:
    """The value of an expression, over the events bound to variables and those that summaries are about."""
    return evaluate(*without_summaries(expression, summaries, bound))


def without_summaries(node: AnyNode, summaries: Summarized, bound: Bound) -> tuple[AnyNode, ValueScope]:
    """The expression with each summary written as an attribute, and the scope that has their values."""
    results: Bound = {repr(summary): {"value": _summary(summary, events)} for summary, events in summaries}

    def rewrite(part: Node) -> Node:
        return Attribute("value", repr(part)) if isinstance(part, Summary) else part

    return cast(AnyNode, node.transform(rewrite)), ValueScope({**bound, **results})


def _summary(summary: Summary, events: Sequence[EventDict]) -> Value | None:
    if summary.attribute is None:
        return len(events)
    if summary.function == "COUNT":
        return sum(attribute_of(event, summary.attribute) is not None for event in events)
    found = [number_of(event, summary.attribute) for event in events]
    numbers = [number for number in found if number is not None]
    if not numbers:
        return None
    match summary.function:
        case "MIN":
            return min(numbers, key=worth)
        case "MAX":
            return max(numbers, key=worth)
        case "SUM":
            total = _sum([calculable(number) for number in numbers])
            return None if total is None else as_held(total)
        case "AVG":
            total = _sum([calculable(number) for number in numbers])
            return None if total is None else total / len(numbers)


def _sum(numbers: Sequence[int | float]) -> int | float | None:
    """The exact sum, rounded once; of integers an integer, however long. None when it is beyond all numbers."""
    integers = [number for number in numbers if isinstance(number, int)]
    if len(integers) == len(numbers):
        return sum(integers)
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        return None


def as_kind(value: Value | None, kind: Kind) -> Value | None:
    """The value as a field of that kind holds it; None when it is not of the kind."""
    match kind:
        case Kind.TEXT:
            return value if isinstance(value, str) else None
        case Kind.BOOL:
            return value if isinstance(value, bool) else None
        case Kind.FLOAT:
            return _float(value) if is_number(value) else None
        case Kind.INT:
            is_finite = not isinstance(value, float) or math.isfinite(value)
            return as_held(math.trunc(value)) if is_number(value) and is_finite else None


def _float(value: int | float | Decimal) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
