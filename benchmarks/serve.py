"""`weft serve` on this machine: publishing against `live.push`, latency of many subscribers, and kills under load.

Parts: `publish`, `latency` (as T-Rex's figures 10, 11 and 13 show it: against the rate, up to saturation), `kills`.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import weft

ROOT = Path(__file__).parent.parent
PARTS = ("publish", "latency", "kills")
ALARM = """define Alarm(area: string, value: double, n: int)
from   Reading(value > 90)
where  area = Reading.area and value = Reading.value and n = Reading.n
"""
FIRE = """define Fire(area: string, temp: double)
from   Smoke(area = $a) and last Temp(area = $a and value > 90) within 5 min from Smoke
where  area = Smoke.area and temp = Temp.value
"""
BATCH = 50_000  # events published at a time
ROUNDS = 5
SUBSCRIBERS = 1000
RATES = (100, 300, 1000, 2000, 4000, 8000, 16_000)  # events in a second
SECONDS = 6.0  # of each rate
SATURATED = 0.9  # of the offered rate: below that it is not reached
Row = dict[str, Any]


def run(scale: float = 1.0, part: str | None = None) -> Iterator[Row]:
    """All parts, or one; `scale` multiplies events, seconds and kills."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    if part is not None and part not in PARTS:
        raise weft.UsageError(f"the parts are {', '.join(PARTS)}, not {part!r}")
    if part in (None, "publish"):
        yield from publishing(max(4, int(20 * scale)))
    if part in (None, "latency"):
        yield from latencies(SECONDS * scale)
    if part in (None, "kills"):
        yield from kills(max(1, int(100 * scale)))


def batches(count: int, first: int = 0) -> list[pa.Table]:
    """Readings of heat and smoke, in batches."""
    chance = np.random.default_rng(first)
    made = []
    for number in range(first, first + count):
        types = pa.array(np.where(chance.random(BATCH) < 0.1, "Smoke", "Temp"))
        areas = pa.array([f"room{area}" for area in range(1000)]).take(pa.array(chance.integers(0, 1000, BATCH)))
        times = pa.array(np.arange(number * BATCH, (number + 1) * BATCH))
        made.append(pa.table({"type": types, "ts": times, "area": areas, "value": chance.random(BATCH) * 100}))
    return made


def publishing(count: int) -> Iterator[Row]:
    """Events in a second, published from here, against those pushed to a program in this process, by turns."""
    from tests.serving import ServerProcess

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "fire.tesla").write_text(FIRE)
        for name, arguments in (("", []), (" with --state", ["--state", "state"])):
            with (
                ServerProcess("fire.tesla", *arguments, cwd=Path(folder)) as server,
                weft.connect(server.url) as client,
            ):
                live = weft.live(FIRE)
                rates: list[tuple[float, float]] = []
                cpu: list[tuple[float, float]] = []  # seconds of the server, and here
                for turn in range(ROUNDS + 1):
                    given = batches(count, turn * count)
                    before = time.process_time()
                    pushed = seconds(partial(pushed_to, live, given))
                    here, there = time.process_time() - before, cpu_of(server.process.pid)
                    sent = seconds(partial(published, client, given))
                    there = cpu_of(server.process.pid) - there
                    if turn:  # the first one compiles, and fills caches
                        rates.append((count * BATCH / sent, count * BATCH / pushed))
                        cpu.append((there, here))
                matches = client.stats()["matches"]["Fire"]
            yield {
                "case": f"publish{name}: batches of {BATCH:,}, {matches:,} matches",
                "value": statistics.median(sent for sent, _ in rates),
                "unit": "events/s",
                "baseline": f"live.push {statistics.median(pushed for _, pushed in rates):,.0f}",
                "ratio": statistics.median(sent / pushed for sent, pushed in rates),
                "goal": "≥ 0.5",
            }
            yield {
                "case": f"publish{name}: CPU time of the server",
                "value": 1e6 * statistics.median(there for there, _ in cpu) / (count * BATCH),
                "unit": "µs/event",
                "baseline": "CPU time of live.push",
                "ratio": statistics.median(here / there for there, here in cpu),
                "goal": "≥ 0.5",
            }


