"""Strategy `key`: a lane has the events whose key falls into its bucket, and no lane sees what another does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.plan.keys import Key, key_of
from weft.plan.partitioning.splits import Refused, Split, Strategy
from weft.plan.properties import Family


@dataclass(frozen=True)
class ByKey(Split):
    """An event goes to the lane of its key, and to none without a key. Every lane emits all its matches.

    Keys, identified by hash, go to the lanes in which they are `placed`, or else to a bucket; the first `own` lanes
    have no bucket. Heavy keys are determined when events have been seen.
    """

    strategy: ClassVar[Strategy] = "key"
    key: Key
    own: int = 0
    placed: tuple[tuple[int, int], ...] = ()


def by_key(family: Family) -> ByKey | Refused:
    """The key that all events have in common that have to do with each other."""
    key, reason = key_of(family)
    return ByKey(reason, key) if key else Refused(reason.removeprefix("one lane: "))
