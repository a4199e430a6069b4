"""Addresses of topics and tables, options of Kafka's clients, and the packages that a Spark lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft import api
from weft.connectors.adapters.registry import problem_of
from weft.connectors.uris import as_uri
from weft.errors import UsageError
from weft.runtime.data.events import STREAM

pytest.importorskip("pyspark")
from weft.runtime.spark.connections.addresses import (
    DeltaAddress,
    KafkaAddress,
    is_connection,
    sink_address,
    source_address,
)
from weft.runtime.spark.connections.kafka import client_options
from weft.runtime.spark.connections.packages import connection_settings, missing
from weft.runtime.spark.runs.inputs import inputs_of
from weft.runtime.spark.runs.options import RunOptions
from weft.runtime.spark.runs.outputs import sink_of

QUERY = "SELECT * WHERE A AS a ; B AS b WITHIN 9 EVENTS"


def test_a_topic_is_named_by_brokers_and_options(tmp_path: Path) -> None:
    found = source_address("kafka://a:1,b/trades?format=json&starting=latest", "source t")
    assert found == KafkaAddress("a:1,b:9092", "trades", {"format": "json", "starting": "latest"})
    (tmp_path / "s.ddl").write_text("ts BIGINT, type STRING")
    found = source_address(f"kafka://a:1/t?schema={tmp_path}/s.ddl", "source t")
    assert isinstance(found, KafkaAddress)
    assert found.schema == "ts BIGINT, type STRING"
    inline = source_address("kafka://a:1/t?schema=ts%20BIGINT,type+STRING", "source t")
    assert isinstance(inline, KafkaAddress)
    assert inline.schema == "ts BIGINT,type STRING"
    assert sink_address("kafka://a:1/t?key=event.user").options == {"key": "event.user"}


def test_a_table_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for uri in ("delta:in/t", "delta://in/t"):
        assert source_address(uri, "source t") == DeltaAddress(str(tmp_path / "in" / "t"))
    assert source_address("delta:///x/t?starting=5", "source t") == DeltaAddress("/x/t", {"starting": "5"})
    assert source_address("delta:s3a://bucket/t", "source t") == DeltaAddress("s3a://bucket/t")
    assert not is_connection("in")
    assert not is_connection("file:///in")


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("kafka://a:1", "is not kafka://HOST:PORT/TOPIC"),
        ("kafka:///t", "is not kafka://HOST:PORT/TOPIC"),
        ("kafka://a:1/no/topic", "is not kafka://HOST:PORT/TOPIC"),
        ("kafka://me:word@a:1/t", "is not kafka://HOST:PORT/TOPIC"),
        ("kafka://a:1/t?formt=json", "did you mean 'format'"),
        ("kafka://a:1/t?format=xml", "payloads are json or avro"),
        ("kafka://a:1/t?format=avro", "schema=FILE.avsc"),
        ("delta:", "write delta:PATH"),
        ("delta:t?format=json", "no option 'format'"),
    ],
)
def test_a_wrong_source_is_told(uri: str, message: str) -> None:
    with pytest.raises(UsageError, match="source t: ") as told:
        source_address(uri, "source t")
    assert message in str(told.value)


def test_the_key_of_records_is_a_part_of_a_match() -> None:
    with pytest.raises(UsageError, match=r"id, query or event\.FIELD"):
        sink_address("kafka://a:1/t?key=positions")


def test_options_go_to_kafkas_clients_and_to_the_connector(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# secret\nsasl.jaas.config=a b=\\\n  c;\n\nsecurity.protocol = SASL_SSL\n")
    assert client_options([f"@{file}", "maxOffsetsPerTrigger=5", "kafka.client.id=x", "fetch.max.bytes=9"]) == {
        "kafka.sasl.jaas.config": "a b=c;",
        "kafka.security.protocol": "SASL_SSL",
        "maxOffsetsPerTrigger": "5",
        "kafka.client.id": "x",
        "kafka.fetch.max.bytes": "9",
    }


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("oops", "OPTION=VALUE"),
        ("=1", "OPTION=VALUE"),
        ("subscribe=t", "the address names the topic"),
        ("kafka.bootstrap.servers=a", "the address says it"),
        ("maxoffsetspertrigger=5", "did you mean 'maxOffsetsPerTrigger'"),
        ("@none.properties", "none.properties"),
    ],
)
def test_wrong_options_are_told(option: str, message: str) -> None:
    with pytest.raises(UsageError, match="--kafka") as told:
        client_options([option])
    assert message in str(told.value)


def test_the_package_that_is_missing_is_named_for_this_spark() -> None:
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0" in str(missing("4.3.0", "kafka"))
    assert "org.apache.spark:spark-avro_2.13:4.1.1" in str(missing("4.1.1", "avro"))
    assert "io.delta:delta-spark_4.2_2.13:4.4.0" in str(missing("4.2.1", "delta"))
    assert "Delta does not support Spark 4.9.0 yet" in str(missing("4.9.0", "delta"))


def test_a_session_for_tables_has_deltas_extension() -> None:
    assert connection_settings([]) == {}
    found = connection_settings([DeltaAddress("t")], ["a:b:1", "c:d:2"], ["x.jar"])
    assert found["spark.jars.packages"] == "a:b:1,c:d:2"
    assert found["spark.jars"] == "x.jar"
    assert "Delta" in found["spark.sql.extensions"]


def test_sources_are_numbered_with_folders_first(tmp_path: Path) -> None:
    sources = [("t", "kafka://a:1/trades?type=A"), ("f", str(tmp_path)), ("d", f"delta:{tmp_path}/t")]
    inputs = inputs_of(sources, api.compile(QUERY), "type")
    assert [folder.name for folder in inputs.folders] == ["f"]
    assert [(own.number, own.name) for own in inputs.connected] == [(1, "t"), (2, "d")]
    assert inputs.connected[0].defaults == {STREAM: "t", "type": "A"}
    partitions = frozenset({"1/0", "1/1"})
    names = {"0": "f", "1/0": "t (partition 0)", "1/1": "t (partition 1)", "2": "d"}
    assert inputs.names(partitions) == names
    lateness = inputs.lateness(RunOptions("out", "state", idle_after=2.0), "ms", partitions)
    assert lateness.awaited == {"0", "1/0", "1/1", "2"}
    assert (lateness.name_of(0, 7), lateness.name_of(1, 7)) == ("0", "1/7")
    assert [lateness.idle_after_of(name) for name in ("0", "1/7", "2")] == [None, 2 * 10**9, 2 * 10**9]


def test_declared_rates_say_when_the_sources_of_a_run_are_idle(tmp_path: Path) -> None:
    text = 'topology "t" external A(x: int) < "a" [0.25] external B(x: int) < "b" [9.0] external C(x: int) < "c" [2.0] '
    program = api.compile(text + "Q(a.x): (A/a ; B/b) ; C/c", "step")
    inputs = inputs_of([("A", str(tmp_path)), ("B", "kafka://a:1/b"), ("D", str(tmp_path))], program, "type")
    assert inputs.idle(RunOptions("out", "state")) == {"A": 4.0, "B": 1.0}
    assert inputs.idle(RunOptions("out", "state", until="read")) == {}
    assert inputs.idle(RunOptions("out", "state", idle_after=None)) == {}
    partitions = frozenset(f"{inputs.connected[0].number}/{part}" for part in range(3))
    lateness = inputs.lateness(RunOptions("out", "state"), "ms", partitions)
    assert lateness.idle_after == {inputs.connected[0].number: 3 * 10**9}


def test_topics_and_tables_are_adapters_of_weft_run() -> None:
    for text in ("kafka://a:1/t", "delta:t"):
        uri = as_uri(text)
        assert uri is not None
        assert [problem_of(uri, role, "spark") for role in ("source", "sink")] == [None, None]
        assert "weft run" in (problem_of(uri, "source", "local") or "")
    for text, message in (("kafka://a:1/t?format=xml", "json or avro"), ("kafka://a:1", "HOST:PORT/TOPIC")):
        uri = as_uri(text)
        assert uri is not None
        assert message in (problem_of(uri, "source", "spark") or "")


def test_records_of_a_topic_are_json(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave out --format"):
        sink_of(RunOptions("kafka://a:1/t", str(tmp_path), format="parquet"), ["q"])
    with pytest.raises(UsageError, match="none of a folder"):
        sink_of(RunOptions("s3://a/t", str(tmp_path)), ["q"])
