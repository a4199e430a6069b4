"""The embedded Spark session: local, quiet, without a user interface; no cluster and no service needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from weft.runtime.spark.java import ensure_java

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# What streaming with weft needs of any session; set again on sessions that the user brings.
STREAMING_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
EMBEDDED_SETTINGS = {
    "spark.app.name": "weft",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.python.daemon.module": "weft.runtime.spark.daemon",
    **STREAMING_SETTINGS,
}


def spark_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The running session, or a new one on this machine's cores (`master` says otherwise)."""
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    ensure_java()
    # Workers unpickle this process's functions: they must run the same interpreter.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Read before the session exists, so that the first log lines are quiet too.
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "conf"))
    builder = SparkSession.builder
    for name, value in {**EMBEDDED_SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    if master is not None or "SPARK_MASTER" not in os.environ:
        builder = builder.master(master or "local[*]")
    return builder.getOrCreate()
