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

SMALL = 0.02  # the scale of `weft bench figures`, unless another is asked for


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
                say(f"{figure.id:<16} {figure.title}")
        return
    if command == "figures" and wanted:
        raise UsageError("`weft bench figures` takes no names: one figure is `weft bench figure NAME`")
    if command == "figure" and not wanted:
        raise UsageError("which figure? `weft bench figure --list` names them")
    for name in wanted:
        if name not in known:
            raise UsageError(f"no figure {name!r}; {did_you_mean(name, known) or 'see `weft bench figure --list`'}")
    chosen = [known[name] for name in wanted] or list(known.values())
    check_plot(out / "figure.svg")
    _run(package, chosen, scale or (1.0 if wanted else SMALL), out, as_json)


def _run(package: Any, chosen: Sequence[Any], scale: float, out: Path, as_json: bool) -> None:
    done, started = [], time.perf_counter()
    for number, figure in enumerate(chosen, start=1):
        say(f"running {figure.id} ({number} of {len(chosen)}) …", err=True)
        for outcome in package.run_figures([figure], scale, out):
            done.append(outcome)
            if as_json:
                files = [str(path) for path in outcome.files]
                say_json({"figure": figure.id, "expected": figure.shape, "holds": outcome.holds, "files": files})
            else:
                say(f"{figure.id}: {figure.title}\n  {outcome.sentence}\n  {outcome.files[0]}, .png, .svg")
    if len(chosen) > 1:
        page = package.write_page(done, scale, out)
        held, seconds = sum(outcome.holds for outcome in done), time.perf_counter() - started
        say(f"{held} of {len(chosen)} figures have the expected shape; {seconds:,.0f} s; all are in {page}", err=True)


def _package(folder: Path) -> Any:
    """The package of figures in the folder of benchmarks."""
    if not (folder / "figures" / "__init__.py").is_file():
        raise InputError(f"no figures in {folder}: they come with weft's source tree; run this from its root")
    root = str(folder.resolve().parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    return import_module(f"{folder.name}.figures")
