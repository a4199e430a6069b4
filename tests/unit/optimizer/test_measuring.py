"""Statistics of events: what `weft.measure` and `weft measure` find, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app

QUERY = """
SELECT * FROM A a ; B b ; C c
WHERE FILTER(a.k = b.k), FILTER(a.k = c.k), a.x > 2, c.s = 'yes', b.x > a.x, (a, c) OCCURS WITHIN 1 hour
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
        done = CliRunner().invoke(app, ["measure", str(folder / "q.eql"), "--events", str(folder / "e.jsonl"), *more])
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
        done = CliRunner().invoke(app, ["measure", str(tmp_path / "q.eql"), "--events", str(tmp_path / "e.jsonl")])
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
    with pytest.raises(weft.UsageError, match=r"a weft\.Statistics, or a file"):
        weft.detect(EVENTS, weft.compile(QUERY, "eql"), statistics={"A": 1})  # type: ignore[arg-type]


def of_events(type_: str, holds: Callable[[Any], bool]) -> float:
    """How often something holds of the events of a type."""
    found = [holds(event) for event in EVENTS if event["type"] == type_]
    return sum(found) / len(found)


def of_pairs(holds: Callable[[Any, Any], bool]) -> float:
    """How often something holds of an A and a B."""
    pairs = [holds(a, b) for a in EVENTS if a["type"] == "A" for b in EVENTS if b["type"] == "B"]
    return sum(pairs) / len(pairs)


FRACTIONS = {
    "A.x > 2": of_events("A", lambda event: event["x"] > 2),
    "B.x > 1": of_events("B", lambda event: event["x"] > 1),
    "C.s = 'no'": 0.5,
    "A.k = B.k": of_pairs(lambda a, b: a["k"] == b["k"]),
    "A.x < B.x": of_pairs(lambda a, b: a["x"] < b["x"]),
    "A.x <> B.x": of_pairs(lambda a, b: a["x"] != b["x"]),
    "A.x >= B.x": of_pairs(lambda a, b: b["x"] <= a["x"]),
}
STEP = 'topology "T"\nexternal A(x: int) < "a" [1.0]\nexternal B(x: int) < "b" [1.0]\n'


@pytest.mark.parametrize(
    ("language", "text", "conditions"),
    [
        ("ceql", "SELECT * FROM S WHERE A AS a ; B+ AS b FILTER a[x > 2] AND a[k] = b[k] AND a[x] < b[x]",
         ["A.x > 2", "A.k = B.k", "A.x < B.x"]),
        ("tesla", "define F() from B(x>1) and last A(k = B.k, x > 2) within 9 from B and not C(s='no') within 9 from B",
         ["B.x > 1", "A.x > 2", "A.k = B.k", "C.s = 'no'"]),
        ("epn", "pattern P sequence(A a, B b) where a.k = b.k and a.x > 2 and b.x <= a.x",
         ["A.x > 2", "A.k = B.k", "A.x >= B.x"]),
        ("step", f"{STEP}Q(*): A ;?[A.x > 2 && A.x != B.x] B", ["A.x > 2", "A.x <> B.x"]),
    ],
)  # fmt: skip
def test_conditions_of_every_language_are_measured(language: str, text: str, conditions: list[str]) -> None:
    program = weft.compile(text, language)
    found = weft.measure(EVENTS, program)
    shown = weft.explain(program, "optimized", statistics=found)
    for condition in conditions:
        assert found.fraction(condition) == (pytest.approx(FRACTIONS[condition]), "measured"), found.selectivity
        assert f"  {condition}: {FRACTIONS[condition]:g} (measured)" in shown
    assert "  A: 1.1 per second (measured)" in shown


def test_conditions_of_patterns_built_in_python_are_measured() -> None:
    pattern = weft.Pattern.begin("a").subtype("A").where(weft.e.x > 2).followed_by("b").subtype("B")
    found = weft.measure(EVENTS, pattern.program("p")).fraction("A.x > 2")
    assert found == (pytest.approx(FRACTIONS["A.x > 2"]), "measured")


@pytest.mark.parametrize("size", [1, 300, 5000])
def test_a_live_program_counts_what_passes(size: int) -> None:
    events = [{**event, "ts": 250 * n} for n, event in enumerate(EVENTS[:40] * 128)]
    rule = "define F() from B(x > 1) and each A(k = B.k, x > 2) within 9 from B"
    with weft.live([weft.compile(QUERY, "eql"), weft.compile(rule, "tesla")]) as running:
        assert not running.statistics.rates
        for at in range(0, len(events), size):
            running.push(events[at : at + size])
        found = running.statistics
        assert found.rate("A") == (pytest.approx(1, rel=0.2), "measured")
        assert found.rate("B") == (pytest.approx(2, rel=0.2), "measured")
        for condition in ("B.x > 1", "A.k = B.k", "A.x > 2"):
            figure = found.fraction(condition)
            assert figure is not None
            assert figure.value == pytest.approx(FRACTIONS[condition], abs=0.15)
        running.remove("F")
        assert not running.statistics.rates, "counted anew"
