"""Comparison of expected with actual matches: which are missing, and which are unexpected."""

from __future__ import annotations

from collections.abc import Sequence

from weft.rule_tests.lines import Expected
from weft.runtime.data.matches import Match


def agrees(expected: Expected, match: Match) -> bool:
    """Return whether the match agrees with the expectation in everything that is stated."""
    found = frozenset(match.positions)
    positions = expected.positions
    return (
        expected.query == match.query
        and (positions is None or positions == found or (expected.more and positions <= found))
        and all(frozenset(match.bindings.get(name, ())) == places for name, places in expected.bindings.items())
        and all(_same(value, match.event.get(name)) for name, value in expected.fields.items())
    )


def difference(expected: Sequence[Expected], found: Sequence[Match]) -> tuple[list[Expected], list[Match]]:
    """Return the missing and the unexpected matches, after pairing as many as possible, each once, in any order.

    An expectation that states little may fit several matches, so pairs are replaced by better ones
    (augmenting paths) before anything is reported as missing.
    """
    fits = [[at for at, match in enumerate(found) if agrees(wanted, match)] for wanted in expected]
    holder: dict[int, int] = {}  # match -> the expectation it is paired with

    def place(wanted: int, tried: set[int]) -> bool:
        for at in fits[wanted]:
            if at not in tried:
                tried.add(at)
                if at not in holder or place(holder[at], tried):
                    holder[at] = wanted
                    return True
        return False

    missing = [wanted for at, wanted in enumerate(expected) if not place(at, set())]
    return missing, [match for at, match in enumerate(found) if at not in holder]


def _same(wanted: object, found: object) -> bool:
    """Equal; a boolean is not a number."""
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_same, wanted, found))
    return isinstance(wanted, bool) == isinstance(found, bool) and wanted == found
