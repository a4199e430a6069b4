"""Simulated streams: events of several types that come at given rates, with attributes that are drawn at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.errors import UsageError

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Seed = tuple[int, ...]
Domain = tuple[int, int]  # the least and the greatest value
DOMAIN: Domain = (0, 100)
RATE = 50.0


@dataclass(frozen=True)
class Simulated:
    """What a stream is like: rates in events per second by type; values of attributes, also by `type.attribute`."""

    rates: Mapping[str, float]
    attributes: tuple[str, ...]
    domains: Mapping[str, Domain] = field(default_factory=dict)
    distribution: Literal["poisson", "uniform"] = "poisson"
    ticks_per_second: float = 1000.0

    def __post_init__(self) -> None:
        if not self.rates or min(self.rates.values()) < 0 or not sum(self.rates.values()):
            raise UsageError("rates are events per second, at least one of them above 0")
        for name, (low, high) in self.domains.items():
            if low > high:
                raise UsageError(f"the values of {name} go from {low} to {high}: the least comes first")

    def table(self, count: int, seed: Seed) -> pa.Table:
        """So many events from time 0 on; the same for the same seed."""
        random = np.random.default_rng(seed)
        types = list(self.rates)
        times, codes = self._arrivals(count, random)
        columns: dict[str, object] = {
            "type": pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(types)),
            "ts": (times * self.ticks_per_second).astype(np.int64),
        }
        for name in self.attributes:
            lows, highs = zip(*(self._domain(type_, name) for type_ in types), strict=True)
            columns[name] = random.integers(np.array(lows)[codes], np.array(highs)[codes] + 1)
        return pa.table(columns)

    def _arrivals(self, count: int, random: np.random.Generator) -> tuple[Floats, Int64s]:
        rates = np.array(list(self.rates.values()))
        total = float(rates.sum())
        if self.distribution == "poisson":  # independent processes are one, in which types are drawn
            codes = random.choice(len(rates), count, p=rates / total)
            return np.cumsum(random.exponential(1 / total, count)), codes
        each = [np.arange(np.ceil(count * rate / total) + 1) for rate in rates]
        parts = [(own + random.random()) / rate if rate else own[:0] for own, rate in zip(each, rates, strict=True)]
        times = np.concatenate(parts)
        codes = np.repeat(np.arange(len(rates)), [len(part) for part in parts])
        order = np.argsort(times, kind="stable")[:count]
        return times[order], codes[order]

    def _domain(self, type_: str, name: str) -> Domain:
        return self.domains.get(f"{type_}.{name}", self.domains.get(name, DOMAIN))
