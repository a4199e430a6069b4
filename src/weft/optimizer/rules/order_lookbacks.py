"""The rule `order_lookbacks`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.algebra.rules import LookBack, Rule, mentioned
from weft.tree import Node


def order_lookbacks(node: Node, order: Sequence[str], free: bool = True) -> Node:
    """Reorder the look-backs of a rule.

    Before: `each A() within 9 from T and last B() within 9 from T`. After, for the order `B, A`: `last B …, each A …`.

    Side condition: each look-back comes after those whose events it reads (in conditions, as the anchor of its window,
    in an absence). Those that may take several events keep their relative order unless they are `free`: no query
    reads what the rule defines, and they are of different types. Sound because the events a look-back takes depend only
    on the events that it reads, since consumption comes after all firings; a rule fires for each combination.
    Firings are ordered by the events taken, look-back by look-back: only those that take several affect this order.
    """
    if not isinstance(node, Rule) or sorted(order) != sorted(step.variable for step in node.lookbacks):
        return node
    by_name = {step.variable: step for step in node.lookbacks}
    lookbacks = tuple(by_name[name] for name in order)
    if lookbacks == node.lookbacks or not is_allowed(node, order, free):
        return node
    return replace(node, lookbacks=lookbacks, order=node.order or node.variables)


def is_allowed(rule: Rule, order: Sequence[str], free: bool) -> bool:
    """Whether look-backs may be taken in this order."""
    place = {name: at for at, name in enumerate(order)}
    for step in rule.lookbacks:
        if any(place[name] > place[step.variable] for name in needs(step) if name in place):
            return False
    several = [step for step in rule.lookbacks if step.count != 1]
    if free and len({step.events.type for step in several}) == len(several):
        return True
    places = [place[step.variable] for step in several]
    return places == sorted(places)


def needs(step: LookBack) -> frozenset[str]:
    """The variables that must be bound before a look-back."""
    return mentioned(step) - {step.variable}
