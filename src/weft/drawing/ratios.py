"""Figures of a benchmark as a picture: how many times as fast as its baseline each case is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from weft.errors import UsageError

ENDINGS = (".png", ".svg")


def check_plot(path: Path) -> None:
    """Refuse a picture that cannot be made, before any work is done."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"a plot is a file that ends in {' or '.join(ENDINGS)}, not {path.name!r}")
    try:
        import_module("matplotlib.figure")
    except ImportError:
        raise UsageError("plots need matplotlib, which is not installed: pip install 'weft-cep[plot]'") from None


def plot_ratios(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw a bar for each case with a ratio; a ratio whose goal is an upper bound is a share of the baseline's time."""
    shown = [row for row in rows if row.get("ratio")]
    if not shown:
        raise UsageError("none of these figures has a ratio to draw")
    figure: Any = import_module("matplotlib.figure").Figure(figsize=(8, 0.8 + 0.42 * len(shown)), layout="constrained")
    axes = figure.subplots()
    faster = [_times_as_fast(row) for row in shown]
    bars = axes.barh([f"{row['case']}\n{_who(row)}" for row in shown], faster, color="#0969da", height=0.6)
    axes.bar_label(bars, [f"{times:.1f}x" for times in faster], padding=3)
    axes.axvline(1, color="gray", linewidth=1, linestyle="--")
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7)
    axes.set(xlabel="times as fast as the baseline, measured in one run", title=shown[0].get("benchmark", ""))
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture, in the format given by the file's ending."""
    try:
        figure.savefig(path)
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror or problem}") from None


def _times_as_fast(row: Mapping[str, Any]) -> float:
    ratio = float(row["ratio"])
    return 1 / ratio if str(row.get("goal") or "").startswith("<") else ratio


def _who(row: Mapping[str, Any]) -> str:
    return f"against {str(row.get('baseline') or 'the baseline').split(':')[0]}"
