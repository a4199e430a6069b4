"""Drives a matcher over events as tests want it: in any parts, with restarts in between, split into lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from weft.plan.operators import Plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.reading.order import read_events

EventDict = Mapping[str, object]


def event_batches(parts: Sequence[Sequence[EventDict]], chosen: Plan) -> list[EventBatch]:
    """Each part read by itself, so that the kinds of a column may differ from batch to batch."""
    position = 0
    batches: list[EventBatch] = []
    for part in parts:
        read = read_events(list(part), columns=chosen.columns)
        batches += [replace(batch, positions=batch.positions + position) for batch in read]
        position += len(part)
    return batches


def run(chosen: Plan, batches: Iterable[EventBatch], queries: tuple[int, ...] | None = None) -> list[MatchBatch]:
    """All matches of some batches."""
    matcher = Matcher(chosen if queries is None else chosen.only(queries))
    found = [found for batch in batches for found in matcher.push(batch)]
    return [*found, *matcher.finish()]


def keep(pages: dict[str, bytes], changed: Mapping[str, bytes | None]) -> None:
    """Put the pages of a snapshot to those of the snapshots before it."""
    for name, page in changed.items():
        if page is None:
            pages.pop(name, None)
        else:
            pages[name] = page


def run_with_restarts(
    chosen: Plan, batches: Iterable[EventBatch], every: int = 1, between: Callable[[Matcher], object] = id
) -> list[MatchBatch]:
    """After each batch the state is kept as pages, and every now and then a new matcher goes on from them."""
    matcher = Matcher(chosen)
    pages: dict[str, bytes] = {}
    found: list[MatchBatch] = []
    for number, batch in enumerate(batches):
        found += matcher.push(batch)
        between(matcher)
        keep(pages, matcher.snapshot())
        if number % every == 0:
            matcher = Matcher.restore(chosen, dict(pages))
    return [*found, *matcher.finish()]


def run_in_lanes(
    chosen: Plan, batches: Sequence[EventBatch], events: Sequence[EventDict], lanes: int
) -> list[MatchBatch]:
    """Each group of queries by itself, over the events of each lane by itself."""
    found: list[MatchBatch] = []
    for group in chosen.lanes:
        keys = [key_of(event, group.key) for event in events]
        known = list(dict.fromkeys(keys))
        lane_of = np.array([known.index(key) % lanes for key in keys])
        for lane in range(lanes):
            mine = [blocks.take(batch, np.flatnonzero(lane_of == lane)) for batch in batches]
            found += run(chosen, [batch for batch in mine if len(batch)], group.queries)
    return found


def key_of(event: EventDict, parts: tuple[tuple[str, ...], ...]) -> tuple[object, ...]:
    """The partition key, written out once more: kinds and values of the first attributes present."""
    first = [next((event[n] for n in part if n in event and is_value(event[n])), None) for part in parts]
    return tuple((isinstance(value, bool), isinstance(value, str), value) for value in first)


def is_value(value: object) -> bool:
    """Not missing, and not NaN."""
    return value is not None and value == value
