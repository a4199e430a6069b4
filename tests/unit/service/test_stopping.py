"""A run is stopped after the trigger in progress, also when Spark's Java has ended first."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from weft.runtime.spark.runs.stopping import stop_query


class _Query:
    """A query with some looks at its trigger left before it is done; with `fault`, its Java has gone at `when`."""

    def __init__(self, looks: int = 0, fault: Exception | None = None, when: str = "") -> None:
        self.looks, self.fault, self.when, self.stopped = looks, fault, when, 0

    def _gone(self, when: str) -> None:
        if self.fault is not None and when == self.when:
            raise self.fault

    @property
    def isActive(self) -> bool:
        self._gone("active")
        return True

    @property
    def status(self) -> dict[str, Any]:
        self._gone("status")
        self.looks -= 1
        return {"isTriggerActive": self.looks >= 0}

    def stop(self) -> None:
        self._gone("stop")
        self.stopped += 1


def test_the_trigger_at_work_ends_before_the_query_is_stopped() -> None:
    query = _Query(looks=3)
    stop_query(cast(StreamingQuery, query), 30.0)
    assert (query.looks, query.stopped) == (-1, 1)


def test_a_trigger_without_end_is_stopped() -> None:
    query = _Query(looks=10**9)
    stop_query(cast(StreamingQuery, query), 0.0)
    assert query.stopped == 1


@pytest.mark.parametrize("when", ["active", "status", "stop"])
@pytest.mark.parametrize("fault", [Py4JError("x"), Py4JNetworkError("x"), PySparkException("x"), OSError()])
def test_java_that_has_gone_is_told(when: str, fault: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "weft.run"):
        stop_query(cast(StreamingQuery, _Query(fault=fault, when=when)), 30.0)
    assert "resumes from the checkpoint" in caplog.text
