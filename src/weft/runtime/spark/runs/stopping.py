"""Stopping a query: it finishes the trigger in progress, even if its Java process has ended already."""

from __future__ import annotations

import logging
import time

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

LOG = logging.getLogger("weft.run")


def stop_query(query: StreamingQuery, patience: float) -> None:
    """Let the trigger in progress end, if that does not take too long, and stop.

    A service manager signals all processes, so that Java may end first: committed work is in the checkpoint, and the
    run resumes from there.
    """
    try:
        limit = time.monotonic() + patience
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < limit:
            time.sleep(0.02)
        if query.isActive:
            query.stop()
    except (PySparkException, Py4JError, OSError):
        LOG.warning("Spark's Java ended before the run could be stopped; the same command resumes from the checkpoint")
