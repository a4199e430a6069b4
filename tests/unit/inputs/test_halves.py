"""Texts of dicts and frames that are not Unicode: such events are rejected, whoever reads them for what."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import weft

HALF = "\ud800"
REASON = "not Unicode: half of a pair of surrogates"
ASKED = "SELECT a FROM S WHERE A AS a FILTER a[t = '?' OR t = 'x'] WITHIN 10 EVENTS"
GOOD = {"type": "A", "ts": 2, "t": "x"}
inside: list[object] = [HALF]
inside.append(inside)
BAD: list[dict[str, Any]] = [
    {"type": "A", "ts": 1, "t": HALF},
    {"type": "A", "ts": 1, "t": "x", "unread": f"é{HALF}"},
    {"type": "A", "ts": 1, "t": "x", HALF: 5},
    {"type": HALF, "ts": 1},
    {"type": "A", "ts": HALF, "t": "x"},
    {"type": "A", "ts": 1, "t": "x", "unread": {"deep": inside}},
    {"type": "A", "ts": 1, "t": "x", "unread": {HALF: 1}},
]


@pytest.mark.parametrize("bad", BAD, ids=ascii)
@pytest.mark.parametrize("engine", ["local", "meaning", "live", "passing"])
def test_an_event_that_is_not_unicode_is_rejected(bad: dict[str, Any], engine: str) -> None:
    rejects: list[weft.Rejected] = []
    events = [bad, GOOD]
    if engine == "live":
        found = list(weft.live(ASKED, rejects=rejects).push(events))
    elif engine == "passing":
        found = list(weft.detect(iter(events), ASKED, rejects=rejects))
    else:
        found = list(weft.detect(events, ASKED, engine=engine, rejects=rejects))
    assert [match.positions for match in found] == [(0,)]
    assert [(reject.row, reject.reason) for reject in rejects] == [(0, REASON)]
    shown = weft.detect(events, ASKED, rejects=[]).to_arrow()
    assert len(shown) == 1


def test_rows_of_frames_are_rejected() -> None:
    rejects: list[weft.Rejected] = []
    texts = pd.Series([HALF, "x", 5], dtype=object)
    frame = pd.DataFrame({"type": ["A", "A", "A"], "ts": [1, 2, 3], "t": texts, "other": texts[::-1].values})
    assert len(weft.detect(frame, ASKED, rejects=rejects).to_arrow()) == 1
    assert [(reject.row, reject.reason) for reject in rejects] == [(0, REASON), (2, REASON)]


def test_other_texts_and_values_of_any_kind_are_taken() -> None:
    texts = ["", "é", "\U0001f600", None, 5, 1.5, True, {"a": ["b"]}, b"\xed\xa0\x80"]
    rejects: list[weft.Rejected] = []
    events = [{"type": "A", "ts": at, "t": "x", "more": text} for at, text in enumerate(texts)]
    assert weft.count(events, ASKED, rejects=rejects) == {"q": len(texts)}
    assert rejects == []
