"""Hypothetical streams in which the chosen events have the same key, to find what else fails if their keys differ.

In one of them they have a key that no other event has; in the others that of some event, their own first. All remaining
attributes stay as they are, so that a condition on an attribute of the key is evaluated on its actual value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from weft.algebra.meaning.stream import Happening

KEY = "\0key"  # an attribute that no event has
NEW = -1
MOST = 200  # keys that are tried


def same_key(
    seen: Sequence[Happening], chosen: Collection[Happening], key_of: Callable[[Happening], object]
) -> Iterator[list[Happening]]:
    """All that is seen, with the key as an attribute KEY: that of chosen events is the same. None is no key."""
    numbers: dict[object, int] = {}
    own = {event.place for event in chosen}
    keys = [None if key is None else numbers.setdefault(key, len(numbers)) for key in map(key_of, seen)]
    theirs = [key for event, key in zip(seen, keys, strict=True) if event.place in own and key is not None]
    for shared in islice(dict.fromkeys((NEW, *theirs, *numbers.values())), MOST):
        yield [_with_key(event, shared if event.place in own else key) for event, key in zip(seen, keys, strict=True)]


def _with_key(event: Happening, key: int | None) -> Happening:
    return event if key is None else replace(event, attributes={**event.attributes, KEY: key})


def twins(world: Sequence[Happening], events: Collection[Happening]) -> list[Happening]:
    """The same events in another world, in their order there."""
    places = {event.place for event in events}
    return [event for event in world if event.place in places]
