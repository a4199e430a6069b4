"""Threads that nobody asked for: where the plan expects a gain, and nowhere else."""

from __future__ import annotations

import pytest

import weft
from weft import engines
from weft.runtime import local


def test_threads_are_used_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_THREADS", "2")
    monkeypatch.setattr(local, "MANY", 400)
    events = [{"type": "AB"[n % 2], "ts": n, "x": n * 7 % 50} for n in range(2000)]
    dear = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] > b[x] + 45 WITHIN 100 MILLISECONDS"
    cheap = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] > 45 AND b[x] > 45 WITHIN 10 MILLISECONDS"
    many = "SELECT * FROM S WHERE A+ AS a ; B AS b FILTER a[x] > 48 WITHIN 20 MILLISECONDS"
    for program, lanes in ((dear, 2), (cheap, 0), (many, 0)):
        run = engines.start(events, weft.compile(program), "local", time="ts", type="type")
        found = [row["id"] for rows in run.rows() for row in rows.to_pylist()]
        assert isinstance(run, local.LocalRun)
        assert len(run._lanes) == lanes
        assert found == [match.id for match in weft.detect(events, program, strategy="one")]


def test_one_thread_shares_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_THREADS", "1")
    monkeypatch.setattr(local, "MANY", 1)
    monkeypatch.setattr(engines, "GAIN", 0.0)
    program = weft.compile("SELECT * FROM S WHERE A ; B WITHIN 9 EVENTS")
    run = engines.start([{"type": "A", "ts": 1}], program, "local", time="ts", type="type")
    assert list(run.rows()) == []
    assert isinstance(run, local.LocalRun)
    assert run._lanes == ()
