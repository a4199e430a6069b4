"""On a standalone cluster of processes, with executors that are killed: the same matches."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.standalone import SOURCE, cluster, environment

pytestmark = pytest.mark.spark
JOB = Path(__file__).with_name("cluster_job.py")


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
