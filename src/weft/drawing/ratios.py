"""Figures of a benchmark as a picture: how many times as fast as its baseline each case is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from weft.drawing.svg import COLOURS
from weft.errors import UsageError

ENDINGS = (".png", ".svg")
MARKS = ("o", "D", "s", "^", "v")
OFFSETS = ((-6, 6), (-6, -11), (7, -2))  # points from a mark to its label, by series


def check_plot(path: Path) -> None:
    """Refuse a picture that cannot be made, before any work is done."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"a plot is a file that ends in {' or '.join(ENDINGS)}, not {path.name!r}")
    try:
        import_module("matplotlib.figure")
    except ImportError:
        raise UsageError("plots need matplotlib, which is not installed: pip install 'weft-cep[plot]'") from None


@dataclass(frozen=True)
class Ratio:
    """How many times as fast a case is as its baseline, which may have been measured `elsewhere`."""

    case: str
    series: str
    times: float
    elsewhere: bool


def plot_ratios(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw a line for each case with a point for each of its ratios, on a logarithmic scale.

    A ratio whose goal is an upper bound is a share of the baseline's time.
    """
    parts = [(name, found) for name, own in groupby(rows, key=_benchmark) if (found := _ratios(own))]
    if not parts:
        raise UsageError("none of these figures has a ratio to draw")
    counts = [len({one.case for one in found}) for _, found in parts]
    size = (8, 1.1 * len(parts) + 0.34 * sum(counts) + 0.6)
    figure: Any = import_module("matplotlib.figure").Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(parts), squeeze=False, sharex=True, gridspec_kw={"height_ratios": counts})
    for axes, (name, found) in zip(grid[:, 0], parts, strict=True):
        _draw(axes, found)
        axes.set_title(f"weft bench {name}", loc="left", fontsize=10, pad=20)
    note = "; hollow: measured on another machine" if any(one.elsewhere for _, found in parts for one in found) else ""
    grid[-1, 0].set_xlabel(f"times as fast as the baseline, CPU time, both in one run{note}", fontsize=8)
    save_figure(figure, path)


def _draw(axes: Any, found: Sequence[Ratio]) -> None:
    """Draw the lines and points of a benchmark."""
    cases, series = (
        list(dict.fromkeys(names)) for names in zip(*((one.case, one.series) for one in found), strict=True)
    )
    for number, name in enumerate(series):
        own = [one for one in found if one.series == name]
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        inside = "white" if own[0].elsewhere else colour
        places = [cases.index(one.case) for one in own]
        look = {"s": 38, "color": inside, "edgecolor": colour, "marker": mark, "zorder": 3, "label": name}
        axes.scatter([one.times for one in own], places, **look)
        for one, place in zip(own, places, strict=True):
            shown = f"{one.times:.1f}x" if one.times < 10 else f"{one.times:.0f}x"
            offset = OFFSETS[number % len(OFFSETS)]
            axes.annotate(
                shown, (one.times, place), xytext=offset, textcoords="offset points", fontsize=6, color=colour
            )
    axes.set_xscale("log")
    axes.margins(x=0.08)
    axes.axvline(1, color="gray", linewidth=1, linestyle="--")
    axes.set_yticks(range(len(cases)), cases, fontsize=7)
    axes.set_ylim(len(cases) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.tick_params(axis="x", labelsize=7)
    axes.grid(axis="y", color="#d0d7de", linewidth=0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(fontsize=7, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderpad=0.2)


def _ratios(rows: Iterable[Mapping[str, Any]]) -> list[Ratio]:
    """The ratios of a benchmark; rows that are set in belong to the case above them, and are ways to do it."""
    found: list[Ratio] = []
    parent = ""
    for row in rows:
        case, who = str(row["case"]), str(row.get("baseline") or "the baseline").split(":")[0]
        if not case.startswith(" "):
            parent = case.split(":")[0]
        elif row.get("ratio"):
            found.append(Ratio(parent, f"{case.strip()} against {who}", _times_as_fast(row), "elsewhere" in who))
            continue
        if row.get("ratio"):
            found.append(Ratio(case, f"against {who}", _times_as_fast(row), "elsewhere" in who))
    return found


def _benchmark(row: Mapping[str, Any]) -> str:
    return str(row.get("benchmark", ""))


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture, in the format given by the file's ending."""
    try:
        figure.savefig(path)
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror or problem}") from None


def _times_as_fast(row: Mapping[str, Any]) -> float:
    ratio = float(row["ratio"])
    return 1 / ratio if str(row.get("goal") or "").startswith("<") else ratio
