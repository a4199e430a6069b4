"""The share of events to shed after a full queue, and whether examining them for shedding saves time.

Finding the least important events takes time as well. Where matching costs hardly more, it is better to match all
events that are read and to drop the rest unread: both ways are tried, and the one that loses fewer matches is used.
"""

from __future__ import annotations

from weft.runtime.limits.shedding import MOST, STEP

TRY_EVERY = 32  # times that the better way is taken, the other is tried again
NEWER = 0.3  # how much the last time counts against those before


class Looking:
    """The share to be shed: it rises while events are dropped unread, and falls when the queue is half empty."""

    def __init__(self) -> None:
        self._share = 0.0
        self._seconds: dict[bool, float] = {}  # for an event that is read, when events are looked at and when not
        self._times = 0

    def next_share(self, *, is_losing: bool, is_calm: bool) -> float:
        """Return the share of the queued events to shed; 0 means that they are not examined."""
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
        """Return whether shedding by importance yields more matches, assuming it loses half as many as its share."""
        if False not in self._seconds or True not in self._seconds:
            return False in self._seconds  # what is not known yet is tried
        return self._seconds[True] < self._seconds[False] * (1 - self._share / 2)

    def took(self, share: float, seconds: float) -> None:
        """Record the time per event with such a share shed."""
        before = self._seconds.get(share > 0, seconds)
        self._seconds[share > 0] = before + NEWER * (seconds - before)
