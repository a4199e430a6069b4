"""Spans of time with a unit, in ticks of event time."""

from __future__ import annotations

from fractions import Fraction

from weft.errors import UsageError, did_you_mean
from weft.languages.findings import Findings
from weft.languages.syntax import Name

TICKS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 24 * 3600 * 10**9}
_NANOSECONDS = {
    ("msec", "msecs", "ms", "millisecond", "milliseconds"): TICKS["ms"],
    ("sec", "secs", "s", "second", "seconds"): TICKS["s"],
    ("min", "mins", "minute", "minutes"): TICKS["min"],
    ("hour", "hours"): TICKS["h"],
    ("day", "days"): TICKS["d"],
}
UNITS = {word: length for words, length in _NANOSECONDS.items() for word in words}
LONGEST = 2**62  # the longest span: times of 64 bits can still be added to it


def ticks_of(amount: int | float, unit: Name | None, time_unit: str, findings: Findings) -> int:
    """So many units in ticks, rounded down and `LONGEST` at most; without a unit the amount is in ticks already."""
    if time_unit not in TICKS:
        raise UsageError(f"there is no time unit {time_unit!r}; use one of {', '.join(TICKS)}")
    amount = min(amount, LONGEST)
    if unit is None:
        return int(amount)
    length = UNITS.get(unit.text.lower())
    if length is None:
        near = did_you_mean(unit.text.lower(), UNITS) or ""
        hint = (
            near if near.startswith("did") else "units are msec, sec, min, hours and days; a number alone is in ticks"
        )
        findings.error("unknown-unit", f"there is no unit {unit.text!r}", unit.span, hint)
        return 0
    exact = Fraction(str(amount)) * length / TICKS[time_unit]
    ticks = exact.numerator // exact.denominator
    if ticks != exact:
        message = f"this is not a whole number of ticks, which are in {time_unit}"
        findings.warning("fraction-of-a-tick", message, unit.span, f"it counts as {ticks} {time_unit}")
    return min(ticks, LONGEST)
