"""Runs between topics that are killed under load lose nothing; what a topic gets twice has the same id.

`make kafka KILLS=100` says how often. Processes are killed with all their children, without a word, at random moments,
and between the offsets of a trigger and its commit.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Event, Thread

from tests.kafka.conftest import Command, Kafka, expected, wait_until

TOGETHER = True
KILLS = int(os.environ.get("WEFT_KILLS", "2"))
QUERY = "SELECT * WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 20 MILLISECONDS"
STARTING = 400.0  # seconds for a run to begin, on a machine that does much else
PARTITIONS, RATE = 3, 200  # events in a second
LONGEST = 120.0 * max(KILLS, 10)  # seconds of killing
Commands = Callable[..., Command]


def end(process: subprocess.Popen[str]) -> None:
    """Kill a command, its Java and its Python workers."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def numbers(folder: Path) -> set[int]:
    return {int(one.name) for one in folder.glob("*") if one.name.isdigit()} if folder.is_dir() else set()


def is_between(state: Path) -> bool:
    """Whether a trigger has begun and is not committed."""
    return bool(numbers(state / "offsets") - numbers(state / "commits"))


class Load:
    """Sends events all the time, in order within each partition, until it is told to stop."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self.sent: list[dict[str, object]] = []
        self._stop = Event()
        self._thread = Thread(target=self._send, args=(kafka, topic))
        self._thread.start()

    def _send(self, kafka: Kafka, topic: str) -> None:
        random = Random(5)
        while not self._stop.wait(0.1):
            first = len(self.sent)
            more: list[dict[str, object]] = [
                {"type": random.choice("AB"), "ts": at, "k": random.randrange(5), "_p": random.randrange(PARTITIONS)}
                for at in range(first, first + RATE // 10)
            ]
            kafka.send(topic, more)
            self.sent += more

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def test_nothing_is_lost_when_a_run_is_killed_under_load(kafka: Kafka, command: Commands, tmp_path: Path) -> None:
    source, sink = kafka.topic(PARTITIONS), kafka.topic()
    run = command(
        QUERY, "--source", f"s={kafka.source(source)}", "--sink", f"kafka://{kafka.address}/{sink}", "--positions"
    )
    load, random, done = Load(kafka, source), Random(7), 0
    spark = tmp_path / "state" / "spark"
    limit = time.monotonic() + LONGEST
    process = None
    try:
        while done < KILLS and time.monotonic() < limit:
            before = numbers(spark / "commits")
            process = run.begin()
            wait_until(lambda seen=before: bool(numbers(spark / "commits") - seen), process, STARTING)  # type: ignore[misc]
            if done % 2:
                time.sleep(random.uniform(0, 3))
            else:
                wait_until(lambda: is_between(spark), process, STARTING)
            end(process)
            done += 1
    finally:
        load.stop()
        if process is not None and process.poll() is None:
            end(process)
    run.finish("--until", "complete")
    records = [value for _, value in kafka.read(sink)]
    wanted = expected(load.sent, QUERY)
    twice = sum(count - 1 for count in Counter(one["id"] for one in records).values())
    print(f"\n{done} kills, {len(load.sent):,} events, {len(wanted):,} matches, {twice:,} records came twice")
    assert done == KILLS or time.monotonic() > limit
    assert done
    assert {one["id"]: one["positions"] for one in records} == wanted
    by_id: dict[str, str] = {}
    for one in records:
        assert by_id.setdefault(one["id"], json.dumps(one)) == json.dumps(one)
    assert run.rejects() == []


def test_a_folder_gets_each_match_once(kafka: Kafka, command: Commands, tmp_path: Path) -> None:
    """Killed between offsets and commit; files of matches are written again under the same names."""
    source = kafka.topic(PARTITIONS)
    given = [{"type": "AB"[i % 2], "ts": i, "k": i % 5, "_p": i % PARTITIONS} for i in range(600)]
    run = command(
        QUERY,
        "--source",
        f"s={kafka.source(source)}",
        "--sink",
        "out",
        "--positions",
        "--kafka",
        "maxOffsetsPerTrigger=90",
    )
    kafka.send(source, given[:300])
    spark = tmp_path / "state" / "spark"
    for _ in range(2):
        process = run.begin()
        wait_until(lambda: is_between(spark), process, STARTING)
        end(process)
    kafka.send(source, given[300:])
    run.finish("--until", "complete")
    lines = [line for file in sorted((tmp_path / "out").glob("*.jsonl")) for line in file.read_text().splitlines()]
    found = [json.loads(line) for line in lines]
    wanted = expected(given, QUERY)
    assert len(found) == len(wanted)
    assert {one["id"]: one["positions"] for one in found} == wanted
