"""On a standalone cluster of processes, with executors that are killed: the same matches."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

import weft
from weft.runtime.spark.java import ensure_java

pytestmark = pytest.mark.spark
SPARK = Path(pyspark.__file__).parent
JOB = Path(__file__).with_name("cluster_job.py")
SOURCE = Path(weft.__file__).parents[1]


def environment() -> dict[str, str]:
    """Of the processes of a cluster: small, quiet, on this machine only."""
    given = dict(os.environ)
    ensure_java(given)
    small = {"SPARK_DAEMON_MEMORY": "200m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    conf = {"SPARK_HOME": str(SPARK), "SPARK_CONF_DIR": str(SOURCE / "weft" / "runtime" / "spark" / "conf")}
    python = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**given, **small, **conf, **python}


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and two workers, each for one task at a time."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    where = ["--host", "127.0.0.1", "--webui-port", "0"]
    room = ["--cores", "1", "--memory", "600m"]
    workers = [["worker.Worker", url, *where, *room, "--work-dir", str(folder / name)] for name in ("one", "two")]
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


def test_batch_and_stream_survive_the_loss_of_executors(tmp_path: Path) -> None:
    """Weft comes in an archive, kernels with the job, and one executor is lost in the batch and one in the stream."""
    archive = shutil.make_archive(str(tmp_path / "weft"), "zip", SOURCE, "weft")
    with cluster(tmp_path) as url:
        command = [sys.executable, "-W", "ignore", str(JOB), url, str(tmp_path), archive]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer.pop("matches") > 100
    assert "weft_code" in answer.pop("place")
    assert answer == {"batch": True, "stream": True, "compiled_again": [], "killed": ["batch", "stream"]}
