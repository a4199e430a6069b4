"""`weft run` with topics of a real broker: what goes in comes out, whatever partition it came by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.kafka.conftest import Command, Kafka, expected

TOGETHER = True
QUERY = "SELECT * WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 6 MILLISECONDS"
Commands = Callable[..., Command]


def events(count: int, partitions: int = 1) -> list[dict[str, object]]:
    return [
        {"type": "AB"[i % 3 == 0], "ts": i, "k": i % 5, "v": f"é{i}", "_p": (i * 7) % 11 % partitions}
        for i in range(count)
    ]


def test_a_topic_is_matched_into_another(kafka: Kafka, command: Commands) -> None:
    source, sink = kafka.topic(3), kafka.topic()
    given = events(200, 3)
    kafka.send(source, given[:120])
    kafka.send(source, [b"nonsense", None, b'{"type":"A"}'], partition=2)
    kafka.send(source, given[120:])
    run = command(
        QUERY,
        "--source",
        f"s={kafka.source(source)}",
        "--sink",
        f"kafka://{kafka.address}/{sink}?key=id",
        "--positions",
    )
    run.finish("--until", "complete")
    records = kafka.read(sink)
    found = {value["id"]: value["positions"] for _, value in records}
    assert found == expected(given, QUERY)
    assert [key for key, _ in records] == [value["id"] for _, value in records]
    rejects = run.rejects()
    assert Counter((one["topic"], one["partition"]) for one in rejects) == {(source, 2): 3}
    reasons = {one["offset"] - min(r["offset"] for r in rejects): one["reason"] for one in rejects}
    assert [reasons[at].split(":")[0] for at in range(3)] == ["not JSON", "no payload", "no time"]
    assert next(one["event"] for one in rejects if one["reason"].startswith("not JSON")) == {"payload": "nonsense"}


def test_a_backlog_of_one_partition_is_not_late_because_of_another(kafka: Kafka, command: Commands) -> None:
    """One record far ahead in one partition, and a backlog that takes several triggers in the others."""
    source, sink = kafka.topic(3), kafka.topic()
    given = events(300, 2)
    kafka.send(source, given)
    kafka.send(source, [{"type": "C", "ts": 1_000_000}], partition=2)
    run = command(QUERY, "--source", f"s={kafka.source(source)}", "--sink", f"kafka://{kafka.address}/{sink}?key=query")
    log = run.finish("--until", "complete", "--kafka", "maxOffsetsPerTrigger=40")
    assert log.count(" info trigger ") >= 5
    assert "late" not in log
    records = kafka.read(sink)
    assert {value["id"] for _, value in records} == expected(given, QUERY).keys()
    assert {key for key, _ in records} == {"q"}


def test_a_schema_gives_payloads_their_types(kafka: Kafka, command: Commands) -> None:
    source, sink = kafka.topic(2), kafka.topic()
    rows = [{"type": "A", "at": f"2026-11-18T08:00:{i:02d}Z", "k": i % 2, "_p": i % 2} for i in range(20)]
    kafka.send(source, [*rows, {"type": "A", "at": "2026-11-18T09:00:00Z", "k": "no number", "_p": 1}])
    schema = "at TIMESTAMP, type STRING, k INT".replace(" ", "%20")
    query = "SELECT a[k] WHERE A AS a FILTER a[k] = 1"
    run = command(query, "--source", f"s={kafka.source(source, format='json', schema=schema)}", "--time", "at")
    run.arguments = [*run.arguments, "--sink", f"kafka://{kafka.address}/{sink}"]
    run.finish("--until", "complete")
    assert [value["event"] for _, value in kafka.read(sink)] == [{"k": 1}] * 10
    (reject,) = run.rejects()
    assert (reject["topic"], reject["partition"], reject["offset"]) == (source, 1, 10)
    assert "fits the schema" in reject["reason"]
    assert "no number" in reject["event"]["payload"]


def test_mistakes_are_told_in_one_sentence(kafka: Kafka, command: Commands, tmp_path: Path) -> None:
    run = command(QUERY, "--source", f"s={kafka.source('nowhere')}", "--sink", "out")
    assert run.begin().wait(120) == 2
    assert f"kafka://{kafka.address}/nowhere: the broker has no topic 'nowhere'" in run.log
    assert "Traceback" not in run.log
    run = command(QUERY, "--source", "s=kafka://127.0.0.1:9/t", "--sink", "out")
    assert run.begin().wait(120) == 2
    assert "no Kafka broker answers at 127.0.0.1:9" in run.log


def test_without_its_package_the_message_names_the_artifact(command: Commands) -> None:
    import pyspark

    run = command(QUERY, "--source", "s=kafka://127.0.0.1:9/t", "--sink", "out")
    run.jars = []
    assert run.begin().wait(120) == 2
    assert f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}" in run.log
    assert "Traceback" not in run.log
