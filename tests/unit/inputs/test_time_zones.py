"""Times of any zone are instants: neither the zone of the process nor daylight saving time changes what is found."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pytest

import weft

BERLIN = ZoneInfo("Europe/Berlin")
# 2024-10-27 in Berlin: the hour from two to three comes twice.
FIRST = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
INSTANTS = [FIRST + timedelta(minutes=30 * number) for number in range(6)]
QUERY = "SELECT * FROM S WHERE A ; A WITHIN 30 MINUTES"
WANTED = [(1_729_989_000_000 + 1_800_000 * n, 1_729_989_000_000 + 1_800_000 * (n + 1)) for n in range(5)]


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The zone of the process."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def _found(events: object) -> list[tuple[int, int]]:
    return [(match.start, match.end) for match in weft.detect(events, QUERY)]


def test_dicts_with_zones(zone: str) -> None:
    local = [{"type": "A", "ts": instant.astimezone(BERLIN)} for instant in INSTANTS]
    assert len({event["ts"].replace(tzinfo=None) for event in local}) < len(local)  # type: ignore[attr-defined]
    assert _found(local) == WANTED


def test_arrow_and_pandas_with_zones(zone: str) -> None:
    table = pa.table({"type": ["A"] * 6, "ts": pa.array(INSTANTS, pa.timestamp("us", "America/New_York"))})
    assert _found(table) == WANTED
    frame = pd.DataFrame({"type": "A", "ts": pd.to_datetime(INSTANTS, utc=True).tz_convert("Europe/Berlin")})
    assert _found(frame) == WANTED


def test_times_without_a_zone_are_taken_as_they_are(zone: str) -> None:
    plain = [{"type": "A", "ts": instant.replace(tzinfo=None)} for instant in INSTANTS]
    assert _found(plain) == WANTED


@pytest.mark.spark
def test_spark_with_another_session_zone(spark: object) -> None:
    session: object = spark
    before = session.conf.get("spark.sql.session.timeZone")  # type: ignore[attr-defined]
    try:
        for zone in ("America/St_Johns", "Europe/Berlin"):
            session.conf.set("spark.sql.session.timeZone", zone)  # type: ignore[attr-defined]
            rows = ", ".join(f"('A', timestamp_micros({int(one.timestamp() * 1e6)}))" for one in INSTANTS)
            frame = session.sql(f"SELECT * FROM VALUES {rows} AS t(type, ts)")  # type: ignore[attr-defined]
            assert _found(frame) == WANTED
    finally:
        session.conf.set("spark.sql.session.timeZone", before)  # type: ignore[attr-defined]
