"""What was left out within limits: counters by name (`shed q.a`, `sampled out of q`, `dropped of q`) → by query, text.

The counters `shed`, `sampled` and `dropped` are of all queries together: an event that fits several is shed once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

# How something is left out: what its counters begin with, and what it is called.
WAYS = {"shed": ("shed ", "shed"), "sampled": ("sampled out of ", "sampled out"), "dropped": ("dropped of ", "dropped")}


def counter_name(way: str, query: str, step: str = "") -> str:
    """What is counted of a query, and of a step of its pattern, is called."""
    return f"{WAYS[way][0]}{query}.{step}" if step else f"{WAYS[way][0]}{query}"


class LeftOut(NamedTuple):
    """So much of a query, and of events at which step of its pattern."""

    way: str
    query: str
    step: str
    number: int

    @property
    def place(self) -> str:
        """The query, and the step if there is one."""
        return f"{self.query}.{self.step}" if self.step else self.query

    def __str__(self) -> str:
        """Return the text of a report about a query."""
        at = f" as {self.step}" if self.step else ""
        return f"{self.number:,} {WAYS[self.way][1]}{at}"


def by_query(counters: Mapping[str, int], queries: Collection[str]) -> Iterator[LeftOut]:
    """The counters of these queries. Names of queries and steps may have dots, so that both must be known."""
    longest_first = sorted(queries, key=len, reverse=True)
    for way, (beginning, _) in WAYS.items():
        for name, count in counters.items():
            rest = name.removeprefix(beginning) if name.startswith(beginning) else ""
            query = next((own for own in longest_first if rest == own or rest.startswith(f"{own}.")), None)
            if query is not None:
                yield LeftOut(way, query, rest[len(query) + 1 :], count)


def of_these(counters: Mapping[str, int], queries: Collection[str]) -> dict[str, int]:
    """The counters of all queries together, and those of these queries."""
    whole = {way: counters[way] for way in WAYS if counters.get(way)}
    return whole | {counter_name(one.way, one.query, one.step): one.number for one in by_query(counters, queries)}


def in_words(counters: Mapping[str, int], queries: Collection[str]) -> list[str]:
    """`12 sampled out (fire 12)` for each way in which something was left out."""
    found = list(by_query(counters, queries))
    lines = []
    for way, (_, word) in WAYS.items():
        own = [f"{one.place} {one.number:,}" for one in found if one.way == way]
        if counters.get(way):
            lines.append(f"{counters[way]:,} {word}" + (f" ({', '.join(own)})" if own else ""))
    return lines
