"""How much is shed of the events that get through a full queue, and whether it gains time to look at them for that.

To find out which events matter least takes time as well. Where matching takes hardly more, it is better to match all
events that are read, and leave out others unread: so both ways are tried, and that is taken which loses less.
"""

from __future__ import annotations

from weft.runtime.limits.shedding import MOST, STEP

TRY_EVERY = 32  # times that the better way is taken, the other is tried again
NEWER = 0.3  # how much the last time counts against those before


class Looking:
    """The share to be shed: it rises while events are left out unread, and falls when the queue is half empty."""

    def __init__(self) -> None:
        self._share = 0.0
        self._seconds: dict[bool, float] = {}  # for an event that is read, when events are looked at and when not
        self._times = 0

    def next_share(self, *, is_losing: bool, is_calm: bool) -> float:
        """The share of the events at hand to be shed; 0: they are not looked at."""
        if is_losing:
            self._share = min(MOST, self._share + STEP)
        elif is_calm:
            self._share = max(0.0, self._share - STEP)
        if not self._share:
            return 0.0
        self._times += 1
        looks = self._gains if self._times % TRY_EVERY else not self._gains
        return self._share if looks else 0.0

    @property
    def _gains(self) -> bool:
        """Whether so many more events are read that more matches are found, if shedding by what matters loses half as
        many as its share."""
        if False not in self._seconds or True not in self._seconds:
            return False in self._seconds  # what is not known yet is tried
        return self._seconds[True] < self._seconds[False] * (1 - self._share / 2)

    def took(self, share: float, seconds: float) -> None:
        """How long it took for an event, with such a share shed."""
        before = self._seconds.get(share > 0, seconds)
        self._seconds[share > 0] = before + NEWER * (seconds - before)
