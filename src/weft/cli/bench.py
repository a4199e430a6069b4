"""`weft bench`: run the project's benchmarks and show figures with their ratios."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from weft.api import ProgramWarning
from weft.cli.console import say, say_json
from weft.cli.figures import bench_figures
from weft.cli.grouping import grouped
from weft.drawing.ratios import check_plot, plot_ratios
from weft.errors import InputError, UsageError, did_you_mean

Row = dict[str, Any]  # case, value, unit, baseline, ratio, and the goal of the ratio if there is one


@dataclass(frozen=True)
class BenchOptions:
    """Options that some benchmarks have."""

    nodes: Annotated[bool, typer.Option("--nodes", help="Of `next`: simulate placement on 1 to 40 nodes.")] = False
    threads: Annotated[int | None, typer.Option(min=1, help="Of `trex`: split the rules among this many threads.")] = (
        None
    )
    strategy: Annotated[str | None, typer.Option(metavar="NAME", help="Of `scale`: only this strategy.")] = None
    lanes: Annotated[int | None, typer.Option(min=2, metavar="N", help="Of `scale`: only this number of lanes.")] = None
    part: Annotated[str | None, typer.Option(metavar="NAME", help="Of `spark`: only this part.")] = None


@grouped
def bench(
    own: BenchOptions,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Which; all if none is named.")] = None,
    scale: Annotated[
        float | None, typer.Option(min=0.001, help="How large the work is, against the usual size.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per figure, on stdout.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the ratios into a .png or .svg file.")] = None,
    folder: Annotated[str, typer.Option(metavar="FOLDER", help="Where the benchmarks are.")] = "benchmarks",
    listed: Annotated[bool, typer.Option("--list", help="Of `figure`: name all figures and tables.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Of `figure`: where CSV and pictures go.")] = Path("figures"),
) -> None:
    """Run benchmarks; each ratio is against a baseline measured in the same run.

    The benchmarks are in the source tree, so run this from its root:

        weft bench

        weft bench core --scale 0.1 --json

        weft bench next --nodes

        weft bench scale --strategy slice --lanes 8

        weft bench spark --part stream

    The figures and tables of the source documents, each as CSV, PNG and SVG; `figures` makes all at a small scale:

        weft bench figure --list

        weft bench figure next-9 --scale 0.1 --out figures

        weft bench figures
    """
    if names and names[0] in ("figure", "figures"):
        bench_figures(names, listed=listed, scale=scale, out=out, as_json=as_json, folder=Path(folder))
        return
    if plot is not None:
        check_plot(plot)
    found = discover(Path(folder))
    names = [name.replace("-", "_") for name in names or ()]
    for name in names:
        if name not in found:
            raise UsageError(f"no benchmark {name!r} in {folder}; {did_you_mean(name, found)}")
    rows: list[Row] = []
    for name in names or list(found):
        say(f"running {name} …", err=True)
        work = _load(found[name]).run
        given = _accepted(name, work, **vars(own))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProgramWarning)  # queries of the documents, most without bounds
            fresh = [{"benchmark": name, **row} for row in work(scale or 1.0, **given)]
        rows += fresh
        if as_json:
            for row in fresh:
                say_json(row)
    if not as_json:
        _show_table(rows)
    if plot is not None:
        plot_ratios(rows, plot)


def _accepted(name: str, work: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """The options that are given; a benchmark that does not know one says so."""
    given = {option: value for option, value in options.items() if value}
    known = inspect.signature(work).parameters
    unknown = next((option for option in given if option not in known), None)
    if unknown is not None:
        raise UsageError(f"the benchmark {name!r} has no option --{unknown}")
    return given


def discover(folder: Path) -> dict[str, Path]:
    """The benchmarks in a folder by name: modules that define `run(scale)`."""
    if not folder.is_dir():
        raise InputError(f"no folder {folder}: benchmarks come with weft's source tree; run this from its root")
    files = sorted(path for path in folder.glob("*.py") if "def run(" in path.read_text(encoding="utf-8"))
    if not files:
        raise InputError(f"no benchmarks in {folder}: no module there defines run(scale)")
    return {path.stem: path for path in files}


def _load(path: Path) -> ModuleType:
    # Benchmarks import each other by their folder's name, as from the root of the source tree.
    root = str(path.resolve().parent.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _show_table(rows: Sequence[Row]) -> None:
    """Print one table for each benchmark; 80 columns are enough to read it."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    for name, own in groupby(rows, key=itemgetter("benchmark")):
        table = Table(title=name, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        table.add_column("case", min_width=24)
        table.add_column("value", justify="right", max_width=12)
        table.add_column("baseline", max_width=13, overflow="fold")
        table.add_column("ratio", justify="right", no_wrap=True)
        table.add_column("goal", max_width=10)
        for row in own:
            ratio = row.get("ratio")
            table.add_row(
                escape(str(row["case"])),
                f"{_figure(row['value'])} {row.get('unit') or ''}".rstrip(),
                escape(str(row.get("baseline") or "")),
                "" if ratio is None else f"{ratio:.2f}",
                escape(str(row.get("goal") or "")),
            )
        Console().print(table)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
