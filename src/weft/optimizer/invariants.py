"""What no rewriting of a composite pattern may change: its variables, its events, its bounds of time, its picks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from weft.algebra.composites import After, Composite, Follow, Overlap, Repeat, Source, Union, Without
from weft.algebra.terms import Elapsed, conjuncts
from weft.tree import Node


def check_unchanged(before: Composite, after: Composite, rule: str) -> None:
    """Raise AssertionError when a rule changed what must stay."""
    assert sorted(before.variables) == sorted(after.variables), f"{rule} changed the variables"
    assert Counter(_fixed(before)) == Counter(_fixed(after)), f"{rule} changed events, bounds of time or picks"


def _fixed(pattern: Composite) -> Iterator[Hashable]:
    for node in pattern.walk(Composite):
        match node:
            case Source():
                yield repr(node)
            case Follow(pick=pick):
                yield "follow", pick
            case Repeat(_, pick, _, _, lengths):
                yield "repeat", pick, lengths
            case Without(when=when):
                yield "without", when
            case After(ticks=ticks):
                yield "after", ticks
            case Union() | Overlap():
                yield type(node).__name__
        for name in ("where", "among"):
            for test in conjuncts(getattr(node, name, ())):
                if _bounds_time(test):
                    yield name, repr(test)


def _bounds_time(test: Node) -> bool:
    return any(isinstance(part, Elapsed) for part in test.walk())
