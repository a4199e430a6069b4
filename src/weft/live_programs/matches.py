"""Results of a live program: matches, converted to objects on demand, and deployments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from weft.algebra.query import Program
from weft.drawing.matches import matches_html
from weft.drawing.scene import MOST_MATCHES, scene_of
from weft.errors import UsageError, did_you_mean
from weft.languages.content.lower import Fields
from weft.plan.properties import shows_all_fields
from weft.runtime.data.matches import Match, MatchBatch
from weft.runtime.data.shape import MATCH_SCHEMA
from weft.runtime.live.deployments import Deployed
from weft.runtime.live.pieces import Pieces
from weft.runtime.live.subscriptions import EVERY_TYPE
from weft.runtime.writing.match_rows import rows_to_matches, to_record_batches


@runtime_checkable
class Queue(Protocol):
    """Protocol of a queue that accepts matches without waiting, as `queue.Queue` and `asyncio.Queue` do."""

    def put_nowait(self, item: Any, /) -> object:
        """Append an item, or raise an error."""


@runtime_checkable
class ColumnReceiver(Protocol):
    """Protocol of receivers that take matches as columns, and build rows only if they are needed."""

    def receive_columns(self, found: Sequence[MatchBatch], query_order: Sequence[str], /) -> object:
        """Receive matches."""


class Matches:
    """Matches in match order; converted to objects, or to tables, on access."""

    def __init__(self, found: Pieces, names: Sequence[str]) -> None:
        self._found = found
        self._names = names

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Match]:
        for rows in self.batches():
            yield from rows_to_matches(rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of `to_arrow`, some at a time: there may be more than fit into memory."""
        return chain.from_iterable(to_record_batches(piece, self._names) for piece in self._found)

    def to_arrow(self) -> pa.Table:
        """One row for each match, with the columns that `weft match` writes."""
        return pa.Table.from_batches(self.batches(), MATCH_SCHEMA)

    def _repr_html_(self) -> str:
        first = next(self.batches(), None)
        shown = [] if first is None else first.slice(0, MOST_MATCHES).to_pylist()
        return matches_html(scene_of(shown, len(self)))

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
    """The fields of matches, or of events of the input, of a type, or None if any may be there."""
    if type == EVERY_TYPE:
        return None
    if type not in program.names:
        return _attributes_of(program, type)
    fields: dict[str, Any] = {}
    for query in program.queries:
        if query.name == type and shows_all_fields(query):
            return None
        if query.name == type:
            for name, kind in query.field_kinds.items():
                fields[name] = kind if fields.get(name, kind) == kind else None
    return fields


def _attributes_of(program: Program, type: str) -> Fields | None:
    """The attributes of events of the input: those that are declared, or any."""
    declared = [kind for kind in program.catalog.all_types() if kind.name == type]
    read = {name for query in program.queries for name in query.reads}
    if not declared and type not in read:
        known = {*program.names, *read, *(kind.name for kind in program.catalog.all_types())}
        hint = did_you_mean(type, known) or "nothing is deployed"
        raise UsageError(
            f"no query or rule gives {type!r}, and none reads events of that type: deploy it first; {hint}"
        )
    return {name: kind for one in declared for name, kind in one.attributes} or None
