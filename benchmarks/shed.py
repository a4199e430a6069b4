"""Load shedding: how many matches are still found when half of the events are left out, and what waits in a burst.

`utility` leaves out what matters least, `random` anything; the whole stream is the baseline. The stocks and cards are
those of the examples; and others of another seed, on which nothing was ever tried out.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import weft

EXAMPLES = Path(__file__).parent.parent / "examples"
UNSEEN = 271_828
PUSH = 1000  # events pushed at a time
PUSHED = 20_000  # events of a batch of a burst
ROOM = 200_000  # events that may wait in a burst
READINGS = 60  # of memory in a burst
LEAST = 1.0  # seconds of a burst: in less, hardly a piece is sent
BURST = 10.2  # times the rate that is sustained: a little more, so that what is offered is ten times
FAR = 86_400_000  # ticks between rounds of a burst: no window is as long
Row = dict[str, Any]


def run(scale: float = 1.0) -> Iterator[Row]:
    """Recall with half of the events shed; then a minute of ten times what can be matched; both on both examples."""
    root = str(EXAMPLES.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    from examples.cards.generate import payments
    from examples.stocks.generate import trades

    fraud, dip = weft.compile(EXAMPLES / "cards/fraud.ceql"), weft.compile(EXAMPLES / "stocks/dip.ceql")
    for which, own in (("", {}), (" (unseen)", {"seed": UNSEEN})):
        cards = list(payments(int(100_000 * scale), thefts=max(20, int(200 * scale)), **own))
        yield from recalls(f"fraud{which}", fraud, cards)
        yield from recalls(f"stock{which}", dip, list(trades(int(20_000 * scale), **own)))
    seconds = max(LEAST, 60 * scale)
    yield from burst("fraud", fraud, list(payments(100_000, thefts=200)), seconds)
    yield from burst("stock", dip, list(trades(20_000)), seconds)


def recalls(name: str, program: weft.Program, events: list[dict[str, object]]) -> Iterator[Row]:
    """The share of matches that are found when half of the events are shed."""
    whole, _ = found(program, events, None)
    for policy in ("utility", "random"):
        ids, counters = found(program, events, weft.Shed(share=0.5, policy=policy))  # type: ignore[arg-type]
        assert ids <= whole, "a match that is none"
        yield {
            "case": f"{name}: recall, {policy}, {counters.get('shed', 0) / len(events):.0%} of {len(events):,} shed",
            "value": len(ids),
            "unit": f"of {len(whole):,} matches",
            "baseline": "all events",
            "ratio": len(ids) / max(1, len(whole)),
            "goal": "≥ 0.9" if policy == "utility" else None,
        }


def found(program: weft.Program, events: list[dict[str, object]], shed: weft.Shed | None) -> tuple[set[str], Any]:
    """The ids of the matches, pushed as they would come, and what was counted."""
    ids: set[str] = set()
    running = weft.live(program, shed=shed)
    for at in range(0, len(events), PUSH):
        ids.update(match.id for match in running.push(events[at : at + PUSH]))
    ids.update(match.id for match in running.finish())
    return ids, running.counters


def burst(name: str, program: weft.Program, events: list[dict[str, object]], seconds: float) -> Iterator[Row]:
    """Ten times the rate that can be sustained, for some time: what was offered, what waited, what was lost.

    The events come again and again, later each time, as Arrow batches: so it is known which matches there are, and who
    sends them takes little of the machine. A match that is none would be one of other places of the stream.
    """
    stream = Stream(program, events)
    rate = stream.sustained(min(seconds, 10.0))
    running = weft.live(program, queue=ROOM, when_full="drop")
    found = stream.watch(running)
    sent, took, resident, most = stream.send(running, BURST * rate, seconds)
    running.finish()
    shed = running.counters.get("shed", 0)
    total = sent * PUSHED // len(events) * len(stream.whole)
    assert not found.false, "a match that is none"
    offered = sent * PUSHED / took / rate
    yield {
        "case": f"{name}: burst of {took:.0f} s, offered",
        "value": sent * PUSHED / took,
        "unit": "events/s",
        "baseline": f"the rate that is sustained, {rate:,.0f}/s",
        "ratio": offered,
        "goal": "≥ 10",
    }
    yield {
        "case": f"{name}: burst, most that waited or were worked on, room for {ROOM:,}",
        "value": most,
        "unit": "events",
        "baseline": "twice the room",
        "ratio": most / (2 * ROOM),
        "goal": "≤ 1",
    }
    yield {
        "case": f"{name}: burst, memory of the process, most in its second half",
        "value": max(resident[len(resident) // 2 :]),
        "unit": "bytes",
        "baseline": "most in its first half",
        "ratio": max(resident[len(resident) // 2 :]) / max(resident[: len(resident) // 2]),
        "goal": "≤ 1.1",
    }
    yield _recall(f"{name}: burst, recall, {shed / (sent * PUSHED):.0%} shed", found, total)
    yield stream.at_random(name, shed / (sent * PUSHED))


def _recall(case: str, found: Found, total: int) -> Row:
    """How many of so many matches were found."""
    return {
        "case": case,
        "value": found.count,
        "unit": f"of {total:,} matches",
        "baseline": "all events",
        "ratio": found.count / total,
    }


class Stream:
    """Events that come again and again, and the matches of one round of them."""

    def __init__(self, program: weft.Program, events: list[dict[str, object]]) -> None:
        self._program = program
        count = len(events) // PUSHED * PUSHED
        table = pa.Table.from_pylist(events[:count]).combine_chunks()
        # Rounds are so far from each other that no match is of two.
        self._span = int(table["ts"][-1].as_py()) - int(table["ts"][0].as_py()) + FAR
        self._pieces = table.to_batches(max_chunksize=PUSHED)
        self._place = table.schema.get_field_index("ts")
        self.count = count
        self.whole = frozenset(match.positions for match in weft.detect(table, program))

    def piece(self, number: int) -> pa.RecordBatch:
        """The next events of the stream."""
        again, place = divmod(number, len(self._pieces))
        piece = self._pieces[place]
        times = pa.array(np.asarray(piece.column(self._place)) + again * self._span)
        return piece.set_column(self._place, "ts", times)

    def sustained(self, seconds: float) -> float:
        """Events per second that come through a queue that loses none."""
        with weft.live(self._program, queue=ROOM) as running:
            self.watch(running)
            sent, took, _, _ = self.send(running, None, seconds)
        return sent * PUSHED / took

    def send(self, running: weft.LiveProgram, rate: float | None, seconds: float) -> tuple[int, float, list[int], int]:
        """Push at a rate (None: as it can take them); how many pieces, seconds until all were taken, memory, most that
        waited."""
        number, resident, most = 0, list[int](), 0
        started = now = time.perf_counter()
        while now - started < seconds:
            due = number + 1 if rate is None else int((now - started) * rate / PUSHED)
            for _ in range(number, due):
                running.push(self.piece(number))
                number += 1
            most = max(most, running.queued)
            if now - started > len(resident) * seconds / READINGS:
                resident.append(resident_bytes())
            if rate is not None:
                time.sleep(0.001)
            now = time.perf_counter()
        if rate is None:
            running.join()
        resident.append(resident_bytes())
        return number, time.perf_counter() - started, resident, most

    def watch(self, running: weft.LiveProgram) -> Found:
        """Count the matches that are found."""
        found = Found(self.count, self.whole)
        running.subscribe("*", found)
        return found

    def at_random(self, name: str, share: float) -> Row:
        """What is found when such a share of single events is left out by chance."""
        found = Found(self.count, self.whole)
        running = weft.live(self._program, shed=weft.Shed(share=share, policy="random"))
        rounds = 20
        for number in range(rounds * len(self._pieces)):
            for match in running.push(self.piece(number)):
                found(match)
        return _recall(f"{name}: recall, {share:.0%} of single events shed by chance", found, rounds * len(self.whole))


class Found:
    """Matches that were told: how many, and which are none."""

    def __init__(self, length: int, whole: frozenset[tuple[int, ...]]) -> None:
        self._length, self._whole = length, whole
        self.count = 0
        self.false: list[tuple[int, ...]] = []

    def __call__(self, match: weft.Match) -> None:
        """Look at one."""
        self.count += 1
        first = match.positions[0] // self._length * self._length
        if tuple(position - first for position in match.positions) not in self._whole:
            self.false.append(match.positions)


def resident_bytes() -> int:
    """The memory of this process now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
