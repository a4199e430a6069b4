"""On clusters of processes, with executors that are killed: the same matches.

The usual one is a master and two workers on this machine, and the stream keeps its state in Spark's store. With
WEFT_CLUSTER=three there are three, and another stream with its state in files; WEFT_CLUSTER=local-cluster lets the
driver start these.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.spark.standalone import SOURCE, cluster, environment

pytestmark = pytest.mark.spark
JOB = Path(__file__).with_name("cluster_job.py")
LOCAL = "local-cluster[3,1,1024]"
CLUSTER = os.environ.get("WEFT_CLUSTER")
STATES = ("spark", "files") if CLUSTER else ("spark",)


@contextmanager
def master(folder: Path) -> Iterator[str]:
    """What Spark calls the cluster."""
    if CLUSTER == "local-cluster":
        yield LOCAL
    else:
        with cluster(folder, ("one", "two", "three") if CLUSTER == "three" else ("one", "two")) as url:
            yield url


def test_batch_and_streams_survive_the_loss_of_executors(tmp_path: Path) -> None:
    """Weft comes in an archive, kernels with the job, and an executor is lost in the batch and in each stream."""
    archive = shutil.make_archive(str(tmp_path / "weft"), "zip", SOURCE, "weft")
    with master(tmp_path) as url:
        command = [sys.executable, "-W", "ignore", str(JOB), url, str(tmp_path), archive, *STATES]
        done = subprocess.run(
            command, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
        )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer.pop("matches") > 100
    assert "weft_code" in answer.pop("place")
    assert answer.pop("executors") >= 1  # one may be on its way back
    streams, killed = dict.fromkeys(STATES, True), sorted(["batch", *STATES])
    assert answer == {"batch": True, "streams": streams, "compiled_again": [], "killed": killed}
