"""How many events of a match a variable can be bound to."""

from __future__ import annotations

from weft.algebra.chains import Chain, Link
from weft.algebra.patterns import Bind, Correlate, Event, Filter, Maybe, Other, Pattern, Repeat, Sequence, Union

MANY = 2  # more than one


def most(pattern: Pattern, variable: str | None) -> int:
    """The largest number of events the variable can be bound to; `MANY` means more than one.

    Without a variable, count the events of the whole pattern.
    """
    match pattern:
        case Event():
            return int(variable is None or variable in pattern.names)
        case Other():
            return 0
        case Bind(inner, name):
            return most(inner, None if name == variable else variable)
        case Sequence(left, right):
            return min(MANY, most(left, variable) + most(right, variable))
        case Repeat(inner):
            return MANY if most(inner, variable) else 0
        case Union(left, right):
            return max(most(left, variable), most(right, variable))
        case Filter(inner) | Correlate(inner) | Maybe(inner):
            return most(inner, variable)
        case Chain(links):
            return min(MANY, sum(_most_of_link(link, variable) for link in links))
    raise TypeError(f"not a pattern: {pattern!r}")


def _most_of_link(link: Link, variable: str | None) -> int:
    if link.group:
        once = sum(_most_of_link(part, variable) for part in link.group)
    else:
        once = int(not link.negated and variable in (None, link.name))
    return once if link.most == 1 else MANY * min(1, once)
