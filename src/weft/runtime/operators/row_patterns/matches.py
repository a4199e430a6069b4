"""Matches as flat arrays, and evaluation of expressions over them, for all matches at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.row_patterns import At, RowAggregate, RowField, RowLabel
from weft.kernels.row_patterns.tables import COUNTED, OF, PLACE, ROW, ROWS, Int32s, Int64s
from weft.plan.row_patterns.program import RowProgram
from weft.runtime.operators.row_patterns.aggregates import Spans, aggregated
from weft.runtime.operators.row_patterns.evaluation import broadcast, evaluate
from weft.runtime.operators.row_patterns.layout import RowLayout

Mask = npt.NDArray[np.bool_]


@dataclass
class FoundMatches:
    """Matches with the states of their rows, in flat arrays."""

    layout: RowLayout
    program: RowProgram
    facts: Int64s  # one row of `kernels.row_patterns.tables.MATCH` words for each
    states: Int32s
    _members: dict[tuple[str, ...] | None, tuple[Int64s, Int64s]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def starts(self) -> Int64s:
        """The first row of each match."""
        return self.facts[:, ROW]

    @property
    def sizes(self) -> Int64s:
        """The number of rows of each match."""
        return self.facts[:, ROWS]

    @property
    def places(self) -> Int64s:
        """Where the states of each match begin."""
        return self.facts[:, PLACE]

    @property
    def numbers(self) -> Int64s:
        """The number of each match in its partition."""
        return self.facts[:, COUNTED]

    @cached_property
    def owners(self) -> Int64s:
        """The match of each matched row."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def rows(self) -> Int64s:
        """The row of each matched row."""
        return np.arange(len(self.states)) + np.repeat(self.starts - self.places, self.sizes)

    @cached_property
    def variable_of(self) -> Int64s:
        """The variable of each state."""
        return np.array(self.program.variable_of, np.int64)

    @cached_property
    def shown(self) -> Mask:
        """The matched rows that are not excluded."""
        hidden = np.array(self.program.excluded, np.bool_)
        return ~hidden[self.states] if len(hidden) else np.ones(len(self.states), np.bool_)

    @cached_property
    def labels(self) -> pa.Array:
        """The names of the variables, by number."""
        return pa.array(self.program.variables, pa.string())

    def mapped(self, variables: tuple[str, ...] | None) -> tuple[Int64s, Int64s]:
        """Return the matched rows of some variables, and how many of them precede each matched row."""
        if variables not in self._members:
            chosen = np.array([variables is None or name in variables for name in self.program.variables])
            flags = chosen[self.variable_of[self.states]]
            before = np.zeros(len(flags) + 1, np.int64)
            np.cumsum(flags, out=before[1:])
            self._members[variables] = np.flatnonzero(flags), before
        return self._members[variables]

    def bounds(self) -> tuple[Int64s, Int64s]:
        """Return the first row, and the end, of the partition of each match."""
        of = self.facts[:, OF]
        return self.layout.begins[of], self.layout.ends[of]


@dataclass
class MatchScope:
    """Matches, each up to one of its rows (`upto`, a matched row; before the first for none)."""

    matches: FoundMatches
    owners: Int64s
    upto: Int64s

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.owners)

    def number(self) -> pa.Array:
        """Return the numbers of the matches."""
        return pa.array(self.matches.numbers[self.owners])

    def field(self, name: str) -> pa.Array:
        """Return a column of the current row."""
        return self.at(At(RowField(name)))

    def label(self) -> pa.Array:
        """Return the label of the current row."""
        return self.at(At(RowLabel()))

    def at(self, node: At) -> pa.Array:
        """Return the values of the rows that a navigation refers to."""
        rows, here = self._pointed(node)
        inner = PointedScope(self.matches, self.owners, rows, here)
        return masked(broadcast(evaluate(node.argument, inner), self.size), here)

    def _pointed(self, node: At) -> tuple[Int64s, Mask]:
        """Return the row that each navigation refers to, and whether it exists."""
        found = self.matches
        begin = found.places[self.owners]
        last = begin + found.sizes[self.owners] - 1 if node.final else self.upto
        if node.variables is None:
            flat = begin + node.offset if node.first else last - node.offset
            here = (flat >= begin) & (flat <= last)
        else:
            mapped, before = found.mapped(node.variables)
            low, high = before[begin], before[last + 1]
            k = low + node.offset if node.first else high - 1 - node.offset
            here = (k >= low) & (k < high)
            flat = mapped[np.where(here, k, 0)] if len(mapped) else np.zeros(self.size, np.int64)
        rows = flat - begin + found.starts[self.owners] + node.shift
        if node.shift:
            first, end = found.bounds()
            here = here & (rows >= first[self.owners]) & (rows < end[self.owners])
        return np.where(here, rows, 0), here

    def aggregate(self, node: RowAggregate) -> pa.Array:
        """Return the values of an aggregate over the rows up to `upto`, or over all if it is final."""
        found = self.matches
        mapped, before = found.mapped(node.variables)
        begin = found.places[self.owners]
        last = begin + found.sizes[self.owners] - 1 if node.final else self.upto
        inner = PointedScope(found, found.owners[mapped], found.rows[mapped], None)
        arguments = [broadcast(evaluate(argument, inner), len(mapped)) for argument in node.arguments]
        edges = before[np.append(found.places, len(found.states))]
        return aggregated(node, arguments, Spans(before[begin], before[last + 1], edges))


@dataclass
class PointedScope:
    """One row for each value: the row that a navigation refers to, or one that is aggregated."""

    matches: FoundMatches
    owners: Int64s
    rows: Int64s
    here: Mask | None  # None: all of them

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def field(self, name: str) -> pa.Array:
        """Return a column of these rows."""
        column = self.matches.layout.column(name)
        return column.take(pa.array(self.rows)) if len(column) else pa.nulls(self.size, column.type)

    def label(self) -> pa.Array:
        """Return the labels of these rows, or null for rows outside the match."""
        found = self.matches
        inside = self.rows - found.starts[self.owners]
        here = (inside >= 0) & (inside < found.sizes[self.owners])
        if self.here is not None:
            here &= self.here
        if not len(found.states):
            return pa.nulls(self.size, pa.string())
        flat = np.where(here, found.places[self.owners] + inside, 0)
        variables = found.variable_of[found.states[flat]]
        return masked(found.labels.take(pa.array(variables)), here)

    def number(self) -> pa.Array:
        """Return the numbers of the matches."""
        return pa.array(self.matches.numbers[self.owners])

    def at(self, node: At) -> pa.Array:
        """Raise a TypeError: the parser rejects a navigation inside another one."""
        raise TypeError(node)

    def aggregate(self, node: RowAggregate) -> pa.Array:
        """Raise a TypeError: the parser rejects an aggregate inside another one."""
        raise TypeError(node)


def masked(values: pa.Array, here: Mask) -> pa.Array:
    """Replace values by null where the mask is false."""
    return values if here.all() else pc.if_else(pa.array(here), values, pa.scalar(None, values.type))
