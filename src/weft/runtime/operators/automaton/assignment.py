"""Assign candidates to lanes in blocks, or by their configuration.

All lanes enumerate the same candidates in the same order, in pieces of any size, and compute the same assignment
without communication.
"""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt

from weft.plan.partitioning.by_match import BLOCK
from weft.plan.partitioning.dealing import Dealer
from weft.runtime.operators.automaton.found import Found

Owners = npt.NDArray[np.int64]
_STEP = np.uint64(0x9E3779B97F4A7C15)  # an odd number with mixed bits, whose powers distinguish runs


class CandidateAssigner:
    """State of the assignment so far. A load is the number of events in the candidates of a lane."""

    def __init__(self, dealer: Dealer) -> None:
        self._dealer = dealer
        self._filled = 0  # candidates in the current block
        self._owner = -1  # of that block
        self._owners: dict[int, int] = {}  # by configuration

    def assign(self, found: Found) -> Owners:
        """Return the lane of each candidate."""
        if self._dealer.dealing == "maximal":
            return self._assign_configurations(found)
        owners = np.empty(len(found.events), np.int64)
        begin = 0
        while begin < len(owners):
            if self._filled == 0:
                self._owner = self._dealer.deal(0.0)
            end = min(len(owners), begin + BLOCK - self._filled)
            owners[begin:end] = self._owner
            self._dealer.loads[self._owner] += float(found.offsets[end] - found.offsets[begin])
            self._filled = (self._filled + end - begin) % BLOCK
            begin = end
        return owners

    def _assign_configurations(self, found: Found) -> Owners:
        kinds = _configurations(found)
        sizes = np.diff(found.offsets).astype(np.float64)
        owners = np.empty(len(kinds), np.int64)
        seen, firsts, places = np.unique(kinds, return_index=True, return_inverse=True)
        lanes = np.array([self._owners.get(kind, -1) for kind in seen.tolist()], np.int64)
        done = 0
        for fresh in sorted(np.flatnonzero(lanes < 0).tolist(), key=lambda place: int(firsts[place])):
            # Count all earlier candidates first: the lane must not depend on how candidates are cut into pieces.
            done = self._count(lanes[places], sizes, done, int(firsts[fresh]))
            lanes[fresh] = self._owners[int(seen[fresh])] = self._dealer.deal(0.0)
        self._count(lanes[places], sizes, done, len(kinds))
        owners[:] = lanes[places]
        return owners

    def _count(self, owners: Owners, sizes: npt.NDArray[np.float64], begin: int, end: int) -> int:
        """Add the sizes of candidates to the loads of their lanes, and return where to continue."""
        loads = np.bincount(owners[begin:end], sizes[begin:end], self._dealer.workers)
        self._dealer.loads = [load + float(more) for load, more in zip(self._dealer.loads, loads, strict=True)]
        return end

    def page(self) -> bytes:
        """Return the state as a page."""
        dealer = self._dealer
        owners = list(self._owners.items())
        return json.dumps([self._filled, self._owner, dealer.dealt, dealer.loads, owners]).encode()

    def load(self, page: bytes) -> None:
        """Restore the state from a page."""
        self._filled, self._owner, self._dealer.dealt, self._dealer.loads, owners = json.loads(page)
        self._owners = dict(owners)


def _configurations(found: Found) -> npt.NDArray[np.uint64]:
    """Return a hash of each candidate's configuration: the numbers of events in its runs of one variable."""
    sizes = np.diff(found.offsets)
    numbers = np.repeat(np.arange(len(sizes)), sizes)  # the candidate of each event
    changes = np.ones(len(numbers), bool)
    changes[1:] = (found.labels[1:] != found.labels[:-1]) | (numbers[1:] != numbers[:-1])
    runs = np.cumsum(changes)
    before = np.concatenate([[0], runs])[found.offsets[:-1]]  # runs of candidates before
    powers = np.cumprod(np.full(int((runs - before[numbers]).max(initial=0)) + 1, _STEP))
    weights = powers[runs - before[numbers]] if len(runs) else np.empty(0, np.uint64)
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(weights, dtype=np.uint64)])
    sums: npt.NDArray[np.uint64] = totals[found.offsets[1:]] - totals[found.offsets[:-1]]
    return sums
