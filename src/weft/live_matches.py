"""What a live program gives back: matches, which are made into objects when asked for, and what was deployed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from weft.algebra.query import Program
from weft.detection import scene_in
from weft.drawing.matches import matches_html
from weft.errors import UsageError, did_you_mean
from weft.languages.content.lower import Fields
from weft.runtime.live.deployments import Deployed
from weft.runtime.live.subscriptions import EVERY_TYPE
from weft.runtime.matches import Match, MatchBatch
from weft.runtime.writing.match_rows import KeyWords, rows_to_matches, to_arrow


@runtime_checkable
class Queue(Protocol):
    """What matches can be put into without waiting, as `queue.Queue` and `asyncio.Queue` are."""

    def put_nowait(self, item: Any, /) -> object:
        """Put it in, or raise an error."""


class Matches:
    """Matches in match order; they are made into objects, or into a table, when asked for."""

    def __init__(self, found: Sequence[MatchBatch], names: Sequence[str], keys: KeyWords | None = None) -> None:
        self._found = found
        self._names = names
        # Keys of events are forgotten later: what is made of them is made now.
        self._table = None if keys is None else to_arrow(found, names, keys)

    def __len__(self) -> int:
        return sum(map(len, self._found))

    def __iter__(self) -> Iterator[Match]:
        return rows_to_matches(self.to_arrow())

    def to_arrow(self) -> pa.Table:
        """One row for each match, with the columns that `weft match` writes."""
        return to_arrow(self._found, self._names) if self._table is None else self._table

    def _repr_html_(self) -> str:
        return matches_html(scene_in(self))

    def __repr__(self) -> str:
        return f"<{len(self):,} match{'es' * (len(self) != 1)}>"


class Deployment:
    """What was deployed at once; it can be removed as one."""

    def __init__(self, program: Program, deployed: Sequence[Deployed]) -> None:
        self.program = program
        self.deployed = deployed

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its queries; a rule's is the type that it defines."""
        return self.program.names

    def __repr__(self) -> str:
        return f"<Deployment of {', '.join(self.names)}>"


def fields_of(program: Program, type: str) -> Fields | None:
    """The fields that matches of a type have in a program; None: any may be there."""
    if type == EVERY_TYPE:
        return None
    if type not in program.names:
        hint = did_you_mean(type, program.names) or "nothing is deployed"
        raise UsageError(f"no query or rule gives {type!r}: deploy it first; {hint}")
    fields: dict[str, Any] = {}
    for query in program.queries:
        if query.name == type:
            for name, kind in query.field_kinds.items():
                fields[name] = kind if fields.get(name, kind) == kind else None
    return fields
