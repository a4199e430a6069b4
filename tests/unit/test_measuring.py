"""Statistics of events: what `weft.measure` and `weft stats` find, and what becomes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app

QUERY = """
SELECT * FROM A a ; B b ; C c
WHERE FILTER(a.k = b.k), FILTER(a.k = c.k), a.x > 2, c.s = 'yes', b.x > a.x
"""
EVENTS = [
    {"type": "ABBC"[n % 4], "ts": 250 * n, "k": n % 8 // 4, "x": n % 5, "s": "yes" if n % 8 == 3 else "no"}
    for n in range(41)
]


def test_rates_and_fractions_are_those_of_the_events() -> None:
    found = weft.measure(EVENTS, weft.compile(QUERY, "eql"))
    assert found.rate("A") == (1.1, "measured")
    assert found.rate("B") == (2.0, "measured")
    above = [event for event in EVENTS if event["type"] == "A" and int(str(event["x"])) > 2]
    assert found.fraction("a.x > 2", "A.x > 2") == (len(above) / 11, "measured")
    assert found.fraction("C.s = 'yes'") == (0.5, "measured")
    ties = found.fraction("A.k = B.k")
    assert ties is not None
    assert ties.value == pytest.approx((6 * 10 + 5 * 10) / (11 * 20))
    assert found.fraction("B.k = C.k") is not None, "as neighbours, to which the key is spread"


def test_a_sample_is_of_the_first_events() -> None:
    assert weft.measure(EVENTS, weft.compile(QUERY, "eql"), sample=4).rates.keys() == {"A", "B", "C"}
    assert weft.measure(EVENTS, weft.compile(QUERY, "eql"), sample=2).rates.keys() == {"A", "B"}


def test_conditions_of_ceql_are_measured_too() -> None:
    program = weft.compile("SELECT * FROM S WHERE (A AS a; B AS b) FILTER a[x > 2] WITHIN 9 EVENTS", "ceql")
    assert weft.measure(EVENTS, program).fraction("A.x > 2") is not None


def test_integers_and_truths_are_different_keys() -> None:
    events = [{"type": "A", "ts": 1, "k": 1}, {"type": "B", "ts": 2, "k": True}]
    found = weft.measure(events, weft.compile("SELECT * FROM A a ; B b WHERE FILTER(a.k = b.k)", "eql"))
    assert found.fraction("A.k = B.k") == (0, "measured")


class TestCommand:
    def run(self, folder: Path, *more: str) -> tuple[int, str]:
        (folder / "q.eql").write_text(QUERY)
        (folder / "e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
        done = CliRunner().invoke(app, ["stats", str(folder / "q.eql"), "--events", str(folder / "e.jsonl"), *more])
        return done.exit_code, done.output

    def test_what_it_writes_is_what_explain_reads(self, tmp_path: Path) -> None:
        file = tmp_path / "rates.json"
        assert self.run(tmp_path, "--out", str(file)) == (0, "")
        arguments = ["explain", str(tmp_path / "q.eql"), "--stage", "optimized", "--statistics", str(file), "--json"]
        shown = json.loads(CliRunner().invoke(app, arguments).stdout)
        assert shown["statistics"]["rates"]["A"] == {"value": 1.1, "origin": "measured"}
        assert shown["queries"][0]["cost"]["after"] <= shown["queries"][0]["cost"]["before"]

    def test_goes_to_standard_output(self, tmp_path: Path) -> None:
        code, text = self.run(tmp_path)
        assert code == 0
        assert json.loads(text)["rates"]["C"]["origin"] == "measured"

    def test_no_events_are_nothing_to_measure(self, tmp_path: Path) -> None:
        (tmp_path / "q.eql").write_text(QUERY)
        (tmp_path / "e.jsonl").write_text("")
        done = CliRunner().invoke(app, ["stats", str(tmp_path / "q.eql"), "--events", str(tmp_path / "e.jsonl")])
        assert done.exit_code != 0


@pytest.mark.parametrize("optimize", [True, False])
def test_detect_and_count_take_statistics_and_run_as_written_when_asked(optimize: bool) -> None:
    known = weft.Statistics({"A": 100, "B": 1, "C": 50})
    found = list(weft.detect(EVENTS, weft.compile(QUERY, "eql"), optimize=optimize, statistics=known))
    meant = list(weft.detect(EVENTS, weft.compile(QUERY, "eql"), engine="meaning"))
    assert [match.id for match in found] == [match.id for match in meant]
    assert [match.bindings for match in found] == [match.bindings for match in meant]
    assert weft.count(EVENTS, weft.compile(QUERY, "eql"), optimize=optimize, statistics=known) == {"q": len(meant)}


def test_results_have_their_columns_in_the_order_of_the_text() -> None:
    program = weft.compile("SELECT * FROM (A a | B b) | C c", "eql")
    known = weft.Statistics({"A": 100, "B": 10, "C": 1})
    tables = [weft.detect(EVENTS, program, statistics=known, optimize=flag).to_arrow() for flag in (True, False)]
    assert tables[0].equals(tables[1])


def test_wrong_statistics_are_refused() -> None:
    with pytest.raises(weft.UsageError, match=r"a weft\.Statistics or a file"):
        weft.detect(EVENTS, weft.compile(QUERY, "eql"), statistics={"A": 1})  # type: ignore[arg-type]