def cpu_of(process: int) -> float:
    """The seconds of CPU time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pushed_to(live: weft.LiveProgram, given: list[pa.Table]) -> None:
    """Push, one after the other."""
    for batch in given:
        live.push(batch)


def published(client: weft.Client, given: list[pa.Table]) -> None:
    """Publish, and wait for the answers."""
    for batch in given:
        client.publish(batch)
    client.flush()


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def latencies(duration: float) -> Iterator[Row]:
    """From publish to receipt, with a thousand subscribers that have conditions of their own, at growing rates."""
    from tests.serving import ServerProcess

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "alarm.tesla").write_text(ALARM)
        with ServerProcess("alarm.tesla", cwd=Path(folder)) as server:
            yield from asyncio.run(_latencies(server.url, duration))


async def _latencies(url: str, duration: float) -> list[Row]:
    import websockets

    sent: dict[int, float] = {}
    came: dict[int, float] = {}

    async def listen(number: int, ready: asyncio.Event) -> None:
        address = f"{url.replace('http', 'ws')}/v1/matches?query=Alarm&where=area%20%3D%20'room{number}'"
        async with websockets.connect(address, compression=None, ping_interval=None) as socket:
            ready.set()
            async for message in socket:
                came[json.loads(message)["event"]["n"]] = time.perf_counter()

    ready = [asyncio.Event() for _ in range(SUBSCRIBERS)]
    listening = []
    for number, one in enumerate(ready):
        listening.append(asyncio.create_task(listen(number, one)))
        if number % 50 == 49:
            await asyncio.gather(*(event.wait() for event in ready[: number + 1]))
    rows, first = [], 0
    for rate in RATES:
        count = max(50, int(rate * duration))
        took = await _offered(url, rate, first, count, sent)
        until = time.perf_counter() + 15
        while sum(n in came for n in range(first, first + count)) < count and time.perf_counter() < until:
            await asyncio.sleep(0.05)
        own = sorted(came[n] - sent[n] for n in range(first, first + count) if n in came)
        reached = count / took
        rows.append(
            {
                "case": f"{SUBSCRIBERS:,} subscribers, {rate:,} events/s offered, {reached:,.0f} reached: p99",
                "value": 1000 * own[int(0.99 * (len(own) - 1))],
                "unit": f"ms (p50 {1000 * own[len(own) // 2]:.1f}, {len(own):,} of {count:,})",
                "baseline": "offered rate",
                "ratio": reached / rate,
                "goal": None,
            }
        )
        first += count
        if reached < SATURATED * rate:
            break
    for task in listening:
        task.cancel()
    await asyncio.gather(*listening, return_exceptions=True)
    return rows


async def _offered(url: str, rate: float, first: int, count: int, sent: dict[int, float]) -> float:
    """Publish so many events at a rate, a few at a time; the seconds until the last was answered."""
    import httpx

    started, done = time.perf_counter(), 0
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
        while done < count:
            due = min(count, int((time.perf_counter() - started) * rate) + 1)
            if due > done:
                now = time.perf_counter()
                events = []
                for n in range(first + done, first + due):
                    sent[n] = now
                    events.append({"type": "Reading", "ts": n, "area": f"room{n % SUBSCRIBERS}", "value": 99.0, "n": n})
                body = "\n".join(map(json.dumps, events))
                answer = await http.post("/v1/events", content=body, headers={"Content-Type": "application/x-ndjson"})
                answer.raise_for_status()
                done = due
            else:
                await asyncio.sleep(0.001)
    return time.perf_counter() - started


def kills(count: int) -> Iterator[Row]:
    """Kill a server under load: accepted events whose matches never came, and ids that came twice."""
    from tests.serve_kills import killed_under_load

    with tempfile.TemporaryDirectory() as folder:
        outcome = killed_under_load(Path(folder), count)
    case = f"{outcome.kills} kills, {outcome.accepted:,} events accepted, {len(outcome.ids):,} matches received"
    for name, value in (("lost", outcome.lost), ("received twice", outcome.twice), ("missed", outcome.missed)):
        yield {"case": f"{case}: {name}", "value": value, "unit": "", "baseline": "", "ratio": None, "goal": "0"}
