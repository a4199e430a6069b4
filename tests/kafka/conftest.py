"""A broker, topics, and `weft run` as a command of its own, for tests with a real Kafka."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.kafka.broker import Unavailable, broker, connector_jars

from weft import api

Event = Mapping[str, object]


@dataclass
class Kafka:
    """A broker and what tests do with it."""

    address: str
    jars: list[str]
    _producers: list[Any] = field(default_factory=list)

    def topic(self, partitions: int = 1) -> str:
        """A new topic."""
        from kafka.admin import KafkaAdminClient, NewTopic

        name = f"t{uuid4().hex[:12]}"
        admin = KafkaAdminClient(bootstrap_servers=self.address)
        admin.create_topics([NewTopic(name, partitions, 1)])
        admin.close()
        return name

    def send(self, topic: str, events: Iterable[Event | bytes | None], partition: int | None = None) -> None:
        """Put events, or payloads, into a topic; `_p` of an event says into which partition."""
        from kafka import KafkaProducer

        if not self._producers:
            self._producers.append(KafkaProducer(bootstrap_servers=self.address, linger_ms=5))
        producer = self._producers[0]
        for event in events:
            if isinstance(event, Mapping):
                into = event.get("_p", partition)
                value = json.dumps({name: given for name, given in event.items() if name != "_p"}).encode()
                producer.send(topic, value, partition=into)
            else:
                producer.send(topic, event, partition=partition, key=b"k" if event is None else None)
        producer.flush()

    def read(self, topic: str) -> list[tuple[str, dict[str, Any]]]:
        """The records of a topic: keys, and values as JSON."""
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(bootstrap_servers=self.address)
        parts = [TopicPartition(topic, part) for part in consumer.partitions_for_topic(topic)]
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        left = sum(consumer.end_offsets(parts).values())
        found = []
        while left:
            for records in consumer.poll(1000).values():
                found += [((one.key or b"").decode(), json.loads(one.value)) for one in records]
                left -= len(records)
        consumer.close()
        return found

    def source(self, topic: str, **options: str) -> str:
        more = "&".join(f"{name}={value}" for name, value in options.items())
        return f"kafka://{self.address}/{topic}" + (f"?{more}" if more else "")

    def close(self) -> None:
        for producer in self._producers:
            producer.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A broker, and runs as commands, take minutes: they are for `make kafka`."""
    if "WEFT_KAFKA" not in os.environ:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="a real broker takes minutes: make kafka"))


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    pytest.importorskip("kafka", reason="kafka-python is not installed")
    import pyspark

    try:
        jars = connector_jars(pyspark.__version__)
        if ":" in os.environ["WEFT_KAFKA"]:  # one that runs already
            yield Kafka(os.environ["WEFT_KAFKA"], jars)
            return
        with broker(tmp_path_factory.mktemp("broker")) as address:
            found = Kafka(address, jars)
            yield found
            found.close()
    except Unavailable as reason:
        pytest.skip(f"no Kafka here: {reason}")


@dataclass
class Command:
    """`weft run` as a process."""

    folder: Path
    query: str
    jars: Sequence[str]
    arguments: Sequence[str]
    name: str = "q"  # of the query

    def begin(self, *more: str) -> subprocess.Popen[str]:
        """Start it."""
        (self.folder / f"{self.name}.ceql").write_text(self.query)
        jars = [word for jar in self.jars for word in ("--jars", jar)]
        command = [sys.executable, "-m", "weft", "run", f"{self.name}.ceql", "--checkpoint", "state", *jars]
        log = (self.folder / "run.log").open("a")
        environment = {**os.environ, "WEFT_RUNS": str(self.folder / "runs")}
        return subprocess.Popen(
            [*command, *self.arguments, *more, "--log-format", "text"],
            cwd=self.folder,
            stdout=log,
            stderr=log,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def finish(self, *more: str) -> str:
        """Run it to its end; its log."""
        process = self.begin(*more)
        code = process.wait(600)
        log = self.log
        assert code == 0, log
        return log

    @property
    def log(self) -> str:
        return (self.folder / "run.log").read_text()

    def rejects(self) -> list[dict[str, Any]]:
        """What was rejected, in the order of files and lines."""
        files = sorted((self.folder / "state" / "rejects").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def command(kafka: Kafka, tmp_path: Path) -> Callable[..., Command]:
    def made(query: str, *arguments: str) -> Command:
        return Command(tmp_path, query, kafka.jars, arguments)

    return made


def wait_until(done: Callable[[], bool], process: subprocess.Popen[str], seconds: float) -> None:
    """Wait for something to be so, while a process runs."""
    limit = time.monotonic() + seconds
    while not done():
        assert process.poll() is None, "the run has ended"
        assert time.monotonic() < limit, "it never came"
        time.sleep(0.2)


def expected(events: Iterable[Event], query: str) -> dict[str, list[int]]:
    """The matches that `detect` finds in this process: ids and positions."""
    plain = [{name: value for name, value in event.items() if name != "_p"} for event in events]
    return {match.id: list(match.positions) for match in api.detect(plain, api.compile(query))}
