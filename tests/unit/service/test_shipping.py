"""Work is sent to tasks in a way that a machine without weft can tell."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle

from weft.errors import UsageError
from weft.runtime.spark import kernels
from weft.runtime.spark.packing.frames import pack_batches
from weft.runtime.spark.runs.failures import own_error
from weft.runtime.spark.shipping import MISSING, shipped

RUN = """
import pickle, sys

import pytest
sys.modules["weft"] = None
list(pickle.load(open(sys.argv[1], "rb"))(iter([])))
"""


def test_an_executor_without_weft_says_so_in_one_sentence(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    here: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    sent.write_bytes(cloudpickle.dumps(shipped(partial(pack_batches, job=None, names=()), here)))  # type: ignore[arg-type]
    done = subprocess.run([sys.executable, "-c", RUN, str(sent)], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"RuntimeError: {MISSING}, in ")
    told = own_error(RuntimeError(done.stderr))
    assert isinstance(told, UsageError)
    assert str(told).startswith(MISSING)


def test_a_python_without_what_weft_needs_is_told_in_one_sentence() -> None:
    failure = RuntimeError("Traceback …\n    import pyarrow as pa\nModuleNotFoundError: No module named 'pyarrow'\n")
    told = own_error(failure)
    assert isinstance(told, UsageError)
    assert str(told).startswith("the Python of an executor has no pyarrow, which weft needs: install weft there")
    other = RuntimeError("ModuleNotFoundError: No module named 'mine'")
    assert own_error(other) is other


def test_loaded_modules_are_exempt_from_collection_for_the_first_tasks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[int] = []
    monkeypatch.setattr(kernels, "_begun", 0)
    monkeypatch.setattr(kernels.gc, "freeze", lambda: frozen.append(1))
    for _ in range(10):
        kernels.settle_worker()
    assert 0 < len(frozen) < 10
