"""Seconds of silence after which a source is idle (STEP 5.2.3): as given, or derived from declared rates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from weft.algebra.endpoints import Input
from weft.errors import UsageError

IdleAfter = float | Literal["rate"] | None
LEAST: Final = 0.1  # seconds; shorter pauses are caused by threads and networks


def idle_seconds(
    after: IdleAfter, names: Iterable[str], inputs: Iterable[Input], least: float | None = None
) -> dict[str, float]:
    """Return the seconds after which each named source is idle, without those that are always waited for.

    `"rate"` means the time of one event by the rate that the program declares for the source, but at least `least`.
    """
    if after is None:
        return {}
    if isinstance(after, str):
        if after != "rate":
            raise UsageError(f"idle_after is a number of seconds, 'rate' or None, not {after!r}")
        shortest = LEAST if least is None else least
        rates = {source.type: source.rate for source in inputs if source.rate}
        return {name: max(1 / rate, shortest) for name in names if (rate := rates.get(name))}
    return dict.fromkeys(names, float(after))
