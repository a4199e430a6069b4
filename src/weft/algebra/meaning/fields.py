"""The output event of a match: the attributes named in the select list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from weft.algebra.analysis.multiplicity import MANY, most
from weft.algebra.meaning.stream import Happening
from weft.algebra.meaning.valuations import Valuation
from weft.algebra.meaning.values import ValueScope, shown, shown_of
from weft.algebra.predicates import Expression, variables_of
from weft.algebra.query import Query


def fields_of(query: Query, valuation: Valuation, stream: Sequence[Happening]) -> dict[str, object]:
    """The selected attributes: a list where the variable can be bound to several events, else a value or None."""
    selected = [(item.name, attribute) for item in query.selected or () for attribute in item.attributes]
    uses = Counter(attribute for _, attribute in dict.fromkeys(selected))
    fields: dict[str, object] = {}
    for variable, attribute in selected:
        values = [shown_of(stream[i].attributes, attribute) for i in valuation.of(variable)]
        key = attribute if uses[attribute] == 1 else f"{variable}.{attribute}"
        if most(query.pattern, variable) >= MANY:
            fields[key] = values
        else:
            fields[key] = values[0] if values else None
    return fields | {item.name: computed(item.value, valuation, stream) for item in query.computed}


def variables_shown(query: Query) -> set[str]:
    """The variables of which a match shows values, or is ranked by one."""
    values = [item.value for item in query.computed] + ([] if query.top is None else [query.top.value])
    attributes = {item.name for item in query.selected or () if item.attributes}
    return attributes.union(*map(variables_of, values))


def computed(value: Expression, valuation: Valuation, stream: Sequence[Happening]) -> object:
    """A value over the variables of a match."""
    bound = {name: [stream[i].attributes for i in valuation.of(name)] for name in variables_of(value)}
    return shown(value, ValueScope({name: events[0] if events else {} for name, events in bound.items()}, bound))
