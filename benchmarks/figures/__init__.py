"""The figures and tables of all five documents, under their own numbers."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures.figure import Figure, curves_of
from benchmarks.figures.page import sentence, write_page
from benchmarks.figures.record import FigureRecord
from benchmarks.figures.writing import write

from weft.api import ProgramWarning

__all__ = ["FigureRecord", "Outcome", "all_figures", "run_figure", "write_page"]
MODULES = ("next", "step_sending", "step_operators", "step_queries", "epn", "trex", "trex_queue", "dcore")


class Outcome(NamedTuple):
    """A figure that was run: its files, and whether it has the expected shape."""

    figure: Figure
    holds: bool
    files: list[Path]

    @property
    def sentence(self) -> str:
        """Which shape was expected, and whether it holds."""
        return sentence(self.figure, self.holds)


def all_figures() -> dict[str, Figure]:
    """All figures by id, in the order of the documents."""
    modules = (import_module(f"benchmarks.figures.{name}") for name in MODULES)
    return {figure.id: figure for module in modules for figure in module.FIGURES}


def run_figure(figure: Figure, scale: float, folder: Path) -> Outcome:
    """Run a figure and write its files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProgramWarning)  # queries of the documents, most without bounds
        points = list(figure.run(scale))
    return Outcome(figure, bool(figure.holds(curves_of(points))), write(figure, points, folder))
