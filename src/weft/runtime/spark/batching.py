"""How many rows Spark sends to Python at once, while weft runs an action whose rows are known to be small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weft.runtime.spark.compat import MEASURES_BATCHES
from weft.runtime.spark.jobs.job import Job

MOST_ROW_BYTES = 1 << 18  # of a row that tells a lane of events, in jobs that only count
_ROWS = 1 << 11  # at once: 512 MB of such rows, of which few tasks have as many
_SETTINGS = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ROWS),
}
_lock = Lock()
_running: WeakKeyDictionary[object, int] = WeakKeyDictionary()  # by session: such actions in all threads
_given: WeakKeyDictionary[object, dict[str, str]] = WeakKeyDictionary()  # by session: its own settings


@contextmanager
def unmeasured_batches(session: SparkSession, job: Job) -> Iterator[None]:
    """While an action of a job runs, let Spark bound its batches by their number of rows only.

    Else Spark 4 works out the size of a batch after each row that it adds, which costs as much as adding it. This is
    for jobs of which no row has more than MOST_ROW_BYTES. The session's settings are put back when the last of several
    such actions is done.
    """
    if not MEASURES_BATCHES or not job.is_anonymous or job.counts_by_range or job.stages > 1:
        yield
        return
    with _lock:
        _running[session] = _running.get(session, 0) + 1
        if _running[session] == 1:
            _given[session] = _set(session, _SETTINGS)
    try:
        yield
    finally:
        with _lock:
            _running[session] -= 1
            if not _running[session]:
                _set(session, _given.pop(session))


def _set(session: SparkSession, settings: dict[str, str]) -> dict[str, str]:
    """Change settings, and return what they were; a server that lets nobody change them keeps its own."""
    before: dict[str, str] = {}
    try:
        for name, value in settings.items():
            own = session.conf.get(name)
            session.conf.set(name, value)
            before[name] = str(own)
    except PySparkException:
        pass
    return before
