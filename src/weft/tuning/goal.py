"""Two objectives as one number, and what many runs say of it: estimates, intervals, what no other way beats.

Latency is in milliseconds, throughput in events per second. The document gives the weight alpha to throughput in words
and to latency in its formula, which counts: alpha = 1 looks at latency only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, sqrt
from typing import NamedTuple

ALPHAS = (0.0, 0.25, 0.5, 0.8, 1.0)
WIDTH = 1.96  # of an interval that holds the mean in 95 of 100 cases, in standard errors


class Estimate(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float

    def overlaps(self, other: Estimate) -> bool:
        """Whether the two cannot be told apart."""
        return self.low <= other.high and other.low <= self.high


class TuningPoint(NamedTuple):
    """What one way to run a pattern reaches."""

    latency: float
    throughput: float


def goal(latency: float, throughput: float, alpha: float, coefficient: float) -> float:
    """`alpha * latency + coefficient * (1 - alpha) / throughput`: the less the better."""
    return alpha * latency + coefficient * (1 - alpha) / throughput


def coefficient_of(points: Iterable[TuningPoint]) -> float:
    """What makes both objectives the same size: mean latency times mean throughput."""
    latencies, throughputs = zip(*points, strict=True)
    return float(sum(latencies) / len(latencies) * sum(throughputs) / len(throughputs))


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of independent measurements, and where it lies in 95 of 100 cases; one alone says nothing of that."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return Estimate(mean, -inf, inf)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = WIDTH * sqrt(variance / len(values))
    return Estimate(mean, mean - half, mean + half)


def pareto(points: Mapping[str, TuningPoint]) -> list[str]:
    """The ways that no other beats in both objectives."""

    def beats(one: TuningPoint, other: TuningPoint) -> bool:
        better = one.latency <= other.latency and one.throughput >= other.throughput
        return better and one != other

    return [name for name, point in points.items() if not any(beats(other, point) for other in points.values())]


def best_by_alpha(points: Mapping[str, TuningPoint], coefficient: float) -> dict[float, str]:
    """The way with the least goal for each weight; of equal ones the first."""
    return {alpha: min(points, key=lambda name: goal(*points[name], alpha, coefficient)) for alpha in ALPHAS}
