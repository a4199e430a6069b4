"""Throughput against latency of all splits as a picture, with those that no other beats joined by a line."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from weft.drawing.ratios import check_plot, save_figure
from weft.tuning.tune import Tuning


def plot(tuning: Tuning, path: Path) -> None:
    """Write the picture, in the format given by the file's ending."""
    check_plot(path)
    figure: Any = import_module("matplotlib.figure").Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for one in tuning.alternatives:
        chosen = one.split == tuning.chosen
        spread = (one.throughput.high - one.throughput.mean, one.latency.high - one.latency.mean)
        axes.errorbar(
            one.throughput.mean, one.latency.mean, xerr=spread[0], yerr=spread[1], fmt="s" if chosen else "o", capsize=2
        )
        axes.annotate(one.split, (one.throughput.mean, one.latency.mean), xytext=(6, 6), textcoords="offset points")
    front = sorted((one.throughput.mean, one.latency.mean) for one in tuning.alternatives if one.split in tuning.pareto)
    axes.plot(*zip(*front, strict=True), linestyle="--", linewidth=1, color="gray", zorder=0)
    axes.set(xlabel="throughput, events/s", ylabel="latency, ms", title=f"{tuning.pattern}, alpha {tuning.alpha:g}")
    save_figure(figure, path)
