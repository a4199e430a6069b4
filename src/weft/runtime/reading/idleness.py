"""After how many seconds of silence a source is idle (STEP 5.2.3): given, or following from the rates declared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from weft.algebra.endpoints import Input
from weft.errors import UsageError

IdleAfter = float | Literal["rate"] | None
LEAST: Final = 0.1  # seconds: shorter pauses are those of threads and networks


def idle_seconds(
    after: IdleAfter, names: Iterable[str], inputs: Iterable[Input], least: float | None = None
) -> dict[str, float]:
    """The seconds after which each of the named sources is idle; one that is always waited for is left out.

    `"rate"`: the time that a source takes for one event, by the rate that the program declares for it, and `least`.
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
