"""The documents' figures, run again: their names, their files, and the shapes that are asked of them.

All of them are run with WEFT_FIGURES=all; a few that take little time otherwise.
"""

from __future__ import annotations

import csv
import json
import os
import warnings
from pathlib import Path

import benchmarks.figures
import numpy as np
import pytest
from benchmarks.figures import all_figures, run_figure
from benchmarks.figures.figure import Figure, above, falls, flat, gain, rises
from benchmarks.figures.service import Service
from typer.testing import CliRunner, Result

from weft.cli.figures import run_all
from weft.cli.main import app

FIGURES = all_figures()
QUICK = ("dcore-6.2", "step-7.13")
SHOWN = tuple(FIGURES) if os.environ.get("WEFT_FIGURES") == "all" else QUICK
BENCHMARKS = str(Path(__file__).parents[3] / "benchmarks")
WANTED = {
    "next": ["9", "10", "11-next", "11-union"],
    "step": [
        *("table-5.1", "table-6.2", "table-7.1", "table-7.2", "table-7.3", "table-7.4", "table-7.5"),
        *("6.5", "6.6", "6.7", "6.8", *(f"7.{number}" for number in range(3, 15))),
    ],
    "epn": ["8", "9", *(f"table-{number}" for number in range(6, 12))],
    "trex": ["5", "6-each", "6-last", *map(str, range(7, 18))],
    "dcore": [f"6.{number}" for number in range(1, 9)],
}


def weft(*args: str) -> Result:
    return CliRunner().invoke(app, [*args, "--folder", BENCHMARKS])


def test_all_figures_and_tables_of_the_documents_are_listed() -> None:
    told = [line.split()[0] for line in weft("bench", "figure", "--list").stdout.splitlines()]
    wanted = {f"{document}-{number}" for document, numbers in WANTED.items() for number in numbers}
    assert wanted <= set(told)
    assert all(FIGURES[name].id == name for name in told)


@pytest.mark.parametrize("name", SHOWN)
def test_a_figure_is_written_with_the_axes_of_the_document(name: str, tmp_path: Path) -> None:
    figure = FIGURES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        outcome = run_figure(figure, 0.01, tmp_path)
    assert figure.shape in outcome.sentence
    with (tmp_path / f"{name}.csv").open(encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["series", figure.x, figure.y, "source"]
    assert {row[3] for row in rows} == {"weft", *(["published"] if figure.published else [])}
    assert (tmp_path / f"{name}.png").read_bytes()[1:4] == b"PNG"
    assert figure.title in (tmp_path / f"{name}.svg").read_text()


def test_a_command_runs_figures(tmp_path: Path) -> None:
    out = tmp_path / "figures"
    result = weft("bench", "figure", *QUICK, "--scale", "0.01", "--out", str(out), "--json")
    assert result.exit_code == 0, result.output
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["figure"] for one in told] == list(QUICK)
    assert all((out / f"{name}.csv").is_file() for name in QUICK)


def test_a_run_of_all_figures_is_resumed_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, chosen, ran = tmp_path / "figures", [FIGURES[name] for name in QUICK], []

    def run(figure: Figure, scale: float, folder: Path) -> benchmarks.figures.Outcome:
        if len(ran) == 1:
            ran.append("stopped")
            raise KeyboardInterrupt
        ran.append(figure.id)
        return run_figure(figure, scale, folder)

    monkeypatch.setattr(benchmarks.figures, "run_figure", run)
    with pytest.raises(KeyboardInterrupt):
        run_all(benchmarks.figures, chosen, 0.01, out, as_json=True)
    run_all(benchmarks.figures, chosen, 0.01, out, as_json=True)
    assert ran == [QUICK[0], "stopped", QUICK[1]]
    page = (tmp_path / "figures.md").read_text()
    assert all(f"(figures/{name}.svg)" in page for name in QUICK)
    run_all(benchmarks.figures, chosen, 0.02, out, as_json=True)
    assert ran[3:] == list(QUICK)  # of another scale nothing is known


@pytest.mark.parametrize(
    ("words", "said"),
    [(["figure", "next-99"], "no figure 'next-99'"), (["figure"], "--list"), (["figures", "x"], "NAME")],
)
def test_mistakes(words: list[str], said: str) -> None:
    result = weft("bench", *words)
    assert result.exit_code == 2
    assert said in result.output


def test_shapes() -> None:
    curve = [(1, 1.0), (2, 2.0), (3, 1.9)]
    assert rises(curve)
    assert not rises(curve, 0.01)
    assert falls([(1, 3.0), (2, 1.0)])
    assert flat(curve, 2)
    assert not flat(curve, 1.5)
    assert gain(curve) == 1.9
    assert above([(1, 2.0)], [(1, 2.1)])
    assert not above([(1, 1.0)], [(1, 2.1)])


def test_a_queue_drops_what_finds_it_full() -> None:
    service = Service(np.full(10, 1.0), np.full(10, 2.0))
    assert service.queued(0.5, room=1).dropped == 0
    assert service.queued(0.5, room=1).firings == pytest.approx(1.0, rel=0.05)
    at_once = np.zeros(10)
    assert service.served(at_once, room=3).dropped == 0.6  # one is served, three wait
    assert service.served(at_once, room=100).dropped == 0
