"""Counts as people write them in messages and plans."""

from __future__ import annotations


def plural(count: int, one: str, many: str = "") -> str:
    """A count with its noun: `1 match`, `2 matches`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
