"""Save the store of rules as pages: events by type and number, so that a full page does not change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from weft.kernels.rules import tables as t
from weft.runtime.classify.texts import TextTable
from weft.runtime.data.events import Int64s
from weft.runtime.operators.rules.memory import Memory
from weft.runtime.store.pages import Pages, text_pages

EVENTS = 512  # per page
_HEADER = 2  # words: number of the first event, and of events


def memory_pages(memory: Memory) -> Iterator[tuple[str, bytes]]:
    """Yield all pages. Lists by key are not saved; they are rebuilt from the events."""
    table = memory.table
    for type_ in range(len(table)):
        first, end = int(table[type_, t.GONE]), int(table[type_, t.GONE] + table[type_, t.HELD])
        for number in range(first // EVENTS, -(-end // EVENTS)):
            low, high = max(first, number * EVENTS), min(end, (number + 1) * EVENTS)
            yield f"events/{type_}/{number}", _events_page(memory, type_, low, high)
    yield from text_pages("texts", memory.texts.texts()).items()
    summary = {
        "time": int(memory.control[t.TIME]),
        "numbers": (table[:, t.GONE] + table[:, t.HELD]).tolist(),
        "floors": memory.floors,
    }
    yield "summary", json.dumps(summary).encode()


def _events_page(memory: Memory, type_: int, low: int, high: int) -> bytes:
    """Encode some events of a type: times, starts, origins, marks and values; then positions of defined ones."""
    row = memory.table[type_]
    begin = int(row[t.BASE] - row[t.GONE]) + low
    places = slice(begin, begin + high - low)
    origins = memory.origins[places].copy()
    defined = np.flatnonzero(origins < 0)
    lists: list[Int64s] = []
    for event in defined.tolist():
        at = -1 - int(origins[event])
        length = int(memory.positions[at])
        lists.append(memory.positions[at + 1 : at + 1 + length])
        origins[event] = -1 - length
    columns = 2 * int(row[t.COLUMNS_END] - row[t.COLUMNS_AT])
    values = memory.values[begin * memory.width : (begin + high - low) * memory.width]
    kept = values.reshape(high - low, memory.width)[:, :columns]
    marks = memory.marks[begin * memory.mark_words : (begin + high - low) * memory.mark_words]
    parts = [np.array([low, high - low], np.int64), memory.times[places], memory.starts[places], origins, marks]
    return b"".join(part.tobytes() for part in (*parts, kept, *lists))


def load_memory(memory: Memory, pages: Mapping[str, bytes]) -> None:
    """Restore the store from pages; the tables must be those of the saved rules."""
    summary, saved = json.loads(pages["summary"]), Pages(pages)
    memory.texts = TextTable(saved.texts("texts"))
    memory.control[t.TIME] = summary["time"]
    memory.floors = {int(rule): {int(a): b for a, b in floors.items()} for rule, floors in summary["floors"].items()}
    table = memory.table
    found = [[np.frombuffer(page, np.int64) for page in saved.contents(f"events/{at}")] for at in range(len(table))]
    counts = np.array([sum(int(page[1]) for page in own) for own in found], np.int64)
    memory.reserve(counts)
    for type_, own in enumerate(found):
        table = memory.table
        table[type_, t.HELD] = counts[type_]
        table[type_, t.GONE] = summary["numbers"][type_] - counts[type_]
        at = int(table[type_, t.BASE])
        for page in own:
            _load_events(memory, type_, at, page)
            at += int(page[1])


def _load_events(memory: Memory, type_: int, at: int, page: Int64s) -> None:
    row = memory.table[type_]
    count, columns = int(page[1]), 2 * int(row[t.COLUMNS_END] - row[t.COLUMNS_AT])
    begin = _HEADER
    for array in (memory.times, memory.starts, memory.origins):
        array[at : at + count] = page[begin : begin + count]
        begin += count
    marks = count * memory.mark_words
    memory.marks[at * memory.mark_words : (at + count) * memory.mark_words] = page[begin : begin + marks]
    begin += marks
    values = memory.values[at * memory.width : (at + count) * memory.width].reshape(count, memory.width)
    values[:, :columns] = page[begin : begin + count * columns].reshape(count, columns)
    begin += count * columns
    for event in range(at, at + count):
        if memory.origins[event] < 0:
            length = -1 - int(memory.origins[event])
            memory.origins[event] = -1 - memory.add_positions(page[begin : begin + length])
            begin += length
