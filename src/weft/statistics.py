"""How many events of each type come in a second, and how often conditions hold: numbers, and where each is from.

Values come from users, from programs and from samples; `over` puts the better known ones first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from weft.errors import InputError, UsageError, did_you_mean
from weft.spelling import written

Origin = Literal["measured", "declared", "derived", "default"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
Numbers = Mapping[str, float]
DEFAULT_RATE = 1.0
TICKS_PER_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0, "min": 1 / 60, "h": 1 / 3600, "d": 1 / 86400}
LEAST_RATE = 1e-9  # of a type of which no event comes: so rare that nothing waits for it, and nothing divides by zero


class Figure(NamedTuple):
    """A number, and where it is from."""

    value: float
    origin: Origin


@dataclass(frozen=True)
class Statistics:
    """What is known of the events: `rates` by type, `selectivity` by condition, `sizes` of events in bytes by type.

    Rates are events per second of event time. A condition is written with types or variables, `Trade.price > 100` or
    `a.acc = b.acc`; its selectivity is the fraction of events (or pairs of events) of which it is true. `origin` says
    where the numbers are from; `origins` says it of single ones.
    """

    rates: Numbers = field(default_factory=dict)
    selectivity: Numbers = field(default_factory=dict)
    sizes: Numbers = field(default_factory=dict)
    origin: Origin = "declared"
    ticks_per_second: float = 1000.0
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("rates", "selectivity", "sizes", "origins"):
            if not isinstance(getattr(self, name), Mapping):
                raise UsageError(f"{name} are numbers by name, as in {name}={{'A': 0.5}}")
        for name, numbers in (("rate", self.rates), ("size", self.sizes)):
            for key, value in numbers.items():
                _check(value, f"the {name} of {key!r}", math.inf)
        for key, value in self.selectivity.items():
            _check(value, f"the selectivity of {key!r}", 1.0)
        _check(self.ticks_per_second, "the number of ticks in a second", math.inf)
        if not self.ticks_per_second:
            raise UsageError("the number of ticks in a second must be above 0")
        for origin in (self.origin, *self.origins.values()):
            if origin not in ORIGINS:
                raise UsageError(f"unknown origin {origin!r}; {did_you_mean(str(origin), ORIGINS)}")
        object.__setattr__(self, "selectivity", {_spelled(text): value for text, value in self.selectivity.items()})
        object.__setattr__(self, "origins", {_spelled(text): origin for text, origin in self.origins.items()})

    def rate(self, type_: str) -> Figure:
        """Return the rate of a type in events per second, or 1 if it is unknown.

        Args:
            type_: The type of events.
        """
        if type_ not in self.rates:
            return Figure(DEFAULT_RATE, "default")
        return Figure(max(self.rates[type_], LEAST_RATE), self.origins.get(type_, self.origin))

    def fraction(self, *texts: str) -> Figure | None:
        """Return how often a condition holds, by the first of its texts that is known, or None if none is.

        Args:
            texts: A condition, as it is written; several spellings of one.
        """
        for text in map(written, texts):
            if text in self.selectivity:
                return Figure(self.selectivity[text], self.origins.get(text, self.origin))
        return None

    def seconds(self, ticks: float) -> float:
        """A span of event time in seconds.

        Args:
            ticks: A duration in ticks of event time.
        """
        return ticks / self.ticks_per_second

    def over(self, other: Statistics) -> Statistics:
        """These numbers, and those of another value for what is not known here.

        Args:
            other: What is taken where these say nothing.
        """
        return replace(
            self,
            rates={**other.rates, **self.rates},
            selectivity={**other.selectivity, **self.selectivity},
            sizes={**other.sizes, **self.sizes},
            origins={**_origins(other), **_origins(self)},
        )

    def to_json(self) -> dict[str, object]:
        """As JSON values: each number with its origin."""

        def shown(numbers: Numbers) -> dict[str, object]:
            origins = _origins(self)
            return {name: {"value": value, "origin": origins[name]} for name, value in sorted(numbers.items())}

        return {
            "ticks_per_second": self.ticks_per_second,
            "rates": shown(self.rates),
            "selectivity": shown(self.selectivity),
            "sizes": shown(self.sizes),
        }

    def write(self, path: str | Path) -> None:
        """Write them to a file that `read` reads.

        Args:
            path: Where the file is made.
        """
        try:
            Path(path).write_text(json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as problem:
            raise InputError(f"cannot write the statistics to {path}: {problem.strerror or problem}") from None

    @staticmethod
    def read(path: str | Path) -> Statistics:
        """The statistics of a file: `{"rates": {"A": 64}, "selectivity": {"A.x > 3": 0.1}}`, and so on.

        Args:
            path: A file of JSON, as `write` and `weft stats` make it.
        """
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            raise InputError(f"no such file of statistics: {path}") from None
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(f"cannot read the statistics in {path}: {problem}") from None
        except json.JSONDecodeError as problem:
            place = f"line {problem.lineno}, column {problem.colno}"
            raise InputError(f"{path} is not JSON: {problem.msg} at {place}") from None
        try:
            return from_json(found)
        except UsageError as problem:
            raise InputError(f"{path} holds no statistics: {problem}") from None


def from_json(found: object) -> Statistics:
    """Statistics from JSON values; a number stands alone, or with its origin."""
    known = ("rates", "selectivity", "sizes", "origin", "ticks_per_second")
    if not isinstance(found, dict):
        raise UsageError('an object is expected, as in {"rates": {"A": 64}}')
    for name in found:
        if name not in known:
            raise UsageError(f"unknown name {name!r}; {did_you_mean(name, known)}")
    whole = found.get("origin", "declared")
    numbers: dict[str, dict[str, float]] = {}
    origins: dict[str, Origin] = {}
    for name in known[:3]:
        entries = found.get(name, {})
        if not isinstance(entries, dict):
            raise UsageError(f"{name} must be an object of numbers by name")
        numbers[name] = {}
        for key, entry in entries.items():
            alone = not isinstance(entry, dict)
            numbers[name][key] = cast(float, entry if alone else entry.get("value"))
            origins[key] = whole if alone else entry.get("origin", whole)
    return Statistics(**numbers, origin=whole, ticks_per_second=found.get("ticks_per_second", 1000.0), origins=origins)


def _spelled(text: object) -> str:
    if not isinstance(text, str):
        raise UsageError(f"a name is a text, not {text!r}")
    return written(text)


def _origins(statistics: Statistics) -> dict[str, Origin]:
    names = (*statistics.rates, *statistics.selectivity, *statistics.sizes)
    return {name: statistics.origins.get(name, statistics.origin) for name in names}


def _check(value: object, what: str, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most or math.isinf(value):
        bounds = "at least 0" if most == math.inf else f"between 0 and {most:g}"
        raise UsageError(f"{what} must be a number {bounds}, not {value!r}")


NOTHING_KNOWN = Statistics()
