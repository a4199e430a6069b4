"""A figure or table of a document, to be run again: its axes, what was published, and the shape that is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

Place = float | str  # on the x axis: a number, or a name
Curve = Sequence[tuple[Place, float]]
Curves = Mapping[str, Curve]


class Point(NamedTuple):
    """One measurement."""

    series: str
    x: Place
    y: float


@dataclass(frozen=True)
class Figure:
    """What a figure shows, how it is measured, and what is expected of it.

    `run` takes a scale, by which the number of events is multiplied. `published` are the document's own values, as far
    as its text states them; they are of other machines. `holds` says whether curves have the expected shape.
    """

    id: str
    title: str
    x: str
    y: str
    run: Callable[[float], Iterable[Point]]
    shape: str
    holds: Callable[[Curves], bool]
    published: Curves = field(default_factory=dict)
    form: Literal["lines", "bars", "points"] = "lines"
    log: str = ""  # axes with logarithmic scales: x, y or xy
    reason: str = ""  # why the shape does not hold, where it does not


def curves_of(points: Iterable[Point]) -> dict[str, list[tuple[Place, float]]]:
    """Points by series, each in the order of its measurements."""
    found: dict[str, list[tuple[Place, float]]] = {}
    for point in points:
        found.setdefault(point.series, []).append((point.x, point.y))
    return found


# ---------------------------------------------------------------- shapes


def values(curve: Curve) -> list[float]:
    """The y values."""
    return [y for _, y in curve]


def gain(curve: Curve) -> float:
    """The last value over the first."""
    return curve[-1][1] / max(curve[0][1], 1e-12)


def rises(curve: Curve, tolerance: float = 0.1) -> bool:
    """Whether each value is at least the one before, apart from noise, and the last is greater than the first."""
    return gain(curve) > 1 and all(later >= (1 - tolerance) * earlier for earlier, later in pairwise(values(curve)))


def falls(curve: Curve, tolerance: float = 0.1) -> bool:
    """The opposite."""
    return gain(curve) < 1 and all(later <= (1 + tolerance) * earlier for earlier, later in pairwise(values(curve)))


def flat(curve: Curve, factor: float = 1.5) -> bool:
    """Whether the greatest value is within a factor of the least."""
    return max(values(curve)) <= factor * max(min(values(curve)), 1e-12)


def above(one: Curve, other: Curve, tolerance: float = 0.1) -> bool:
    """Whether one curve is nowhere below another, apart from noise."""
    return all(y >= (1 - tolerance) * below for y, below in zip(values(one), values(other), strict=True))
