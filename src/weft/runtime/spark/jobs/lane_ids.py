"""Lanes as Spark knows them: by numbers that its hash partitioning deals out evenly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.plan.partitioning.splits import Lane


def spread(lanes: Sequence[Lane], partitions: int, taken: frozenset[int] = frozenset()) -> tuple[Lane, ...]:
    """The same lanes with ids that Spark's hash partitioning deals out evenly, each to its own partition if it can.

    None of them is one that is `taken` already.
    """
    wanted = min(len(lanes), partitions)
    ids: dict[int, list[int]] = {place: [] for place in range(wanted)}
    rounds = -(-len(lanes) // wanted)
    candidate = 0
    while any(len(found) < rounds for found in ids.values()):
        place = partition_of(candidate, partitions)
        if place in ids and candidate not in taken:
            ids[place].append(candidate)
        candidate += 1
    return tuple(replace(lane, id=ids[at % wanted][at // wanted]) for at, lane in enumerate(lanes))


def numbers_for(partitions: int) -> list[int]:
    """For each partition the least number that Spark's hash partitioning puts there."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < partitions:
        found.setdefault(partition_of(candidate, partitions), candidate)
        candidate += 1
    return [found[place] for place in range(partitions)]


def partition_of(value: int, partitions: int) -> int:
    """The partition that Spark's hash partitioning puts an int column's value into (Murmur3, 32 bit, seed 42)."""
    mask = 0xFFFFFFFF
    word = _rotate(value * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    state = (_rotate(42 ^ word, 13) * 5 + 0xE6546B64) & mask
    state ^= 4
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    state ^= state >> 16
    signed = state - (1 << 32) if state >= 1 << 31 else state
    return signed % partitions


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & 0xFFFFFFFF
