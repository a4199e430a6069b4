"""A standalone cluster of processes on this machine: a master and workers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

import weft
from weft.runtime.spark.java import ensure_java

SPARK = Path(pyspark.__file__).parent
SOURCE = Path(weft.__file__).parents[1]


def environment() -> dict[str, str]:
    """Of the processes of a cluster: small, quiet, on this machine only; executors may die as often as they like."""
    given = dict(os.environ)
    ensure_java(given)
    small = {"SPARK_DAEMON_MEMORY": "200m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    conf = {"SPARK_HOME": str(SPARK), "SPARK_CONF_DIR": str(SOURCE / "weft" / "runtime" / "spark" / "conf")}
    python = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    patience = {"SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1"}
    return {**given, **small, **conf, **python, **patience}


@contextmanager
def cluster(folder: Path, names: tuple[str, ...] = ("one", "two")) -> Iterator[str]:
    """A master and workers of these names, each for one task at a time."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    where = ["--host", "127.0.0.1", "--webui-port", "0"]
    room = ["--cores", "1", "--memory", "600m"]
    workers = [["worker.Worker", url, *where, *room, "--work-dir", str(folder / name)] for name in names]
    commands = [["master.Master", *where, "--port", str(port)], *workers]
    started: list[subprocess.Popen[bytes]] = []
    env = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
    try:
        for name, *arguments in commands:
            command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
            started.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            await_port(port)
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def await_port(port: int) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("the master did not start")
