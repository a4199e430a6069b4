"""What the matches of a query show: the fields of their events."""

from __future__ import annotations

from weft.algebra.query import AnyQuery, Query
from weft.algebra.rules import Rule
from weft.schema import Kind


def field_kinds(query: AnyQuery) -> dict[str, Kind | None]:
    """The fields of a query's matches, each with its kind where the query says it."""
    if isinstance(query, Rule):
        return {field.name: field.kind for field in query.fields}
    if not isinstance(query, Query):
        return dict.fromkeys(field.name for field in query.fields)
    shown = dict.fromkeys((item.name, name) for item in query.selected or () for name in item.attributes)
    names = [name for _, name in shown]
    return dict.fromkeys(name if names.count(name) == 1 else f"{variable}.{name}" for variable, name in shown)
