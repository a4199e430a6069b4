"""How far back rules look: what bounds the events that have to be kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weft.algebra.rules import Absence, Between, Extent, LookBack, Rule, Summary, Within


def reach_of(rule: Rule) -> dict[str, int]:
    """For each type the rule looks back at, the greatest age in ticks of an event when it can still matter.

    The age is counted from the terminator. Windows add up along chains: `each A within 5 from B` and
    `each B within 3 from C` reach back to an A of age 8. The terminator's own type is there only if it is
    looked back at, too.
    """
    depths = {rule.terminator.variable: 0}
    for step in rule.lookbacks:
        depths[step.variable] = _reach(step.within, depths)
    reaches: dict[str, int] = {}
    for node in rule.walk():
        match node:
            case LookBack(_, events, within):
                _raise(reaches, events.type, _reach(within, depths))
            case Absence(events, extent):
                _raise(reaches, events.type, _reach(extent, depths))
            case Summary(_, events, _, extent):
                _raise(reaches, events.type, _reach(extent, depths))
    return reaches


def joint_reach(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The reach of several rules together, from that of each: the greatest age at which an event can still matter."""
    reaches: dict[str, int] = {}
    for part in parts:
        for type_, reach in part.items():
            _raise(reaches, type_, reach)
    return reaches


def _raise(reaches: dict[str, int], type_: str, reach: int) -> None:
    reaches[type_] = max(reach, reaches.get(type_, 0))


def _reach(extent: Extent, depths: Mapping[str, int]) -> int:
    match extent:
        case Within(anchor, ticks):
            return depths[anchor] + ticks
        case Between(first, second):
            return max(depths[first], depths[second])
    raise TypeError(f"not an extent: {extent!r}")
