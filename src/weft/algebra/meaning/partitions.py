"""The partitions of a context over a finite stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.algebra.contexts import TOLD_SINGLY, Context, Forgetting, FromFor, FromUntil, Whole, Windows
from weft.algebra.meaning.match import Key
from weft.algebra.meaning.stream import Happening
from weft.algebra.meaning.values import Value, attribute_of, family


@dataclass(frozen=True)
class Partition:
    """Events that are looked at together. One that does not close has no end.

    `origin` tells it apart from other partitions of the same context that have the same times.
    """

    start: int
    end: int | None
    key: Key
    origin: int
    events: tuple[Happening, ...]


def partitions(context: Context, seen: Sequence[Happening], last: int) -> list[Partition]:
    """All partitions, of all keys, without windows in which no event is; `last` is the last time of the input."""
    found = _by_key(context, seen).items()
    return [part for key, events in found for part in _of_key(context, key, events, last)]


def _by_key(context: Context, seen: Sequence[Happening]) -> dict[Key, list[Happening]]:
    """The events of each key."""
    by_key: defaultdict[Key, list[Happening]] = defaultdict(list)
    for event in seen:
        key = key_of(event, context.by)
        if key is not None:
            by_key[key].append(event)
    return by_key


def key_of(event: Happening, attributes: Sequence[str]) -> Key | None:
    """The kinds and values of attributes, None when one is missing."""
    values = [attribute_of(event.attributes, name) for name in attributes]
    present = [(family(value), value) for value in values if value is not None]
    return tuple(present) if len(present) == len(values) else None


def key_values(attributes: Sequence[str], key: Key) -> Mapping[str, Value]:
    """A key as attributes."""
    return {name: value for name, (_, value) in zip(attributes, key, strict=True)}


def _of_key(context: Context, key: Key, events: Sequence[Happening], last: int) -> Iterator[Partition]:
    match context:
        case Whole():
            yield Partition(events[0].start, last, key, _position(events[0]), tuple(events))
        case Forgetting():
            for own, until in _known(context, events):
                yield from _windows(context, key, own, min(last, until))
        case Windows():
            yield from _windows(context, key, events, last)
        case FromUntil(opener=opener, closer=closer):
            for place, event in enumerate(events):
                if event.type == opener:
                    yield _until(closer, events[place:], key)
        case FromFor(opener=opener, length=length):
            for place, event in enumerate(events):
                if event.type == opener:
                    end = event.start + length
                    inside = [other for other in events[place:] if other.end < end]
                    yield Partition(event.start, end, key, _position(event), tuple(inside))
        case _:
            raise TypeError(f"not a context: {context!r}")


def _windows(context: Windows, key: Key, events: Sequence[Happening], last: int) -> Iterator[Partition]:
    """The windows with events among those that meet the time from the first event to the last time."""
    inside: defaultdict[int, list[Happening]] = defaultdict(list)
    for event in events:
        for number in _numbers(context, event.end, event.start):
            inside[number].append(event)
    counted = _numbers(context, events[0].start, last)
    for number in sorted(inside):
        if number in counted:
            yield _window(context, key, events, number, number, inside[number])


def _window(
    context: Windows, key: Key, events: Sequence[Happening], first: int, last: int, inside: Sequence[Happening]
) -> Partition:
    """Windows that follow each other as one partition."""
    end = last * context.step + context.length
    return Partition(first * context.step, end, key, _position(events[0]), tuple(inside))


def absent_windows(
    context: Windows, seen: Sequence[Happening], last: int, is_absent: Callable[[Partition], bool]
) -> Iterator[Partition]:
    """The partitions of an absence in windows: those without a candidate, and stretches of such windows."""
    for key, events in _by_key(context, seen).items():
        spans = _known(context, events) if isinstance(context, Forgetting) else [(list(events), last)]
        for own, until in spans:
            end = min(last, until)
            taken = [part.start // context.step for part in _windows(context, key, own, end) if not is_absent(part)]
            numbers = _numbers(context, own[0].start, end)
            begin = numbers.start
            cuts = [number for number in _cuts(context, own) if number < numbers.stop]
            for stop, resumed in sorted([*((n, n + 1) for n in taken), *((n, n) for n in cuts), (numbers.stop, 0)]):
                for low, high in _stretches(begin, stop):
                    yield _window(context, key, own, low, high, ())
                begin = resumed


def _stretches(begin: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last numbers of the ranges of windows that a run is told in."""
    single, size = min(stop, begin + TOLD_SINGLY), TOLD_SINGLY
    yield from ((number, number) for number in range(begin, single))
    low = single
    while low < stop:
        high = min(stop, low + size)
        yield low, high - 1
        low, size = high, low + size - begin


def _known(context: Forgetting, events: Sequence[Happening]) -> list[tuple[list[Happening], int]]:
    """The events of each time for which their values are known, and when it ends."""
    found: list[tuple[list[Happening], int]] = []
    for event in events:
        until = event.end + context.forget
        if found and event.start < found[-1][1] // context.step * context.step + context.length:
            own, before = found.pop()
            found.append(([*own, event], max(before, until)))
        else:
            found.append(([event], until))
    return found


def _cuts(context: Windows, events: Sequence[Happening]) -> Iterator[int]:
    """Yield the first windows after those that had all closed when an event let values be known for longer."""
    if not isinstance(context, Forgetting):
        return
    until = events[0].end + context.forget
    for event in events[1:]:
        last = until // context.step
        if last <= (event.end - context.length) // context.step:
            yield last + 1
        until = max(until, event.end + context.forget)


def _numbers(context: Windows, above: int, low: int) -> range:
    """The numbers of the windows that end above one time and start at or below another."""
    return range((above - context.length) // context.step + 1, low // context.step + 1)


def _until(closer: str, events: Sequence[Happening], key: Key) -> Partition:
    """The partition that the first of the events opens."""
    opener, *others = events
    closing = next((number for number, event in enumerate(others) if event.type == closer), None)
    if closing is None:
        return Partition(opener.start, None, key, _position(opener), tuple(events))
    return Partition(opener.start, others[closing].end, key, _position(opener), (opener, *others[: closing + 1]))


def _position(event: Happening) -> int:
    return event.positions[0] if event.positions else -1
