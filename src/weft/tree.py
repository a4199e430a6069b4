"""Frozen nodes: what syntax trees, the algebra and plans are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Self


@dataclasses.dataclass(frozen=True)
class Node:
    """An immutable, hashable tree node. Children are the fields that hold nodes or tuples of nodes."""

    def children(self) -> Iterator[Node]:
        """The direct children, in field order."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                yield from (item for item in value if isinstance(item, Node))

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children():
            yield from child.walk()

    def transform(self, rewrite: Callable[[Node], Node]) -> Node:
        """Apply `rewrite` to every node, children first."""
        return rewrite(self.map_children(lambda child: child.transform(rewrite)))

    def map_children(self, change: Callable[[Node], Node]) -> Self:
        """A copy with each child replaced; this very node when nothing changed."""
        changed: dict[str, object] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            new: object = value
            if isinstance(value, Node):
                new = change(value)
            elif isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
                new = tuple(change(item) if isinstance(item, Node) else item for item in value)
            if new is not value and new != value:
                changed[field.name] = new
        return dataclasses.replace(self, **changed) if changed else self
