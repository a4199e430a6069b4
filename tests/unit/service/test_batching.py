"""Settings of a session are changed while matches are counted, and put back by the last of several threads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from weft.runtime.spark.batching import unmeasured_batches

ROWS, BYTES = (f"spark.sql.execution.arrow.{name}" for name in ("maxRecordsPerBatch", "maxBytesPerBatch"))
COUNTING: Any = SimpleNamespace(is_anonymous=True, counts_by_range=False, stages=1)


class Settings:
    """The part of a session that is used."""

    def __init__(self, *, fixed: bool = False) -> None:
        self.values, self.fixed = {ROWS: "10000", BYTES: "67108864b"}, fixed
        self.conf: Any = self

    def get(self, name: str) -> str:
        return self.values[name]

    def set(self, name: str, value: str) -> None:
        if self.fixed:
            raise PySparkException("not allowed")
        self.values[name] = value


def test_settings_are_put_back_by_the_last_action() -> None:
    session: Any = Settings()
    before = dict(session.values)
    first, second = unmeasured_batches(session, COUNTING), unmeasured_batches(session, COUNTING)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert session.values == {ROWS: "2048", BYTES: str(2**31 - 1)}
    second.__exit__(None, None, None)
    assert session.values == before


def test_settings_are_put_back_after_a_failure_and_kept_where_rows_are_large() -> None:
    session: Any = Settings()
    before = dict(session.values)
    with pytest.raises(ValueError, match="stop"), unmeasured_batches(session, COUNTING):
        raise ValueError("stop")
    assert session.values == before
    for other in ({"is_anonymous": False}, {"counts_by_range": True}, {"stages": 2}):
        job: Any = SimpleNamespace(**{**vars(COUNTING), **other})
        with unmeasured_batches(session, job):
            assert session.values == before


def test_a_server_may_keep_its_settings() -> None:
    session: Any = Settings(fixed=True)
    before = dict(session.values)
    with unmeasured_batches(session, COUNTING):
        assert session.values == before
