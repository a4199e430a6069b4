"""The events of a tortured run, as files of changing formats and columns, written in whatever way is bad."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PER_FILE = 40
PER_STRETCH = 5  # files between two gaps, which no match reaches across
GAP = 500  # ticks
FAR, BEYOND = 20 * 3_600_000, 72 * 3_600_000  # ticks: not believed, and rejected by the clock
Events = list[dict[str, Any]]


class Feed:
    """Writes files into a folder, and remembers what they have: `events` with the stretch that each belongs to."""

    def __init__(self, folder: Path, chance: Random, base: int) -> None:
        self.folder, self.files = folder, 0
        self.events: list[tuple[int, dict[str, Any]]] = []
        self.rewritten: dict[str, Events] = {}  # files whose bytes changed under the reader
        self._chance, self._base = chance, base
        folder.mkdir(parents=True, exist_ok=True)

    def write(self) -> list[str]:
        """Write another file, which appears when it is whole; the troubles that it has."""
        chance, number = self._chance, self.files
        part = self._made(number)
        troubles = []
        drift = chance.choice([None, 7, "seven", 0.5])
        if drift is not None:
            part = [event | {"extra": drift} for event in part]
            troubles.append("files with other columns")
        if chance.random() < 0.3:
            part.append({"type": "X", "ts": part[-1]["ts"] + FAR})
            troubles.append("far events")
        if chance.random() < 0.1:
            part.append({"type": "X", "ts": part[-1]["ts"] + BEYOND})
            troubles.append("events ahead of the clock")
        is_table = chance.random() < 0.4
        troubles += ["Parquet files"] * is_table
        path = self.folder / f"{number:05d}.{'parquet' if is_table else 'jsonl'}"
        hidden = path.with_name(f".{path.name}")
        hidden.write_bytes(self._table(part) if is_table else lines(part))
        os.utime(hidden, (1000 + number, 1000 + number))
        hidden.rename(path)
        self.files += 1
        self.events += [(self.stretch(number), event) for event in part]
        return troubles

    def stretch(self, number: int) -> int:
        """The stretch that a file belongs to."""
        return number // PER_STRETCH

    def skip(self) -> None:
        """Go on with the next stretch."""
        self.files = (self.stretch(self.files) + 1) * PER_STRETCH

    def _made(self, number: int) -> Events:
        chance, first = self._chance, number * PER_FILE
        start = self._base + GAP * self.stretch(number)
        return [
            {
                "type": chance.choice("AABC"),
                "ts": start + 3 * n + chance.randrange(9),
                "k": "uvw"[n % 3],
                "x": n * 5 % 8,
            }
            for n in range(first, first + PER_FILE)
        ]

    def _table(self, part: Events) -> bytes:
        """A table of the events, whose columns have other types from file to file."""
        names = list(dict.fromkeys(name for event in part for name in event))
        self._chance.shuffle(names)
        kinds: dict[str, pa.DataType] = {
            "x": self._chance.choice([pa.int8(), pa.int32(), pa.int64(), pa.uint16()]),
            "k": self._chance.choice([pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]),
        }
        columns = {name: pa.array([event.get(name) for event in part], kinds.get(name)) for name in names}
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns), sink)
        return bytes(sink.getvalue())

    def vanish(self) -> None:
        """Write a file without events, and take it away at once."""
        path = self.folder / f"gone{self._chance.randrange(10**9)}.jsonl"
        path.write_text("\n")
        time.sleep(self._chance.random() / 2)
        path.unlink()

    def rewrite(self) -> None:
        """Write a file in place, in pieces, and some of it once more, while it may be read.

        Its events are those of a query of their own: what that misses must be among the rejects, by the file's name.
        """
        chance = self._chance
        name = f"again{len(self.rewritten):04d}.jsonl"
        ts = self._base + GAP * self.stretch(self.files) + 3 * PER_FILE * self.files
        part: Events = [{"type": "W", "ts": ts - 2 + at // 3, "k": name, "x": at} for at in range(12)]
        self.rewritten[name] = part
        for events in (part[: chance.randrange(1, 12)], part):
            with (self.folder / name).open("wb") as file:
                for line in lines(events).splitlines(keepends=True):
                    file.write(line[:9])
                    file.flush()
                    time.sleep(chance.random() / 50)
                    file.write(line[9:])
            time.sleep(chance.random() / 2)


def lines(events: Events) -> bytes:
    """Events as lines of JSON."""
    return "".join(json.dumps(event) + "\n" for event in events).encode()
