"""What `detect` gives: matches one by one as objects, or all of them as a table with the events they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.engines import Run
from weft.errors import UsageError
from weft.runtime.joint_types import fitted, joint_schema
from weft.runtime.matches import Match
from weft.runtime.writing.match_rows import rows_to_matches

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Detection:
    """Matches that are found when they are asked for: iterate, or call one of the methods.

    Events that come from an iterator can be read once, so such a detection can be asked once.
    """

    def __init__(self, run: Run, showing: Callable[[], Run], report: Callable[[Run], None]) -> None:
        self._run = run
        self._showing = showing  # starts a run whose results show events
        self._report = report  # tells what could not be read, after a run
        self._matches: Iterator[Match] | None = None

    def __iter__(self) -> Iterator[Match]:
        """The matches in match order, from the first on; after `next`, those that are left."""
        return self._found() if self._matches is None else self._matches

    def __next__(self) -> Match:
        """The next match."""
        if self._matches is None:
            self._matches = self._found()
        return next(self._matches)

    def _found(self) -> Iterator[Match]:
        for rows in self._run.rows():
            yield from rows_to_matches(rows)
        self._report(self._run)

    def to_arrow(self) -> pa.Table:
        """All matches: query, id, start and end, the events of each variable, the event, positions and bindings."""
        if self._matches is not None:
            raise UsageError("some of these matches have been taken by next(): ask for a table first, or detect again")
        run = self._showing()
        batches = list(run.results())
        self._report(run)
        schema = joint_schema(batch.schema for batch in batches)
        return pa.Table.from_batches([fitted(batch, schema) for batch in batches], schema)

    def to_pandas(self) -> pd.DataFrame:
        """Like `to_arrow`, as a pandas frame."""
        return self.to_arrow().to_pandas(maps_as_pydicts="strict")

    def to_polars(self) -> pl.DataFrame:
        """Like `to_arrow`, as a Polars frame; bindings are lists of names and positions."""
        try:
            import polars
        except ImportError:
            raise UsageError("to_polars() needs Polars: pip install polars") from None
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __repr__(self) -> str:
        return "<matches: iterate, or ask for to_arrow(), to_pandas() or to_polars()>"
