"""The partitions of a context, opened and closed as events arrive and time passes."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from weft.algebra.contexts import Context, FromFor, FromUntil, Whole, Windows
from weft.runtime.situations.happenings import Happening, Key, tupled
from weft.runtime.situations.search import Searcher, SlotRows

Name = tuple[Any, ...]  # of a partition among those that are open


class Partition:
    """Events that are looked at together, by slot. One that does not close by time has no end."""

    __slots__ = ("end", "first_end", "first_place", "key", "name", "origin", "slots", "start", "taken")

    def __init__(self, name: Name, key: Key, origin: int, start: int, end: int | None, slots: list[SlotRows]) -> None:
        self.name = name
        self.key = key
        self.origin = origin
        self.start = start
        self.end = end
        self.slots = slots
        self.taken = False  # it has given its single set, or is not absent any more
        self.first_end: int | None = None  # of the first event that was kept
        self.first_place = -1


class Partitions:
    """All open partitions of one situation."""

    def __init__(self, searcher: Searcher, counts_empty: bool) -> None:
        self._searcher = searcher
        self._context: Context = searcher.situation.context
        self._counts_empty = counts_empty and isinstance(self._context, Windows)
        # Of windows that may be empty: by key, in order of appearance, the first that has not closed, and the origin.
        self.keys: dict[Key, tuple[int, int]] = {}
        self.open: dict[Name, Partition] = {}
        self.by_key: dict[Key, dict[Name, Partition]] = {}  # of contexts that events open
        self._timers: list[tuple[int, int, Name]] = []
        self._timer = 0

    # -- events ---------------------------------------------------------------------------------

    def entered(self, event: Happening) -> Iterator[Partition]:
        """The partitions that an event is in, opened if need be. Those that it closes are in `closed_by`."""
        context = self._context
        key = event.key(context.by)
        if key is None:
            return
        match context:
            case Whole():
                yield self.open.get((key,)) or self._opened((key,), key, event, event.start, None)
            case Windows():
                if self._counts_empty and key not in self.keys:
                    first = (event.start - context.length) // context.step + 1
                    self.keys[key] = first, _origin(event)
                for number in window_numbers(context, event.end, event.start):
                    start = number * context.step
                    name = (key, number)
                    yield self.open.get(name) or self._opened(name, key, event, start, start + context.length)
            case FromUntil(opener=opener, closer=closer):
                if event.type == opener and event.type != closer:
                    self._opened((key, event.place), key, event, event.start, None)
                yield from list(self.by_key.get(key, {}).values())
            case FromFor(opener=opener, length=length):
                if event.type == opener:
                    self._opened((key, event.place), key, event, event.start, event.start + length)
                for part in list(self.by_key.get(key, {}).values()):
                    if part.end is not None and event.end < part.end:
                        yield part

    def closed_by(self, event: Happening) -> Iterator[Partition]:
        """The partitions that an event closes, with their ends; after that, the one it opens is entered."""
        context = self._context
        if not isinstance(context, FromUntil) or event.type != context.closer:
            return
        key = event.key(context.by)
        if key is not None:
            for part in list(self.by_key.get(key, {}).values()):
                part.end = event.end
                self._forget(part)
                yield part

    def reopened_by(self, event: Happening) -> Partition | None:
        """The partition that a closing event opens."""
        context = self._context
        if not isinstance(context, FromUntil) or not event.type == context.closer == context.opener:
            return None
        key = event.key(context.by)
        return None if key is None else self._opened((key, event.place), key, event, event.start, None)

    # -- time -----------------------------------------------------------------------------------

    def closed_at(self, time: int) -> Iterator[Partition]:
        """The partitions whose end has come when all further events end at this time or later."""
        while self._timers and self._timers[0][0] <= time:
            part = self.open.get(heapq.heappop(self._timers)[2])
            if part is not None:
                self._forget(part)
                yield part
        if self._counts_empty:
            assert isinstance(self._context, Windows)
            yield from self._windows_until((time - self._context.length) // self._context.step)

    def closed_last(self, last: int) -> Iterator[Partition]:
        """The partitions that close with the end of the input."""
        if self._counts_empty:
            assert isinstance(self._context, Windows)
            yield from self._windows_until(last // self._context.step)
        for part in list(self.open.values()):
            if isinstance(self._context, Whole):
                part.end = last
            if part.end is not None:
                self._forget(part)
                yield part

    def _windows_until(self, number: int) -> Iterator[Partition]:
        """The windows up to a number, of all keys, those without events too."""
        assert isinstance(self._context, Windows)
        for key, (first, origin) in self.keys.items():
            for at in range(first, number + 1):
                part = self.open.pop((key, at), None)
                start = at * self._context.step
                yield part or Partition((key, at), key, origin, start, start + self._context.length, [])
            self.keys[key] = max(first, number + 1), origin

    def oldest(self) -> tuple[int | None, int | None]:
        """The least end and the least place of an event in an open partition."""
        kept = [part for part in self.open.values() if part.first_end is not None]
        ends = [part.first_end for part in kept if part.first_end is not None]
        return min(ends, default=None), min((part.first_place for part in kept), default=None)

    # -- opening and closing --------------------------------------------------------------------

    def _opened(self, name: Name, key: Key, event: Happening, start: int, end: int | None) -> Partition:
        origin = self.keys[key][1] if self._counts_empty else _origin(event)
        part = Partition(name, key, origin, start, end, self.new_slots())
        self.add(part)
        return part

    def add(self, part: Partition) -> None:
        """Count a partition among the open ones."""
        self.open[part.name] = part
        if isinstance(self._context, FromUntil | FromFor):
            self.by_key.setdefault(part.key, {})[part.name] = part
        if part.end is not None and not self._counts_empty:
            self._timer += 1
            heapq.heappush(self._timers, (part.end, self._timer, part.name))

    def new_slots(self) -> list[SlotRows]:
        """Slots without events."""
        return [SlotRows(names) for names in self._searcher.indexed]

    def _forget(self, part: Partition) -> None:
        del self.open[part.name]
        if part.key in self.by_key:
            del self.by_key[part.key][part.name]
            if not self.by_key[part.key]:
                del self.by_key[part.key]

    # -- state ----------------------------------------------------------------------------------

    def to_json(self, events: dict[int, Happening]) -> dict[str, Any]:
        """As plain values; the events go into the given table."""
        parts = []
        for part in self.open.values():
            places = []
            for slot in part.slots:
                events.update((row.place, row) for row in slot.rows)
                places.append([row.place for row in slot.rows])
            times = [part.origin, part.start, part.end, part.taken, part.first_end, part.first_place]
            parts.append([part.name, part.key, places, *times])
        return {"keys": list(self.keys.items()), "parts": parts}

    def load(self, saved: dict[str, Any], events: dict[int, Happening]) -> None:
        """Go on from `to_json`."""
        self.keys = {tupled(key): (first, origin) for key, (first, origin) in saved["keys"]}
        for name, key, places, origin, start, end, taken, first_end, first_place in saved["parts"]:
            part = Partition(tupled(name), tupled(key), origin, start, end, self.new_slots())
            part.taken, part.first_end, part.first_place = taken, first_end, first_place
            for slot, own in zip(part.slots, places, strict=True):
                for place in own:
                    slot.add(events[place])
            self.add(part)


def window_numbers(context: Windows, above: int, low: int) -> range:
    """The numbers of the windows that end above one time and start at or below another."""
    return range((above - context.length) // context.step + 1, low // context.step + 1)


def _origin(event: Happening) -> int:
    return event.positions[0] if event.positions else -1
