"""Frozen nodes: what syntax trees, the algebra and plans are made of."""

from __future__ import annotations

import dataclasses
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from functools import cache
from operator import attrgetter
from threading import Lock
from typing import Self


@contextmanager
def growing() -> Iterator[None]:
    """While many nodes are made, the collector of cycles rests: trees have none, and it would look at all of them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Deep(ContextDecorator):
    """Lets calls go deeper while at least one thread is inside; the limit is the interpreter's, not a thread's."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._inside = 0
        self._usual = 0
        self._lock = Lock()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._usual = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._usual, self._calls))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                sys.setrecursionlimit(self._usual)


# Around what walks trees by functions that call themselves: trees may be as high as `languages/limits.py` lets them.
deep = _Deep(calls=10_000)


@cache
def _reader_of(kind: type[Node]) -> Callable[[object], tuple[object, ...]]:
    """What reads the fields of a class of nodes: all at once, which is quicker than one by one."""
    names = tuple(field.name for field in dataclasses.fields(kind))
    return attrgetter(*names) if len(names) > 1 else lambda node: tuple(getattr(node, name) for name in names)


@dataclasses.dataclass(frozen=True)
class Node:
    """An immutable, hashable tree node. Children are the fields that hold nodes or tuples of nodes."""

    def children(self) -> list[Node]:
        """The direct children, in field order."""
        found: list[Node] = []
        for value in _reader_of(type(self))(self):  # type: ignore[arg-type] # mypy takes a node's hash for the class's
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                found += [item for item in value if isinstance(item, Node)]
        return found

    def walk(self, within: type[Node] | None = None) -> Iterator[Node]:
        """This node and all below it, parents first; with `within`, only through nodes of that class."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            below = node.children()
            if within is not None:
                below = [child for child in below if isinstance(child, within)]
            waiting += below[::-1]

    def transform(self, rewrite: Callable[[Node], Node], within: type[Node] | None = None) -> Node:
        """Apply `rewrite` to every node, children first; with `within`, only to nodes of that class."""

        def change(child: Node) -> Node:
            return child.transform(rewrite, within) if within is None or isinstance(child, within) else child

        return rewrite(self.map_children(change))

    def map_children(self, change: Callable[[Node], Node]) -> Self:
        """A copy with each child replaced; this very node when nothing changed."""
        changed: dict[str, object] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            new: object = value
            if isinstance(value, Node):
                new = change(value)
            elif isinstance(value, tuple) and value:
                items = tuple(change(item) if isinstance(item, Node) else item for item in value)
                new = value if all(old is item for old, item in zip(value, items, strict=True)) else items
            if new is not value:
                changed[name] = new
        return dataclasses.replace(self, **changed) if changed else self
