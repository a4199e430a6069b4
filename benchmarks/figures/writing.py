"""Figures as files: the points as CSV, and a picture as PNG and SVG, with the published values as dotted lines."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.figures.figure import Curve, Curves, Figure, Point, curves_of

OURS, PUBLISHED = "weft", "published"
COLORS = ("#0969da", "#cf222e", "#1a7f37", "#9a6700", "#8250df", "#57606a", "#bf3989", "#0a7ea4")


def write(figure: Figure, points: Sequence[Point], folder: Path) -> list[Path]:
    """Write all files of a figure into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / f"{figure.id}.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["series", figure.x, figure.y, "source"])
        rows.writerows([point.series, _number(point.x), _number(point.y), OURS] for point in points)
        for series, curve in figure.published.items():
            rows.writerows([series, _number(x), _number(y), PUBLISHED] for x, y in curve)
    return [table, *_pictures(figure, curves_of(points), folder)]


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _pictures(figure: Figure, curves: Curves, folder: Path) -> list[Path]:
    matplotlib: Any = import_module("matplotlib")
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": figure.id, "font.size": 9}):
        drawn: Any = import_module("matplotlib.figure").Figure(figsize=(6.4, 3.8), layout="constrained")
        axes = drawn.subplots()
        {"bars": _bars, "lines": _lines, "points": _points}[figure.form](axes, figure, curves)
        axes.set(xlabel=figure.x, ylabel=figure.y)
        axes.set_title(f"{figure.id}: {figure.title}", fontsize=9)
        for axis in figure.log:
            getattr(axes, f"set_{axis}scale")("log")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=7, frameon=False)
        paths = [folder / f"{figure.id}{ending}" for ending in (".png", ".svg")]
        for path in paths:
            drawn.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _lines(axes: Any, figure: Figure, curves: Curves) -> None:
    for number, (series, curve) in enumerate(curves.items()):
        axes.plot(*_split(curve), marker="o", markersize=3, label=series, color=COLORS[number % len(COLORS)])
    for number, (series, curve) in enumerate(figure.published.items()):
        axes.plot(
            *_split(curve),
            linestyle=":",
            marker="x",
            markersize=4,
            label=f"{series} (published)",
            color=COLORS[_same(series, curves, number) % len(COLORS)],
        )


def _points(axes: Any, figure: Figure, curves: Curves) -> None:
    for number, (series, curve) in enumerate(curves.items()):
        axes.plot(*_split(curve), marker="s", linestyle="", label=series, color=COLORS[number % len(COLORS)])
    for number, (series, curve) in enumerate(figure.published.items()):
        axes.plot(
            *_split(curve),
            linestyle=":",
            marker="x",
            label=f"{series} (published)",
            color=COLORS[_same(series, curves, number) % len(COLORS)],
        )


def _bars(axes: Any, figure: Figure, curves: Curves) -> None:
    places = list(dict.fromkeys(str(x) for curve in curves.values() for x, _ in curve))
    width = 0.8 / max(len(curves), 1)
    for number, (series, curve) in enumerate(curves.items()):
        at = [places.index(str(x)) + (number - (len(curves) - 1) / 2) * width for x, _ in curve]
        axes.bar(at, [y for _, y in curve], width, label=series, color=COLORS[number % len(COLORS)])
    for number, (series, curve) in enumerate(figure.published.items()):
        known = [(places.index(str(x)), y) for x, y in curve if str(x) in places]
        axes.plot(
            *_split(known),
            linestyle=":",
            marker="x",
            label=f"{series} (published)",
            markersize=4,
            color=COLORS[_same(series, curves, number) % len(COLORS)],
        )
    axes.set_xticks(range(len(places)), places, fontsize=7)


def _same(series: str, curves: Curves, otherwise: int) -> int:
    """The number of our series that a published one is like, for its color."""
    names = list(curves)
    return names.index(series) if series in names else otherwise


def _split(curve: Curve) -> tuple[list[Any], list[float]]:
    return [x for x, _ in curve], [y for _, y in curve]
