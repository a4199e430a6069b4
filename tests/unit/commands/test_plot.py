"""`weft.plot`: one page with the matches, the events and no address of anything outside it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import weft
from weft.errors import UsageError

PAYMENTS = [("a", 3, 0), ("b", 40, 1), ("a", 900, 2), ("b", 2, 3), ("b", 700, 5), ("c", 8, 6)]
TEXT = """SELECT small, large FROM S WHERE Payment AS small; Payment AS large
FILTER small[amount < 10] AND large[amount > 500] PARTITION BY [card] WITHIN 1 HOUR"""


def payments(of: Any = lambda ts: ts) -> list[dict[str, Any]]:
    return [{"type": "Payment", "ts": of(ts), "card": card, "amount": amount} for card, amount, ts in PAYMENTS]


def data_of(page: weft.Plot) -> dict[str, Any]:
    found = re.search(r'<script id="data"[^>]*>(.*?)</script>', page.html, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.mark.parametrize("form", ["detection", "arrow", "pandas", "polars"])
def test_matches_and_events_in_rows_by_key(form: str) -> None:
    found: Any = weft.detect(payments(), TEXT)
    matches = found if form == "detection" else getattr(found, f"to_{form}")()
    data = data_of(weft.plot(matches, payments(), key="card"))
    assert data["title"] == "2 matches"
    assert data["rows"] == ["a", "b", "c"]
    assert [[point[:2] for point in one["events"]] for one in data["matches"]] == [[[0, 0], [2, 0]], [[3, 1], [5, 1]]]
    assert len(data["events"]) == len(PAYMENTS)


def test_the_columns_for_time_and_type_are_those_of_detect() -> None:
    rows = [{"at": row["ts"], "what": row["type"], "card": row["card"], "amount": row["amount"]} for row in payments()]
    data = data_of(weft.plot(weft.detect(rows, TEXT, time="at", type="what"), rows, key="card"))
    assert data == data_of(weft.plot(weft.detect(payments(), TEXT), payments(), key="card"))


def test_dates_and_types() -> None:
    events = pa.Table.from_pylist(payments(lambda ts: datetime(2026, 5, 1, 12, ts, tzinfo=UTC)))
    data = data_of(weft.plot(weft.detect(events, TEXT)))
    assert data["dates"] is True
    assert data["rows"] == ["Payment"]
    assert data["events"] == []


def test_texts_of_events_stay_data(tmp_path: Path) -> None:
    events = [{**event, "card": "</script><b>"} for event in payments()]
    page = weft.plot(weft.detect(events, TEXT), events, key="card")
    assert "</script><b>" not in page.html
    assert page.save(tmp_path / "page.html").read_text() == page.html
    assert not re.search(r"(?:src|href)=|https?://", page.html)
    assert page._repr_html_().startswith("<iframe")


def test_other_values_are_refused() -> None:
    with pytest.raises(UsageError, match="column `variables`"):
        weft.plot([1, 2])
