"""MAX inside the automaton: runs that another run outdoes are dropped before they are many.

A run is outdone if one that starts no earlier marks strictly more positions and ends at the same event. Such a
rival is inside the window whenever the run is, so it may be judged without knowing the window. A rival that
starts earlier may not be; those few candidates are compared when found (`runtime.operators.automaton.selection`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Atoms = tuple[int, int]  # readable at the next event only, and at any later one, as bits


@dataclass(frozen=True)
class Rivals:
    """What the rivals of a run may read: those that marked as much so far, and those that marked more."""

    equal: Atoms
    more: Atoms = (0, 0)
    unmarked: bool = True  # the run has no mark yet, so runs that start later may still equal it

    def outdo(self, near: int, far: int) -> bool:
        """Whether every way on of a run is one of those that marked more."""
        return not near & ~(self.more[0] | self.more[1]) and not far & ~self.more[1]


class RivalSteps:
    """How rivals go on, event by event."""

    def __init__(self, near: Sequence[int], far: Sequence[int], first: int, last: int, shown: int) -> None:
        self._near, self._far = near, far
        self._first, self._last, self._shown = first, last, shown

    def begin(self) -> Rivals:
        """The rivals of a run before its first event: itself."""
        return Rivals((self._first, 0))

    def step(self, rivals: Rivals, readable: int, *, marks: bool, starts: bool) -> tuple[Rivals, bool]:
        """After an event that the run marks or not; and whether a rival that marked more ends there.

        `starts`: it is the run's first event, where no rival can start besides the run itself.
        """
        later = (self._first, 0) if rivals.unmarked and not starts else (0, 0)
        if marks:
            equal = _joined(
                self._read(rivals.equal, readable, marks=True)[0], self._read(later, readable, marks=True)[0]
            )
            more, ends = self._read(rivals.more, readable, marks=True)
            return Rivals(equal, more, unmarked=False), ends
        equal = self._wait(rivals.equal if not starts else (0, 0), rivals.equal, readable)
        equal = _joined(equal, self._wait((0, 0), later, readable))
        more = self._wait(rivals.more, rivals.more, readable)
        ends = bool((rivals.more[0] | rivals.more[1]) & readable & ~self._shown & self._last)
        for source in (rivals.more, rivals.equal, later):
            reached, ended = self._read(source, readable, marks=True)
            more, ends = _joined(more, reached), ends or ended
        return Rivals(equal, more, rivals.unmarked), ends

    def _read(self, atoms: Atoms, readable: int, *, marks: bool) -> tuple[Atoms, bool]:
        """What may follow after reading the event with a mark (or without), and whether a run ends so."""
        chosen = (atoms[0] | atoms[1]) & readable & (self._shown if marks else ~self._shown)
        near = far = 0
        rest = chosen
        while rest:
            low = rest & -rest
            near, far = near | self._near[low.bit_length() - 1], far | self._far[low.bit_length() - 1]
            rest ^= low
        return (near, far), bool(chosen & self._last)

    def _wait(self, waiting: Atoms, atoms: Atoms, readable: int) -> Atoms:
        """What may follow after not marking the event: by waiting, or by reading it unmarked."""
        reached, _ = self._read(atoms, readable, marks=False)
        return reached[0], reached[1] | waiting[1]


def _joined(one: Atoms, other: Atoms) -> Atoms:
    return one[0] | other[0], one[1] | other[1]
