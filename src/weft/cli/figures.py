"""`weft bench figure` and `weft bench figures`: the documents' figures and tables, run again and drawn."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from weft.cli.console import say, say_json
from weft.drawing.ratios import check_plot
from weft.errors import InputError, UsageError, did_you_mean

SMALL = 0.01  # the scale of `weft bench figures`, unless another is asked for


def bench_figures(
    words: Sequence[str], *, listed: bool, scale: float | None, out: Path, as_json: bool, folder: Path
) -> None:
    """Do what follows `weft bench`: `figure --list`, `figure ID…`, or `figures` for all of them."""
    package = _package(folder)
    known: dict[str, Any] = package.all_figures()
    command, *wanted = words
    if listed:
        for figure in known.values():
            if as_json:
                say_json({"figure": figure.id, "title": figure.title, "x": figure.x, "y": figure.y})
            else:
                say(f"{figure.id:<18} {figure.title}")
        return
    if command == "figures" and wanted:
        raise UsageError("`weft bench figures` takes no names: one figure is `weft bench figure NAME`")
    if command == "figure" and not wanted:
        raise UsageError("which figure? `weft bench figure --list` names them")
    for name in wanted:
        if name not in known:
            raise UsageError(f"no figure {name!r}; {did_you_mean(name, known) or 'see `weft bench figure --list`'}")
    check_plot(out / "figure.svg")
    if wanted:
        for name in wanted:
            say(f"running {name} …", err=True)
            _say_outcome(package.run_figure(known[name], scale or 1.0, out), as_json)
    else:
        run_all(package, list(known.values()), scale or SMALL, out, as_json=as_json)


def run_all(package: Any, figures: Sequence[Any], scale: float, out: Path, *, as_json: bool) -> None:
    """Run all figures into a folder that remembers what is done, so that a stopped run can be resumed."""
    record = package.FigureRecord.of(out, scale)
    left = [figure for figure in figures if not record.has(figure)]
    if len(left) < len(figures):
        done = len(figures) - len(left)
        say(f"{done} of {len(figures)} figures are in {out} already; empty the folder to begin anew", err=True)
    begun = time.perf_counter()
    for number, figure in enumerate(left, start=len(figures) - len(left) + 1):
        spent = time.perf_counter() - begun
        say(f"running {figure.id} ({number} of {len(figures)}, {spent:,.0f} s so far) …", err=True)
        start = time.perf_counter()
        outcome = package.run_figure(figure, scale, out)
        record.add(outcome, time.perf_counter() - start)
        _say_outcome(outcome, as_json)
    page = package.write_page(record, figures)
    say(
        f"{record.held} of {len(figures)} figures have the expected shape; "
        f"they took {record.seconds:,.0f} s; all are in {page}",
        err=True,
    )


def _say_outcome(outcome: Any, as_json: bool) -> None:
    figure = outcome.figure
    if as_json:
        files = [str(path) for path in outcome.files]
        say_json({"figure": figure.id, "expected": figure.shape, "holds": outcome.holds, "files": files})
    else:
        say(f"{figure.id}: {figure.title}\n  {outcome.sentence}\n  {outcome.files[0]}, .png, .svg")


def _package(folder: Path) -> Any:
    """The package of figures in the folder of benchmarks."""
    if not (folder / "figures" / "__init__.py").is_file():
        raise InputError(f"no figures in {folder}: they come with weft's source tree; run this from its root")
    root = str(folder.resolve().parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    return import_module(f"{folder.name}.figures")
