"""Output fields of matches: attributes of the events bound to variables, and computed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.predicates import Attribute
from weft.algebra.query import Computed, Query
from weft.plan.automaton.cea import Automaton
from weft.plan.automaton.determinize import Label
from weft.runtime.data.events import Column, Int64s
from weft.runtime.data.exact import shown
from weft.runtime.operators.automaton.computed import computed_field
from weft.runtime.operators.automaton.found import Found
from weft.runtime.operators.automaton.pending import RANK
from weft.runtime.store.event_buffer import EventBuffer


@dataclass(frozen=True)
class SelectedField:
    """An output field: which attribute of which variable it shows, and whether it is a list."""

    key: str
    variable: str
    attribute: str
    many: bool


def selected_fields(query: Query, automaton: Automaton) -> tuple[SelectedField, ...]:
    """Return the fields of a select list, named `x.a` where two variables show the same attribute."""
    pairs = list(dict.fromkeys((item.name, name) for item in query.selected or () for name in item.attributes))
    names = [name for _, name in pairs]
    return tuple(
        SelectedField(name if names.count(name) == 1 else f"{variable}.{name}", variable, name, many)
        for variable, name in pairs
        for many in [_many(automaton, variable)]
    )


def _many(automaton: Automaton, variable: str) -> bool:
    """Whether two events of one match can be bound to the variable."""
    holders = {number for number, atom in enumerate(automaton.atoms) if atom.own and variable in atom.names}
    for start in holders:
        seen: set[int] = set()
        front = {start}
        while front:
            front = {after for atom in front for after in automaton.near[atom] | automaton.far[atom]} - seen
            seen |= front
        if seen & holders:
            return True
    return False


class Fields:
    """Output fields of a query, computed from stored events, which are kept while a match may include them."""

    def __init__(self, query: Query, fields: Sequence[SelectedField], labels: Sequence[Label]) -> None:
        self._fields = fields
        rank = () if query.top is None else (Computed(RANK, query.top.value),)
        self._computed = (*query.computed, *rank)
        read = {node for item in self._computed for node in item.value.walk() if isinstance(node, Attribute)}
        names = {field.attribute for field in fields} | {attribute.name for attribute in read}
        self.kept = EventBuffer(sorted(names - {"*"}))
        variables = {field.variable for field in fields} | {attribute.variable for attribute in read}
        self._holds = {v: np.array([v in label.holds for label in labels], bool) for v in variables}

    def values(self, found: Found) -> dict[str, pa.Array]:
        """Return the fields of matches."""
        fields = {field.key: self._field(field, found) for field in self._fields}
        read = partial(self._read, found)
        return fields | {item.name: computed_field(item.value, len(found.events), read) for item in self._computed}

    def _read(self, found: Found, attribute: Attribute) -> tuple[Column, Int64s]:
        """Return an attribute of the events bound to its variable, and where those of each match begin."""
        positions, counts = self._bound(attribute.variable, found)
        if attribute.name == "*":
            return Column(), counts
        return self._column(attribute.name, positions), counts

    def _bound(self, variable: str | None, found: Found) -> tuple[Int64s, Int64s]:
        shown = self._holds[variable][found.labels] if len(found.labels) else np.zeros(0, bool)
        return found.positions[shown], np.concatenate(([0], np.cumsum(shown)))[found.offsets]

    def _field(self, field: SelectedField, found: Found) -> pa.Array:
        positions, counts = self._bound(field.variable, found)
        values = shown(self._column(field.attribute, positions), len(positions))
        if field.many:
            return pa.LargeListArray.from_arrays(counts, values)
        has = counts[1:] > counts[:-1]
        return values.take(pa.array(counts[:-1], mask=~has))

    def _column(self, attribute: str, positions: Int64s) -> Column:
        """Return an attribute of events, with texts as plain strings."""
        column = self.kept.column(attribute, positions)
        if column.texts is None or not pa.types.is_dictionary(column.texts.type):
            return column
        return replace(column, texts=pc.cast(column.texts, pa.string()))
