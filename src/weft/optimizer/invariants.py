"""Invariants of rewriting: variables, events, conditions, bounds and picks of patterns, and all else of queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import fields, replace
from typing import get_args

from weft.algebra.analysis.normal_form import equality_of
from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Overlap,
    Without,
)
from weft.algebra.query import AnyQuery
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.algebra.terms import Elapsed, conjuncts
from weft.errors import InternalError
from weft.tree import Node


def check_unchanged(before: Composite, after: Composite, rule: str) -> None:
    """Raise InternalError when a rule changed what must stay."""
    _require(sorted(before.variables) == sorted(after.variables), rule, "changed the variables")
    _require(Counter(_fixed(before)) == Counter(_fixed(after)), rule, "changed events, bounds of time or picks")
    _require(_asked(before) == _asked(after), rule, "changed conditions")


def check_query(before: AnyQuery, after: AnyQuery, rule: str) -> None:
    """Raise InternalError when a rule changed what a query gives: its name, outputs, window, policies, variables."""
    _require(type(before) is type(after), rule, "made something else of a query")
    kept = [{name: value for name, value in vars(one).items() if name in _GIVEN} for one in (before, after)]
    _require(kept[0] == kept[1], rule, f"changed what {before.name!r} gives")
    _require(before.shown_variables == after.shown_variables, rule, f"changed the variables of {before.name!r}")
    if isinstance(before, Rule) and isinstance(after, Rule):
        _require(Counter(before.lookbacks) == Counter(after.lookbacks), rule, f"changed look-backs of {before.name!r}")
    if isinstance(before, SituationQuery) and isinstance(after, SituationQuery):
        same = replace(after.situation, split=before.situation.split, shared=before.situation.shared)
        _require(same == before.situation, rule, "changed policies")


def _require(holds: bool, rule: str, what: str) -> None:
    if not holds:
        raise InternalError(f"the optimizer's rule {rule} {what}: please report it, and run with optimize=False")


_GIVEN = {field.name for kind in get_args(AnyQuery) for field in fields(kind)} - {
    *("pattern", "situation", "lookbacks", "order", "spans")
}


def _fixed(pattern: Composite) -> Iterator[Hashable]:
    for node in pattern.walk(Composite):
        match node:
            case CompositeEvent():
                yield repr(node)
            case CompositeSequence(pick=pick):
                yield "sequence", pick
            case CompositeRepeat(_, pick, _, _, lengths):
                yield "repeat", pick, lengths
            case Without(when=when):
                yield "without", when
            case After(ticks=ticks):
                yield "after", ticks
            case CompositeUnion() | Overlap():
                yield type(node).__name__
        for name in ("where", "among"):
            for test in conjuncts(getattr(node, name, ())):
                if _bounds_time(test):
                    yield name, repr(test)


def _asked(pattern: Composite) -> frozenset[str]:
    """The conditions of all operators, but for equalities of attributes: a key may tie other events that have it."""
    lists = (getattr(node, name, ()) for node in pattern.walk(Composite) for name in ("where", "among"))
    return frozenset(repr(test) for tests in lists for test in conjuncts(tests) if equality_of(test) is None)


def _bounds_time(test: Node) -> bool:
    return any(isinstance(part, Elapsed) for part in test.walk())
