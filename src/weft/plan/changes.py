"""Comparison of a program with its replacement: which queries keep their state, and which start anew.

A query is kept if it is unchanged and all queries that define its input are kept, too. Rules see each other's events
regardless of when they were deployed, so a rule is kept even though rules that feed it are added or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from weft.algebra.query import AnyQuery
from weft.algebra.rules import Rule


@dataclass(frozen=True)
class Change:
    """Places of queries in the old program and in the new one; `reasons` say why queries of the new one begin anew."""

    old: tuple[AnyQuery, ...]
    new: tuple[AnyQuery, ...]
    stays: tuple[tuple[int, int], ...]  # also those that have another name now
    reasons: tuple[tuple[int, str], ...]

    @property
    def gone(self) -> tuple[int, ...]:
        """The places of queries of the old program that end."""
        staying = {place for place, _ in self.stays}
        return tuple(place for place in range(len(self.old)) if place not in staying)

    @property
    def begins(self) -> tuple[int, ...]:
        """The places of queries of the new program that start without state."""
        return tuple(place for place, _ in self.reasons)

    @property
    def renamed(self) -> dict[str, str]:
        """New names by old ones."""
        pairs = ((self.old[before].name, self.new[after].name) for before, after in self.stays)
        return {before: after for before, after in pairs if before != after}

    @property
    def is_none(self) -> bool:
        """Whether the programs find the same under the same names."""
        return not self.gone and not self.reasons and not self.renamed

    def __str__(self) -> str:
        """Describe each query in one line."""
        lines = []
        for before, after in self.stays:
            name, was = self.new[after].name, self.old[before].name
            lines.append(f"{name}: keeps its state" + (f" (it was called {was})" if was != name else ""))
        lines += [f"{self.new[place].name}: begins anew, {reason}" for place, reason in self.reasons]
        known = {query.name for query in self.new}
        ends = dict.fromkeys(self.old[place].name for place in self.gone)
        lines += [f"{name}: ends" for name in ends if name not in known]
        return "\n".join(lines)


def changed(old: Sequence[AnyQuery], new: Sequence[AnyQuery]) -> Change:
    """Compare a new program with an old one."""
    pairs = _same(old, new)
    pairs |= _renamed(old, new, pairs)
    reasons: dict[int, str] = {}
    while True:
        follows = _followers(old, new, pairs)
        if not follows:
            break
        for place, reason in follows.items():
            del pairs[place]
            reasons[place] = reason
    known = {query.name for query in old}
    for place, query in enumerate(new):
        if place not in pairs and place not in reasons:
            reasons[place] = "it has changed" if query.name in known else "it is new"
    stays = tuple(sorted((before, after) for after, before in pairs.items()))
    return Change(tuple(old), tuple(new), stays, tuple(sorted(reasons.items())))


def _same(old: Sequence[AnyQuery], new: Sequence[AnyQuery]) -> dict[int, int]:
    """Return the place in the old program of each query of the new one that is the same."""
    left = {place: _bare(query) for place, query in enumerate(old)}
    found: dict[int, int] = {}
    for place, query in enumerate(new):
        bare = _bare(query)
        before = next((at for at, other in left.items() if other == bare), None)
        if before is not None:
            found[place] = before
            del left[before]
    return found


def _bare(query: AnyQuery) -> AnyQuery:
    """Return the query without the number that it has among the rules of its type."""
    return replace(query, number=0) if isinstance(query, Rule) else query


def _renamed(old: Sequence[AnyQuery], new: Sequence[AnyQuery], same: dict[int, int]) -> dict[int, int]:
    """Match queries that were renamed. Queries whose output is read by others are identified by name and excluded."""
    read = {type_ for query in (*old, *new) for type_ in query.reads}
    names = {query.name for query in old}
    left = [at for at in range(len(old)) if at not in same.values()]
    found: dict[int, int] = {}
    for place, query in enumerate(new):
        if place in same or query.is_rule or query.name in read or query.name in names:
            continue
        for at in left:
            if old[at].name not in read and _is_called_otherwise(old[at], query):
                found[place] = at
                left.remove(at)
                break
    return found


def _is_called_otherwise(one: AnyQuery, other: AnyQuery) -> bool:
    return type(one) is type(other) and replace(one, name=other.name) == other


def _followers(old: Sequence[AnyQuery], new: Sequence[AnyQuery], pairs: dict[int, int]) -> dict[int, str]:
    """Return the queries that cannot be kept since their input is not, and why."""
    staying = set(pairs.values())
    ends = [query for at, query in enumerate(old) if at not in staying]
    begins = [query for at, query in enumerate(new) if at not in pairs]
    found: dict[int, str] = {}
    for place in pairs:
        maker = _foreign(new[place], (*ends, *begins))
        if maker is not None:
            found[place] = f"since it reads {maker!r}, which does not stay"
    return found


def _foreign(reader: AnyQuery, makers: Iterable[AnyQuery]) -> str | None:
    """The type that one of these defines for a query, unless both are rules."""
    for maker in makers:
        if maker.defines in reader.reads and not (maker.is_rule and reader.is_rule):
            return maker.defines
    return None
