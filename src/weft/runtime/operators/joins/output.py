"""Build the matches of queries from occurrences: bindings and output fields."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from weft.algebra.composites import After, Composite, CompositeRepeat
from weft.algebra.predicates import Attribute
from weft.algebra.terms import Elapsed
from weft.kernels.events import stored
from weft.kernels.joins import occurrences
from weft.plan.graph import GraphOutput
from weft.runtime.data.events import SHOWN, Column, Int64s
from weft.runtime.data.exact import shown
from weft.runtime.data.matches import Labels
from weft.runtime.operators.fields import Fields, column_name
from weft.runtime.operators.joins.occurrence_store import OccurrenceStore
from weft.runtime.store.event_buffer import EventBuffer


class QueryOutput:
    """State of the output of one query: how far its node's rows are reported, and what it reports."""

    def __init__(self, output: GraphOutput) -> None:
        self.query = output.query
        self.node = output.node
        self.names = tuple((name,) for name in output.variables)
        self.fields = Fields(output.query.fields)
        self.numbers = {name: number for number, name in enumerate(output.variables)}
        self.taken = 0
        self.before: int | None = None  # emit only matches with an event before this position, or all if None
        self.channel = output.channel
        # The bindings reported so far, where the same ones can be found again.
        comes_again = self.channel is None and _binds_again(output.query.pattern)
        self.reported: dict[bytes, None] | None = {} if comes_again else None

    @property
    def is_plain(self) -> bool:
        """Whether each occurrence is a match."""
        return self.channel is None and self.reported is None and self.before is None


def _binds_again(pattern: Composite) -> bool:
    """Whether two occurrences with different times can bind the same events: runs of runs with an added time."""
    runs = [node for node in pattern.walk() if isinstance(node, CompositeRepeat)]
    return any(
        any(isinstance(part, CompositeRepeat) for part in run.pattern.walk())
        and any(isinstance(part, After) for part in run.pattern.walk())
        for run in runs
    )


def fields_of(output: QueryOutput, rows: Int64s, row_store: OccurrenceStore, kept: EventBuffer) -> dict[str, pa.Array]:
    """Return the output fields of a query for rows."""
    if not output.fields:
        return {}
    positions: dict[str, Int64s] = {}
    for variable in {variable for variable, _ in output.fields.read}:
        events = _bound(row_store, rows, output.numbers[variable], occurrences.LATER)
        positions[variable] = np.where(events < 0, -1, row_store.event_times(events, stored.POSITION))
    columns = {
        column_name(Attribute(name, variable)): kept.column(name, positions[variable])
        for variable, name in output.fields.read
    }
    for term in output.fields.elapsed:
        columns[column_name(term)] = _elapsed(row_store, term, rows, output.numbers)
    return output.fields.values(columns, len(rows))


def all_fields(output: QueryOutput, found: tuple[Int64s, Int64s, Labels], kept: EventBuffer) -> dict[str, pa.Array]:
    """Return all attributes of all events of matches, given as offsets, positions and labels.

    The field of a repeated variable is the list of the values of its events, of any other the value of its only event.
    """
    offsets, positions, labels = found
    count, fields = len(offsets) - 1, dict[str, pa.Array]()
    matches, names = np.repeat(np.arange(count), np.diff(offsets)), kept.fields()
    for variable, number in output.numbers.items():
        own = labels == number
        events, sizes = positions[own], np.bincount(matches[own], minlength=count)
        ends = np.cumsum(sizes)
        for name in names if len(events) else ():
            values = shown(_plain(kept.column(SHOWN + name, events)), len(events))
            if variable in output.query.repeated:
                fields[f"{variable}.{name}"] = _lists(values, sizes)
            else:
                fields[f"{variable}.{name}"] = values.take(pa.array(ends - 1, mask=sizes == 0))
    return fields


def _plain(column: Column) -> Column:
    """Decode dictionary-encoded texts of a column."""
    if column.texts is None or not pa.types.is_dictionary(column.texts.type):
        return column
    return column.map(lambda array: array.dictionary_decode() if pa.types.is_dictionary(array.type) else array)


def _lists(values: pa.Array, sizes: Int64s) -> pa.Array:
    """Group values into lists of these sizes; null where all values of a list are missing."""
    is_union = pa.types.is_union(values.type)
    valid = [value is not None for value in values.to_pylist()] if is_union else np.asarray(values.is_valid())
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    before = np.concatenate(([0], np.cumsum(valid)))
    has = before[offsets[1:]] > before[offsets[:-1]]
    return pa.LargeListArray.from_arrays(pa.array(offsets), values, mask=pa.array(~has))


def _elapsed(row_store: OccurrenceStore, term: Elapsed, rows: Int64s, numbers: Mapping[str, int]) -> Column:
    """Return the ticks from the start of the first event of a variable to the end of the last of another."""
    starts, ends = row_store.times(rows, occurrences.START), row_store.times(rows, occurrences.END)
    unbound = np.zeros(len(rows), bool)
    if term.first is not None:
        events = _bound(row_store, rows, numbers[term.first], occurrences.LEAST)
        starts, unbound = row_store.event_times(events, stored.EVENT_START), unbound | (events < 0)
    if term.last is not None:
        events = _bound(row_store, rows, numbers[term.last], occurrences.GREATEST)
        ends, unbound = row_store.event_times(events, stored.EVENT_END), unbound | (events < 0)
    return Column(numbers=pa.array(ends - starts, mask=unbound))


def _bound(row_store: OccurrenceStore, rows: Int64s, variable: int, which: int) -> Int64s:
    """Return one of the events that each row binds to a variable, or -1."""
    found: Int64s = occurrences.variable_events(row_store.rows, row_store.events, rows, variable, which)
    return found
