"""Values and conditions that read more than the current event: the preceding occurrence, all earlier events, durations.

They occur inside the operators of `weft.algebra.composites`, whose docstrings define the preceding occurrence and the
current event for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.algebra.predicates import And, Attribute, Expression, Predicate
from weft.tree import Node


@dataclass(frozen=True)
class Previous(Expression):
    """The attribute of the last event bound to the variable in the preceding occurrence.

    When the preceding occurrence does not bind the variable, the enclosing comparison is true.
    """

    attribute: Attribute


@dataclass(frozen=True)
class Every(Expression):
    """The attribute of each event bound to the variable: the comparison must hold for all of them.

    It is true when there is none. Inside a repetition the events are those of the run so far, without the
    candidate; elsewhere they are all bound events.
    """

    attribute: Attribute


@dataclass(frozen=True)
class Elapsed(Expression):
    """The ticks from the start of the first event bound to `first` to the end of the last bound to `last`.

    None means the whole composite (in a repetition: for the candidate). Missing when a variable is unbound.
    """

    first: str | None = None
    last: str | None = None


@dataclass(frozen=True)
class Contains(Predicate):
    """The operand is a text and has the part, a text too, in it."""

    operand: Expression
    part: Expression


def mentioned(node: Node) -> frozenset[str]:
    """The variables a condition or value mentions."""
    names: set[str | None] = set()
    for part in node.walk():
        if isinstance(part, Attribute):
            names.add(part.variable)
        elif isinstance(part, Elapsed):
            names |= {part.first, part.last}
    return frozenset(name for name in names if name is not None)


def require_distinct(names: Sequence[str]) -> None:
    """Refuse a node in which a name stands twice."""
    if len(set(names)) < len(names):
        repeated = sorted(name for name, times in Counter(names).items() if times > 1)
        raise ValueError(f"used twice: {', '.join(repeated)}")


def require_known(needed: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a node that needs variables which nothing binds."""
    unknown = sorted(set(needed).difference(known))
    if unknown:
        raise ValueError(f"not bound here: {', '.join(unknown)}")


def mentioned_in(nodes: Iterable[Node]) -> frozenset[str]:
    """The variables that some of the conditions or values mention."""
    return frozenset().union(*map(mentioned, nodes))


def looks_back(node: Node) -> frozenset[str]:
    """The variables whose earlier events a condition reads, by `Previous` or `Every`."""
    found = (part.attribute.variable for part in node.walk() if isinstance(part, Previous | Every))
    return frozenset(name for name in found if name is not None)


def conjuncts(conditions: Iterable[Predicate]) -> tuple[Predicate, ...]:
    """The conditions with every conjunction taken apart, in order."""
    parts: list[Predicate] = []
    for condition in conditions:
        parts += conjuncts(condition.operands) if isinstance(condition, And) else (condition,)
    return tuple(parts)
