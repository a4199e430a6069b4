"""Strategy `slice` (Step 4.4.2): lanes take turns with slices of time, or of positions, with some overlap.

A match belongs to the slice in which it ends. The lane of a slice also gets the surrounding events that can decide
about such a match; it does not emit matches that end there, as the lane of their own slice does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from weft.algebra.contexts import Windows
from weft.algebra.situations import SituationQuery
from weft.plan.partitioning.reach import joint_reach
from weft.plan.partitioning.splits import Refused, Split, Strategy
from weft.plan.properties import Family

USUAL = 8  # slices are so many times as long as what is seen around them, when nothing is known of the input


@dataclass(frozen=True)
class BySlice(Split):
    """Slice k is [origin + k * size, origin + (k + 1) * size) of `unit`, and belongs to lane k % lanes.

    Its lane gets `back` before the slice and `ahead` after it. A size is a multiple of `step`, as the origin is; size 0
    is chosen later.
    """

    strategy: ClassVar[Strategy] = "slice"
    copies: ClassVar[bool] = True
    unit: str  # "time" or "events"
    back: int
    ahead: int
    step: int = 1
    size: int = 0
    origin: int = 0

    def sized(self, first: int, last: int, lanes: int) -> BySlice:
        """For an input (or the first part of one) from a time or position to another: every lane has work in it.

        Several slices for each lane even out what happens more often at some times, if they are long enough. Where
        slices have nothing around them, there are as many as give the busiest lane least.
        """
        extent = last - first + 1
        around = self.back + self.ahead
        turns = range(4, 9) if around == 0 else (max(1, min(4, extent // (2 * USUAL * around * lanes))),)
        sizes = [self.whole(max(1, -(-extent // (turn * lanes)))) for turn in turns]
        best = min(sizes, key=lambda size: size * -(-extent // (size * lanes)))
        return replace(self, size=best, origin=first - first % self.step)

    def whole(self, size: int) -> int:
        """The next size that is a multiple of the step."""
        return -(-size // self.step) * self.step


def usual(split: Split) -> Split:
    """Slices of the usual size, for an input of which nothing is known; any other split as it is."""
    if not isinstance(split, BySlice) or split.size:
        return split
    return replace(split, size=split.whole(USUAL * max(1, split.back + split.ahead)))


def by_slice(family: Family) -> BySlice | Refused:
    """Slices, if it is known how far from its end the events lie that decide about a match."""
    places = {number: place for place, number in enumerate(family.numbers)}
    reach = joint_reach(family.queries, [[places[number] for number in makers] for makers in family.fed_by])
    if isinstance(reach, Refused):
        return reach
    fixed = _fixed_length(family)
    if fixed is not None:
        return BySlice(f"by slices of whole partitions of {fixed} ticks", "time", 0, 0, fixed)
    return _described(reach.unit, reach.back, reach.ahead)


def _fixed_length(family: Family) -> int | None:
    """The length of partitions that follow each other, if a situation alone has such."""
    match family.queries:
        case (SituationQuery(situation=situation),):
            match situation.context:
                case Windows(length, step) if length == step:
                    return length
    return None


def joined(chosen: Sequence[tuple[Family, Split]]) -> list[tuple[Family, Split]]:
    """Families that have slices of one kind have the same ones, and so the same lanes: those that suit all of them."""
    sliced: dict[str, list[BySlice]] = {}
    for _, split in chosen:
        if isinstance(split, BySlice) and split.step == 1:
            sliced.setdefault(split.unit, []).append(split)
    widest = {
        unit: _described(unit, max(split.back for split in splits), max(split.ahead for split in splits))
        for unit, splits in sliced.items()
    }
    return [
        (family, widest[split.unit] if isinstance(split, BySlice) and split.step == 1 else split)
        for family, split in chosen
    ]


def _described(unit: str, back: int, ahead: int) -> BySlice:
    ticks, kind = ("ticks", "time") if unit == "time" else ("events", "positions")
    around = f"{back} {ticks} before" + (f" and {ahead} after" if ahead else "")
    return BySlice(f"by slices of {kind}, with {around}", unit, back, ahead)
