"""A real Kafka broker on this machine, from Maven's packages: `python -m tests.kafka.broker --port 9092`.

Java and Maven are all it needs. Packages are kept in a folder (WEFT_TEST_CACHE, else ~/.cache/weft-tests), so that the
second start takes seconds. Tests take `broker()`, which uses free ports and a folder of its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

KAFKA = "4.3.1"
BROKER = (f"org.apache.kafka:kafka_2.13:{KAFKA}", "org.slf4j:slf4j-simple:1.7.36")
# Releases of Spark's packages that are taken where the registry has none of Spark's own release.
CONNECTOR, TOKENS = "4.2.0", "4.0.0"
PATIENCE = 60.0  # seconds for a broker to answer

POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>weft</groupId><artifactId>weft-tests</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{other}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{other}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/logs
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Unavailable(Exception):
    """Why there can be no broker, or no connector, on this machine."""


def cache() -> Path:
    return Path(os.environ.get("WEFT_TEST_CACHE") or Path.home() / ".cache" / "weft-tests")


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"there is no {name} on the PATH")
    return found


def maven(*arguments: str) -> None:
    done = subprocess.run(
        [tool("mvn"), "-q", "-B", *arguments], capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise Unavailable(f"Maven: {(lines or ['it failed'])[0][:300]}")


def broker_jars() -> Path:
    """The folder with the broker's jars, fetched once."""
    tool("java")
    folder = cache() / f"kafka-{KAFKA}"
    if not folder.exists():
        cache().mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache()) as work:
            dependencies = "".join(DEPENDENCY.format(*one.split(":")) for one in BROKER)
            (Path(work) / "pom.xml").write_text(POM.format(dependencies=dependencies))
            maven("-f", f"{work}/pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={work}/lib")
            with suppress(OSError):  # another process was quicker
                (Path(work) / "lib").rename(folder)
    return folder


def jar(*choices: str) -> Path:
    """The first of these artifacts that the registry has, without what it depends on."""
    for artifact in choices:
        _, name, version = artifact.split(":")
        path = cache() / f"{name}-{version}.jar"
        if path.exists():
            return path
        missing = cache() / f"{name}-{version}.none"
        if missing.exists():
            continue
        cache().mkdir(parents=True, exist_ok=True)
        try:
            with TemporaryDirectory(dir=cache()) as work:
                where = ("-Dmdep.stripVersion=false", f"-DoutputDirectory={work}", "-Dtransitive=false")
                maven("dependency:copy", f"-Dartifact={artifact}", *where)
                next(Path(work).glob("*.jar")).replace(path)
            return path
        except Unavailable:
            missing.touch()
    raise Unavailable(f"the registry has none of {', '.join(choices)}")


def patches(spark: str) -> list[str]:
    """A release of Spark, and earlier patches of it, whose packages go with it."""
    minor, patch = spark.rsplit(".", 1)
    return [f"{minor}.{one}" for one in range(int(patch), -1, -1)]


def connector_jars(spark: str) -> list[str]:
    """Spark's connector for Kafka and what it needs, of this release or of one that goes with it."""
    wanted = {"spark-sql-kafka-0-10_2.13": CONNECTOR, "spark-token-provider-kafka-0-10_2.13": TOKENS}
    found = [
        jar(*(f"org.apache.spark:{name}:{one}" for one in (*patches(spark), other))) for name, other in wanted.items()
    ]
    found += [jar("org.apache.kafka:kafka-clients:3.9.2"), jar("org.apache.commons:commons-pool2:2.13.1")]
    return [str(path) for path in found]


def own_jars(spark: str, what: str, known: dict[str, tuple[str, ...]]) -> list[str]:
    """The jars of a package that must be made for a release of Spark: those of the release, or Unavailable."""
    minor = ".".join(spark.split(".")[:2])
    if minor not in known:
        raise Unavailable(f"there is no {what} for Spark {minor}")
    return [str(jar(artifact)) for artifact in known[minor]]


def delta_jars(spark: str) -> list[str]:
    """Delta for a release of Spark, which must be its own."""
    known = {
        "4.0": ("io.delta:delta-spark_2.13:4.0.0", "io.delta:delta-storage:4.0.0"),
        "4.1": ("io.delta:delta-spark_4.1_2.13:4.1.0", "io.delta:delta-storage:4.1.0"),
        "4.2": ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    }
    return own_jars(spark, "Delta", known)


def avro_jars(spark: str) -> list[str]:
    """Avro for a release of Spark, which must be its own."""
    return [str(jar(*(f"org.apache.spark:spark-avro_2.13:{one}" for one in patches(spark))))]


def iceberg_jars(spark: str) -> list[str]:
    """The runtime of Iceberg for a release of Spark, which must be its own."""
    name = "org.apache.iceberg:iceberg-spark-runtime-{}_2.13:1.11.0"
    return own_jars(spark, "Iceberg", {minor: (name.format(minor),) for minor in ("4.0", "4.1")})


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def broker(folder: Path, port: int = 0) -> Iterator[str]:
    """A broker that runs meanwhile, with its files in the folder; its address as HOST:PORT."""
    jars = broker_jars()
    own, other = free_ports(2)
    own = port or own
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "server.properties"
    settings.write_text(PROPERTIES.format(port=own, other=other, folder=folder))
    java = [tool("java"), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    java += ["-cp", f"{jars}/*"]
    name = subprocess.run([*java, "kafka.tools.StorageTool", "random-uuid"], capture_output=True, text=True, check=True)
    made = [*java, "kafka.tools.StorageTool", "format", "-t", name.stdout.strip(), "-c", str(settings)]
    subprocess.run(made, capture_output=True, check=True)
    with (folder / "broker.log").open("w") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        try:
            _await(own, process, folder / "broker.log")
            yield f"127.0.0.1:{own}"
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        if process.poll() is not None:
            raise Unavailable(f"the broker ended: {log.read_text()[-500:]}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise Unavailable(f"the broker does not answer: {log.read_text()[-500:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a Kafka broker on this machine until Ctrl-C.")
    parser.add_argument("--port", type=int, default=9092)
    port = parser.parse_args().port
    try:
        with TemporaryDirectory() as folder, broker(Path(folder), port) as address:
            print(f"a broker listens at {address}; Ctrl-C ends it", flush=True)
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        pass
    except Unavailable as problem:
        sys.exit(f"no broker: {problem}")


if __name__ == "__main__":
    main()
