"""The share of a lane in the matches of a query: the arrays in which the kernel keeps ranks."""

from __future__ import annotations

import numpy as np

from weft.kernels.automaton.counting import FILLED
from weft.kernels.automaton.ranks import MARKS, OUTPUTS, Ranks


class RankShare:
    """Share `share` of `shares`, or everything if `shares` is 0.

    All but the number of outputs follows from the nodes.
    """

    def __init__(self, share: int = 0, shares: int = 0) -> None:
        self._share, self._shares = share, shares
        self._arrays = self._empty(0)

    @property
    def outputs(self) -> int:
        """The number of events at which matches ended."""
        return int(self._arrays.marks[OUTPUTS])

    @outputs.setter
    def outputs(self, number: int) -> None:
        self._arrays.marks[OUTPUTS] = number

    def fit(self, ring: int) -> Ranks:
        """Return the arrays for a ring of `ring` nodes."""
        if self._shares and len(self._arrays.known) != ring:
            self._arrays = self._empty(ring)._replace(marks=self._arrays.marks)
            self.forget()
        return self._arrays

    def forget(self) -> None:
        """Clear the ranks, since the nodes have new ids."""
        self._arrays.marks[FILLED] = 0
        self._arrays.known[:] = 0

    def _empty(self, ring: int) -> Ranks:
        return Ranks(
            paths=np.zeros(ring),
            eldest=np.zeros(ring, np.int64),
            inside=np.zeros(ring),
            known=np.zeros(ring, np.int64),
            marks=np.zeros(MARKS, np.int64),
            loads=np.zeros(self._shares + 1),
            size=1,
            share=self._share,
            shares=self._shares,
        )
