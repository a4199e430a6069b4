"""Streams on Spark: one million events in ten triggers, by weft and by a loop over rows in `applyInPandasWithState`.

Both find a large sale, the next large purchase and the next large sale of the same symbol (skip till next).
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from math import inf
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.measure import Row, row
from benchmarks.spark import tree_cpu

from weft.errors import UsageError, did_you_mean
from weft.runtime.spark.session import LASTING_SETTINGS, spark_session

EVENTS, TRIGGERS = 1_000_000, 10
KEYS = {100: ">= 2.5", 100_000: ">= 30"}
PARTS = ("100", "100000", "fixed", "large")
FEW_KEYS = 100
LARGE = 900
QUERY = f"""
SELECT * FROM SELL a ; BUY b ; SELL c
WHERE FILTER(a.symbol = b.symbol), FILTER(b.symbol = c.symbol),
      FILTER(a.volume >= {LARGE}), FILTER(b.volume >= {LARGE}), FILTER(c.volume >= {LARGE})
"""
COLUMNS = "ts long, type string, symbol long, volume long, price double"


def run(scale: float = 1.0, part: str | None = None) -> list[Row]:
    """Compare with the loop for few and for many keys, then measure small and large triggers."""
    if part is not None and part not in PARTS:
        raise UsageError(f"no part {part!r} of this benchmark; {did_you_mean(part, PARTS)}")
    chosen = PARTS if part is None else (part,)
    count = max(1000, int(EVENTS * scale))
    if chosen == ("large",):
        return [_large_alone(scale)]
    with tempfile.TemporaryDirectory() as folder:
        streams = Streams(Path(folder), LASTING_SETTINGS)  # the loop leans on the JVM: let that be at its best
        streams.seconds("weft", streams.events(3, 1000, 100))  # starts Spark, its workers, and warms Java up
        rows: list[Row] = []
        for keys, goal in KEYS.items():
            if str(keys) in chosen:
                rows += _compared(streams, count, keys, goal)
        if "fixed" in chosen:
            rows.append(_fixed(streams, max(100, int(10_000 * scale))))
    return [*rows, _large_alone(scale)] if "large" in chosen else rows


def _compared(streams: Streams, count: int, keys: int, goal: str) -> list[Row]:
    """Both by turns, the best of each; the loop is run once where it takes minutes."""
    events = streams.events(TRIGGERS, count // TRIGGERS, keys)
    turns = ("weft", "loop", "weft", "loop", "weft") if keys <= FEW_KEYS else ("weft", "loop", "weft")
    best, found = streams.turns([(way, events) for way in turns])
    if len(set(found)) > 1:
        raise RuntimeError(f"the numbers of matches differ: {found}")
    mine, loop = best["weft", events], best["loop", events]
    return [
        row(f"{count:,} events of {keys:,} keys, {found[0]:,} matches: applyInPandasWithState", loop, "CPU s"),
        row("  weft.match", mine, "CPU s", "the loop", loop / mine, goal),
    ]


def _fixed(streams: Streams, size: int) -> Row:
    """CPU seconds of a trigger of a stream that has run for a while."""
    seconds = streams.settled("weft", streams.events(25, size, FEW_KEYS), 10)
    return row(f"a trigger of {size:,} events", seconds, "CPU s", goal="<= 0.6")


def _large_alone(scale: float) -> Row:
    """In a process of its own: Java has the settings with which `weft run` starts it."""
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:
        return alone.submit(_large, max(1000, int(500_000 * scale))).result()


def _large(size: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        streams = Streams(Path(folder))
        seconds = streams.settled("run", streams.events(12, size, FEW_KEYS), 6)
    return row(f"weft run, triggers of {size:,} events", size / seconds / 1e6, "M events/CPU s", goal=">= 1")


class Streams:
    """Streams over folders of files, one file to a trigger."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder, self._number = folder, 0
        self._session = spark_session(settings=settings)
        self.matches = 0
        self._ends: list[float] = []  # CPU seconds of all processes when each trigger of a stream had ended

    def events(self, triggers: int, size: int, keys: int) -> Path:
        """A folder of files, one for each trigger."""
        self._number += 1
        folder = self._folder / f"in{self._number}"
        folder.mkdir()
        random = np.random.default_rng(3)
        for number in range(triggers):
            kinds = random.choice(3, size, p=[0.5, 0.4, 0.1])
            kinds[-1] = 2  # the last event of a stream waits for later ones
            columns = {
                "ts": np.arange(size) + number * size,
                "type": pa.array(["SELL", "BUY", "CANCEL"]).take(pa.array(kinds)),
                "symbol": random.integers(0, keys, size),
                "volume": random.integers(1, 1000, size),
                "price": random.random(size),
            }
            pq.write_table(pa.table(columns), folder / f"{number:04d}.parquet")
        return folder

    def seconds(self, way: str, events: Path) -> float:
        """CPU seconds of all processes for a stream over a folder; `matches` are counted."""
        self._number += 1
        work = self._folder / f"work{self._number}"
        self._ends = []
        before = tree_cpu()
        {"weft": self._weft, "loop": self._loop, "run": self._run}[way](events, work)
        return tree_cpu() - before

    def settled(self, way: str, events: Path, first: int) -> float:
        """CPU seconds of a trigger, from the end of one to that of the next: the mean of those after the first ones.

        The start of a stream and its first triggers, in which Java compiles, are in no trigger that is measured.
        """
        self.seconds(way, events)
        measured = self._ends[first - 1 :]
        return (measured[-1] - measured[0]) / (len(measured) - 1)

    def turns(self, turns: Sequence[tuple[str, Path]]) -> tuple[dict[tuple[str, Path], float], list[int]]:
        """Streams one after the other: the least CPU seconds of each kind, and the matches of each turn."""
        best: dict[tuple[str, Path], float] = {}
        found = []
        for way, events in turns:
            best[way, events] = min(self.seconds(way, events), best.get((way, events), inf))
            found.append(self.matches)
        return best, found

    def _weft(self, events: Path, work: Path) -> None:
        import weft

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._finish(weft.match(self._read(events), weft.compile(QUERY, language="eql"), delay=0), work)

    def _loop(self, events: Path, work: Path) -> None:
        grouped = self._read(events).groupBy("symbol")
        state = "sales binary, pairs binary"  # lists would be quicker to write, and PySpark 4.3 cannot read them
        self._finish(grouped.applyInPandasWithState(by_hand, "id long", state, "append", "NoTimeout"), work)

    def _run(self, events: Path, work: Path) -> None:
        import weft
        from weft.engines import continuous

        places = {"sink": str(work / "out"), "checkpoint": str(work / "state")}
        program = weft.compile(QUERY, language="eql")
        query = continuous(program, [("S", str(events))], **places, until="read", files_per_trigger=1)
        query.watch(lambda _: self._ends.append(tree_cpu()))
        query.start()
        query.wait()

    def _read(self, events: Path) -> Any:
        reader = self._session.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(events))

    def _finish(self, frame: Any, work: Path) -> None:
        self.matches = 0

        def count(found: Any, _: int) -> None:
            self.matches += found.count()
            self._ends.append(tree_cpu())

        writer = frame.writeStream.option("checkpointLocation", str(work / "state")).foreachBatch(count)
        writer.trigger(availableNow=True).start().awaitTermination()


def by_hand(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """A loop over the rows of a symbol in order of time, as one writes it: who waits is in the state."""
    import pandas as pd

    rows = pd.concat(list(frames))
    rows = rows[rows["volume"] >= LARGE].sort_values("ts")
    sales, pairs = (np.frombuffer(held, np.int64).tolist() for held in (state.get if state.exists else (b"", b"")))
    found: list[int] = []
    for kind, time in zip(rows["type"], rows["ts"], strict=True):
        if kind == "SELL":
            found += pairs
            pairs = []
            sales.append(time)
        elif kind == "BUY":
            pairs += sales
            sales = []
    state.update((np.array(sales, np.int64).tobytes(), np.array(pairs, np.int64).tobytes()))
    yield pd.DataFrame({"id": found})
