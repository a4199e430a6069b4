"""SQL in the workbench: checked, planned, completed, tried over sample rows, kept as a test; not run over events."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import weft
from weft.errors import UsageError
from weft.workbench.service import ProgramSource, Workbench
from weft.workbench.trying import Sample

EXAMPLES = Path(__file__).parents[2] / "examples"
FALLS = (EXAMPLES / "ticks" / "falls.sql").read_text()
LINES = [f"A,2026-01-01 00:00:0{n},{price}\n" for n, price in enumerate((9, 8, 7, 9))]
SAMPLE = Sample(rows="symbol,ts,price\n" + "".join(LINES))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    shutil.copytree(EXAMPLES / "ticks", tmp_path / "project" / "ticks")
    found = Workbench(tmp_path / "project")
    yield found
    found.close()


def test_a_query_is_checked_coloured_planned_and_completed(bench: Workbench) -> None:
    source = bench.program("ticks/falls.sql")
    assert source.language == "sql"
    checked = bench.check(source)
    assert checked.is_right
    assert checked.queries == ["falls"]
    coloured = {source.text[colour.start : colour.end] for colour in checked.colours if colour.kind == "keyword"}
    assert {"MATCH_RECOGNIZE", "PARTITION", "DEFINE"} <= coloured
    assert "class a, row by row" in bench.plan(source).text
    wrong = bench.check(ProgramSource(source.text.replace("PREV(price)", "PREV(PREV(price))"), "sql"))
    assert {finding.code for finding in wrong.findings} == {"nested-navigation"}
    offered = bench.complete(ProgramSource("SELECT * FROM t MATCH_RECOGNIZE (PART", "sql"), 37)
    assert "PARTITION" in [word.word for word in offered.words]


def test_a_query_is_tried_on_rows_and_files(bench: Workbench) -> None:
    source = bench.program("ticks/falls.sql")
    tried = bench.try_program(source, SAMPLE)
    assert (tried.total, tried.counts, tried.event_total) == (1, {"falls": 1}, 4)
    assert tried.matches[0]["event"]["bottom"] == 7
    assert bench.try_program(source, Sample(file="ticks/ticks.csv")).total == 2
    with pytest.raises(UsageError, match="there are no rows"):
        bench.try_program(source, Sample())
    with pytest.raises(UsageError, match="not for rows of SQL"):
        bench.why(source, SAMPLE, [0])


def test_what_is_found_is_kept_as_a_test(bench: Workbench) -> None:
    source = bench.program("ticks/falls.sql")
    path = bench.keep_as_test(source, SAMPLE, "one fall")
    assert bench.keep_as_test(source, replace(SAMPLE, time="when"), "another") == path
    report = bench.tests()
    assert report.problems == []
    assert [case.passed for case in report.cases if case.name == "one fall"] == [True]
    assert [case.passed for case in report.cases if case.name == "another"] == [True]
    assert path.endswith(".test.toml")


def test_a_query_does_not_run_over_events(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="SQL reads tables"):
        bench.submit(ProgramSource(FALLS, "sql"), SAMPLE, "run")


def test_a_notebook_shows_the_text_and_the_classes() -> None:
    shown = weft.compile(FALLS)._repr_html_()
    assert "MATCH_RECOGNIZE" in shown
    assert "class a" in shown
