"""What all tests share: one small Spark session, the order of tests, and how random cases are drawn."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController

# Quick to start instead of fast in the long run.
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "3",
}

# The same random cases each time, so that a change is judged by what it changes; others when their number is given.
settings.register_profile("weft", max_examples=50, derandomize="WEFT_EXAMPLES" not in os.environ)
settings.load_profile("weft")

# A shell starts what it puts into the background without Ctrl-C, and commands that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark comes last: it has processes of its own, which find the kernels compiled by then."""
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Tests are dealt to processes one by one, but those of a module that says TOGETHER all to one process.

    Groups of pytest-xdist 3.8 do nothing under pytest 9.2, so modules are looked at here.
    """
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False  # Spark stays last

    class Dealing(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            return module if belongs_together(config.rootpath / module) else nodeid

        def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
            """Forget what is done: all units of a process are looked through several times in each test."""
            super().mark_test_complete(node, item_index, duration)
            scope = self._split_scope(self.registered_collections[node][item_index])
            if all(self.assigned_work[node][scope].values()):
                del self.assigned_work[node][scope]

    return Dealing(config, log)


def pytest_collection_finish() -> None:
    """Keep the tests and libraries out of the search for garbage, which takes a tenth of the time otherwise."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@cache
def belongs_together(module: Path) -> bool:
    return "\nTOGETHER = " in module.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from weft.runtime.spark.session import spark_session

    session = spark_session("local[2]", SETTINGS)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _session_for_marked_tests(request: pytest.FixtureRequest) -> None:
    """Every test marked `spark` runs on the one session, also where weft would start its own."""
    if request.node.get_closest_marker("spark") is not None:
        request.getfixturevalue("spark")
