"""Tuning: the goal of the document with its numbers, simulated streams, and the command that chooses a split."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.drawing import ratios
from weft.errors import UsageError
from weft.tuning.goal import Estimate, TuningPoint, best_by_alpha, coefficient_of, estimate, goal, pareto
from weft.tuning.streams import Simulated
from weft.tuning.tune import LATENCIES, tune
from weft.tuning.writing import with_split

# Table 6: latency and throughput; Table 7 as its formula gives it (two cells are printed wrongly).
POINTS = {
    "0:4": TuningPoint(134, 113),
    "1:3": TuningPoint(50, 80),
    "2:2": TuningPoint(30, 104),
    "3:1": TuningPoint(14, 44),
}
GOALS = {
    "0:4": {0: 26.55, 1: 134, 0.5: 80.27, 0.25: 53.41, 0.8: 112.51},
    "1:3": {0: 37.50, 1: 50, 0.5: 43.75, 0.25: 40.63, 0.8: 47.50},
    "2:2": {0: 28.85, 1: 30, 0.5: 29.42, 0.25: 29.13, 0.8: 29.77},
    "3:1": {0: 68.18, 1: 14, 0.5: 41.09, 0.25: 54.64, 0.8: 24.84},
}
TEXT = """-- pairs
pattern P sequence(A a, B b, C c, D d) where a.k = b.k and c.k = d.k
  policies repeated last, consumption consume
  context fixed 10 minutes"""


@pytest.mark.parametrize("split", GOALS)
def test_the_goal_of_the_document(split: str) -> None:
    for alpha, expected in GOALS[split].items():
        assert goal(*POINTS[split], alpha, 3000) == pytest.approx(expected, abs=0.006)


def test_what_the_document_chooses() -> None:
    assert pareto(POINTS) == ["0:4", "2:2", "3:1"]
    assert best_by_alpha(POINTS, 3000) == {0.0: "0:4", 0.25: "2:2", 0.5: "2:2", 0.8: "3:1", 1.0: "3:1"}
    assert coefficient_of(POINTS.values()) == pytest.approx(57 * 85.25)


def test_estimates() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5
    assert found.high - found.mean == pytest.approx(1.96 * np.std([1, 2, 3, 4], ddof=1) / 2)
    assert found.overlaps(Estimate(5, 3.5, 6))
    assert not found.overlaps(Estimate(9, 8, 10))
    assert estimate([1.0]).high == float("inf")


@pytest.mark.parametrize("distribution", ["poisson", "uniform"])
def test_simulated_streams(distribution: str) -> None:
    stream = Simulated({"A": 30, "B": 10}, ("k",), {"k": (1, 5), "B.k": (7, 7)}, distribution)  # type: ignore[arg-type]
    table = stream.table(4000, (3, 1))
    types, keys = np.array(table["type"].to_pylist()), table["k"].to_numpy()
    assert np.mean(types == "A") == pytest.approx(0.75, abs=0.03)
    assert table["ts"].to_numpy()[-1] == pytest.approx(100_000, rel=0.1)
    assert set(keys[types == "A"]) == {1, 2, 3, 4, 5}
    assert set(keys[types == "B"]) == {7}
    assert table.equals(stream.table(4000, (3, 1)))
    assert not table.equals(stream.table(4000, (3, 2)))


def test_a_split_is_written_into_the_text() -> None:
    first = with_split(TEXT, "P", "1:1")
    assert "-- pairs" in first
    assert "policies split 1:1, repeated last" in first
    assert "split 0:2," in with_split(first, "P", "0:2")
    bare = "pattern P sequence(A a, B b)\npattern Q any(P p)"
    assert with_split(bare, "P", "1:1") == "pattern P sequence(A a, B b)\n  policies split 1:1\npattern Q any(P p)"
    own = "pattern P sequence(A a, B b) policies a: repeated last"
    assert weft.compile(with_split(own, "P", "1:1"), language="epn").queries[0].situation.split == 1  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="no pattern 'X'"):
        with_split(TEXT, "X", "1:1")


def test_all_splits_are_tried() -> None:
    found = weft.tune(
        weft.compile(TEXT, language="epn"),
        alpha=1,
        rates={"A": 100, "D": 25},
        domains={"k": (0, 5)},
        events=600,
        runs=3,
        more=1,
    )
    assert [one.split for one in found.alternatives] == ["0:2", "1:1"]
    assert found.chosen in found.by_alpha.values()
    assert found.quick == "1:1"
    assert all(one.looked > 0 and one.runs >= 3 for one in found.alternatives)
    assert json.loads(json.dumps(found.to_json()))["pattern"] == "P"


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        (TEXT, {"alpha": 2}, "between 0"),
        (TEXT, {"rates": {"X": 1}}, "does not read: X"),
        (TEXT, {"pattern": "X"}, "there are: P"),
        (TEXT, {"domains": {"k": (3, 1)}}, "the least comes first"),
        (TEXT, {"distribution": "normal"}, "poisson or uniform"),
        (TEXT, {"events": 5, "runs": 2}, "no set was found"),
        ("pattern P any(A a, B b)", {}, "no pattern can be split"),
        ("pattern P sequence(A a, B b)", {}, "kernel of equal keys"),
        ("pattern P all(A a, B b, C c, D d)", {}, "events have .* sets already: narrow the context"),
        ("pattern P all(A a, B b, C c)", {}, "events have .* sets already"),
        (f"{TEXT}\n{TEXT.replace('P', 'Q')}", {}, "name one of P, Q"),
    ],
)
def test_what_cannot_be_tuned(text: str, more: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        weft.tune(weft.compile(text, language="epn"), **more)  # type: ignore[arg-type]


def test_the_command_prints_plots_and_writes(tmp_path: Path) -> None:
    program, picture = tmp_path / "pairs.epn", tmp_path / "pairs.svg"
    program.write_text(TEXT)
    words = ["tune", str(program), "--runs", "2", "--length", "500", "--domain", "k=0..4", "--rates", "A=80,B=40"]
    done = CliRunner().invoke(app, [*words, "--plot", str(picture), "--write"])
    assert done.exit_code == 0, done.output
    assert "best by alpha" in done.output
    assert "<svg" in picture.read_text()
    assert "policies split " in program.read_text()
    as_json = CliRunner().invoke(app, [*words, "--json"])
    assert {one["split"] for one in json.loads(as_json.stdout)["alternatives"]} == {"0:2", "1:1"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--plot", "a.txt"], "ends in .png or .svg"),
        (["--rates", "A:5"], "as in E1=50,E2=25"),
        (["--domain", "k=5"], "as in ID=0..100"),
    ],
)
def test_wrong_arguments(tmp_path: Path, words: list[str], message: str) -> None:
    program = tmp_path / "pairs.epn"
    program.write_text(TEXT)
    done = CliRunner().invoke(app, ["tune", str(program), *words])
    assert done.exit_code == 2
    assert message in done.output


def test_plots_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(ratios, "import_module", missing)
    with pytest.raises(UsageError, match=r"pip install 'weft-cep\[plot\]'"):
        ratios.check_plot(Path("a.png"))


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_program_that_needs_no_tuning_is_no_error(tmp_path: Path, words: list[str]) -> None:
    program = tmp_path / "p.epn"
    program.write_text("pattern P any(A a, B b) context fixed 10\n")
    done = CliRunner().invoke(app, ["tune", str(program), *words])
    assert done.exit_code == 0
    assert "no pattern can be split" in done.stdout


def test_patterns_of_kind_all_are_tuned() -> None:
    """While the early block has no candidate, no set is looked for."""
    text = "all(A a, B b, C c, D d) where a.x > b.x + 90 and c.x <> d.x policies repeated first, consumption consume"
    found = tune(weft.compile(f"pattern P {text} context fixed 1 hours", "epn"), events=600, runs=2, more=0)
    late, early = found.alternatives
    assert (late.split, early.split, found.quick) == ("0:2", "1:1", "0:2")
    assert early.looked < late.looked / 2


def test_the_slowest_of_a_hundred_sets_can_be_what_counts() -> None:
    program = weft.compile(TEXT, "epn")
    found = {
        latency: tune(program, latency=latency, domains={"k": (0, 5)}, events=400, runs=2, coefficient=1.0, more=0)
        for latency in LATENCIES
    }
    assert [one.latency for one in found.values()] == ["mean", "p99"]
    assert found["p99"].to_json()["latency"] == "p99"
    shown = CliRunner().invoke(app, ["tune", "--help"]).output
    assert "--latency" in shown
    with pytest.raises(UsageError, match="'mean' or 'p99'"):
        tune(program, latency="most")  # type: ignore[arg-type]
