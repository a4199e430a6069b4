"""Events from blocks of JSON lines: by Arrow's reader if it reads exactly what the lines say, else line by line."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from weft.algebra.numbers import EXACT
from weft.runtime.reading.chunks import SPARSE, Chunk, arrow_chunk, form_of
from weft.runtime.reading.kinds import columns_of_dicts

LONGEST = 1 << 26  # bytes of a line
TOO_LONG = b'"a line that is too long"'
SAMPLED = 256  # lines that are sampled for their names
FEW_NAMES = 64
DEEPEST = 500  # nested brackets that are left to Arrow
_NO_OBJECT = re.compile(rb"^[ \t\r]*[^\s{]", re.MULTILINE)
_OPEN, _CLOSE = np.frombuffer(b"{[", np.uint8), np.frombuffer(b"}]", np.uint8)


def block_chunk(block: bytes, path: str, line: int, time_unit: str, texts: set[str]) -> Chunk:
    """Convert a block of lines, the first of which has the number `line`; an unreadable line has a problem.

    `texts` collects the columns whose texts Arrow would read as times, from one block to the next.
    """
    return arrow_block(block, path, line, time_unit, texts) or _block_of_lines(block, path, line, time_unit)


def _is_sparse(block: bytes) -> bool:
    """Whether most lines seem to have few of the names, judged by lines sampled from the whole block."""
    names: set[str] = set()
    fields = lines = 0
    for start in range(0, len(block), max(len(block) // SAMPLED, 1)):
        begin = block.rfind(b"\n", 0, start + 1) + 1
        stop = block.find(b"\n", begin)
        try:
            event = json.loads(block[begin : stop if stop >= 0 else len(block)])
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            names.update(event)
            fields, lines = fields + len(event), lines + 1
    return len(names) > FEW_NAMES and len(names) * lines > SPARSE * fields


def arrow_block(block: bytes, path: str, line: int, time_unit: str, texts: set[str]) -> Chunk | None:
    """Read a block with Arrow, or return None if it fails or would change a value.

    Arrow reads texts that look like times as times, so those columns are read as texts in a second attempt.
    """
    if _is_odd(block) or _is_sparse(block):
        return None
    read = pj.ReadOptions(use_threads=False, block_size=len(block) + 1)
    for _ in range(2):
        parse = pj.ParseOptions(explicit_schema=pa.schema([(name, pa.string()) for name in sorted(texts)]))
        try:
            table = pj.read_json(pa.BufferReader(block), read, parse)
        except pa.ArrowException:
            return None
        times = {field.name for field in table.schema if pa.types.is_timestamp(field.type)}
        if not times:
            break
        texts |= times
    names = table.schema.names
    if len(set(names)) < len(names) or any(_holds_times(field.type) for field in table.schema):
        return None
    batches = table.combine_chunks().to_batches()
    if not batches or any(_lost_digits(column) for column in batches[0].columns):
        return None
    if len(batches[0]) != _line_count(block):
        return None  # a line with several events, or one over several lines
    chunk = arrow_chunk(batches[0], time_unit)
    lines = _Lines(block, path, line)
    return Chunk(chunk.length, names, chunk.column, lines.event, place=lines.place, form="rows")


def _is_odd(block: bytes) -> bool:
    """Whether the block contains something that crashes Arrow's reader, or that it changes."""
    starts = block.count(b"\n{") + block.startswith(b"{")
    if starts != block.count(b"\n") + (not block.endswith(b"\n")) and _NO_OBJECT.search(block):
        return True
    if block.count(b"{") + block.count(b"[") - starts > DEEPEST:
        found = np.frombuffer(block, np.uint8)
        steps = np.isin(found, _OPEN).astype(np.int32) - np.isin(found, _CLOSE)
        if int(np.cumsum(steps).max()) > DEEPEST:
            return True
    if block.isascii():
        return False
    try:
        block.decode()
    except UnicodeDecodeError:
        return True
    return False


def _line_count(block: bytes) -> int:
    """Return the number of non-empty lines."""
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    starts = block.count(b"\n{") + block.startswith(b"{")
    return lines if starts == lines else sum(bool(line.strip()) for line in block.split(b"\n"))


def _holds_times(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind))


def _lost_digits(column: pa.Array) -> bool:
    """Whether integers that are too large for floats may have been read as floats."""
    if not pa.types.is_float64(column.type) or not len(column):
        return False
    largest = pc.max(pc.abs(column)).as_py()
    return largest is not None and largest >= EXACT


class _Lines:
    """The lines of a block by row, split on first access."""

    def __init__(self, block: bytes, path: str, first: int) -> None:
        self._block, self._path, self._first = block, path, first
        self._found: list[tuple[int, bytes]] | None = None

    def _row(self, row: int) -> tuple[int, bytes]:
        if self._found is None:
            numbered = enumerate(self._block.split(b"\n"), self._first)
            self._found = [(number, text) for number, text in numbered if text.strip()]
        return self._found[row]

    def event(self, row: int) -> dict[str, object]:
        """Return the event in the line of a row."""
        return dict(json.loads(self._row(row)[1]))

    def place(self, row: int) -> tuple[str, int]:
        """Return the file and the line of a row."""
        return self._path, self._row(row)[0]


def _block_of_lines(block: bytes, path: str, first: int, time_unit: str) -> Chunk:
    """Read a block line by line."""
    events: list[dict[str, Any]] = []
    numbers: list[int] = []
    problems: dict[int, str] = {}
    for number, text in enumerate(block.split(b"\n"), first):
        if not text.strip():
            continue
        event, problem = parse_event(text)
        if problem is not None:
            problems[len(events)] = problem
        events.append(event)
        numbers.append(number)
    names = dict.fromkeys(name for event in events for name in event)
    return Chunk(
        len(events),
        names,
        lambda name: columns_of_dicts(events, [name], time_unit)[name],
        lambda row: None if row in problems else events[row],
        problems=problems,
        place=lambda row: (path, numbers[row]),
        form=form_of(len(names), events),
    )


def parse_event(text: bytes) -> tuple[dict[str, Any], str | None]:
    """Return the event in a JSON text, or why there is none."""
    if text == TOO_LONG:
        return {}, f"a line of more than {LONGEST >> 20} MiB"
    try:
        event = json.loads(text)
    except UnicodeDecodeError as problem:
        return {}, f"not UTF-8: {problem.reason} at byte {problem.start}"
    except json.JSONDecodeError as problem:
        return {}, f"not JSON: {problem.msg} at column {problem.colno}"
    except (ValueError, RecursionError) as problem:
        return {}, f"not JSON that can be read: {problem}"
    if b"\\ud" in text.lower() and not _is_unicode(event):
        return {}, "not Unicode: half of a pair of surrogates"
    if not isinstance(event, dict):
        return {}, f"not an event: {text.decode(errors='replace').strip()[:60]}"
    return event, None


def _is_unicode(event: object) -> bool:
    try:
        json.dumps(event, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
