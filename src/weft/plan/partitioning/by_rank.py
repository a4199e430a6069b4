"""Strategy `rank`."""

from __future__ import annotations

from weft.plan.partitioning.splits import Family, Refused, Split


def by_rank(family: Family) -> Split | Refused:
    """Not offered yet."""
    return Refused("it is not offered yet")
