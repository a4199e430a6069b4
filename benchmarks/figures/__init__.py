"""The figures and tables of all five documents, under their own numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures.figure import Figure, curves_of
from benchmarks.figures.page import write_page
from benchmarks.figures.writing import write

from weft.api import ProgramWarning

__all__ = ["Outcome", "all_figures", "run_figures", "write_page"]
MODULES = ("next", "step_sending", "step_operators", "step_queries", "epn", "trex", "trex_queue", "dcore")


class Outcome(NamedTuple):
    """A figure that was run: its files, and whether it has the expected shape."""

    figure: Figure
    holds: bool
    files: list[Path]

    @property
    def sentence(self) -> str:
        """Which shape was expected, and whether it holds."""
        return f"Expected: {self.figure.shape}: {'it holds' if self.holds else 'it does not hold here'}."


def all_figures() -> dict[str, Figure]:
    """All figures by id, in the order of the documents."""
    modules = (import_module(f"benchmarks.figures.{name}") for name in MODULES)
    return {figure.id: figure for module in modules for figure in module.FIGURES}


def run_figures(figures: Iterator[Figure] | list[Figure], scale: float, folder: Path) -> Iterator[Outcome]:
    """Run figures one after the other, and write their files."""
    for figure in figures:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProgramWarning)  # queries of the documents, most without bounds
            points = list(figure.run(scale))
        yield Outcome(figure, figure.holds(curves_of(points)), write(figure, points, folder))
