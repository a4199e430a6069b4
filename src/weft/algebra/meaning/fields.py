"""The output event of a match: the attributes named in the select list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from weft.algebra.meaning.stream import Happening
from weft.algebra.meaning.valuations import Valuation
from weft.algebra.meaning.values import shown_of
from weft.algebra.patterns import Bind, Correlate, Either, Event, Other, Pattern, Repeat, Where
from weft.algebra.patterns import Sequence as Sequencing
from weft.algebra.query import Query

MANY = 2


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
    return fields


def most(pattern: Pattern, variable: str | None) -> int:
    """How many events the variable (None: any at all) can be bound to at most; `MANY` stands for more than one."""
    match pattern:
        case Event():
            return int(variable is None or variable in pattern.names)
        case Other():
            return 0
        case Bind(inner, name):
            return most(inner, None if name == variable else variable)
        case Sequencing(left, right):
            return min(MANY, most(left, variable) + most(right, variable))
        case Repeat(inner):
            return MANY if most(inner, variable) else 0
        case Either(left, right):
            return max(most(left, variable), most(right, variable))
        case Where(inner) | Correlate(inner):
            return most(inner, variable)
    raise TypeError(f"not a pattern: {pattern!r}")
