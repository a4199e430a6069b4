"""`weft tune`: which split of a pattern is best for latency and for throughput."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options
from weft.cli.console import rewrite_line, say, say_json
from weft.cli.grouping import grouped
from weft.cli.render import compile_all
from weft.drawing.ratios import check_plot
from weft.errors import UsageError
from weft.tuning.goal import Estimate
from weft.tuning.plotting import plot
from weft.tuning.streams import Domain
from weft.tuning.tune import EVENTS, RUNS, Latency, NothingToTune, Tuning
from weft.tuning.tune import tune as try_splits
from weft.tuning.writing import with_split


@dataclass(frozen=True)
class TuningGoal:
    """What is tuned, and for what."""

    pattern: Annotated[str | None, typer.Option(metavar="NAME", help="The pattern, if there are several.")] = None
    alpha: Annotated[float, typer.Option(help="The weight of latency: 1 latency only, 0 throughput only.")] = 0.5
    latency: Annotated[Latency, typer.Option(help="Latency of sets: their mean, or their 99th percentile.")] = "mean"
    coefficient: Annotated[
        float | None,
        typer.Option("--coefficient", "-C", help="Scale of throughput; by default measured by pilot runs."),
    ] = None


@dataclass(frozen=True)
class SimulatedStreams:
    """The random streams on which splits are tried."""

    rates: Annotated[
        str | None, typer.Option(metavar="TYPE=N,…", help="Events per second of each type; 50 where not given.")
    ] = None
    domain: Annotated[
        list[str] | None, typer.Option(metavar="NAME=A..B", help="Values of an attribute; 0..100. Repeatable.")
    ] = None
    distribution: Annotated[str, typer.Option(help="Arrival of events: poisson or uniform.")] = "poisson"
    events: Annotated[int, typer.Option("--length", min=1, help="Events of a simulated stream.")] = EVENTS
    runs: Annotated[int, typer.Option(min=2, help="Simulated streams for each split.")] = RUNS
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 0


@grouped
def tune(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="A file of patterns (.epn).")],
    goal: TuningGoal,
    streams: SimulatedStreams,
    plot_to: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="A picture of all splits, .png or .svg.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the split that is chosen into the program.")] = False,
    time_unit: options.TimeUnit = "ms",
    functions: options.Functions = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Try all splits of a sequence on simulated events, and choose one.

    A split says how many blocks of participants, without conditions on other blocks, are evaluated as events arrive,
    and how many when a set may be complete. It affects speed, never the result:

        weft tune pairs.epn --alpha 0.8 --rates E1=50,E2=25 --domain ID=0..10 --plot pairs.svg --write
    """
    if plot_to is not None:
        check_plot(plot_to)
    (compiled,) = compile_all([program], None, "epn", time_unit)
    try:
        found = try_splits(
            compiled,
            **vars(goal),
            rates=rates_in(streams.rates),
            domains=dict(map(domain_in, streams.domain or ())),
            distribution=streams.distribution,
            events=streams.events,
            runs=streams.runs,
            seed=streams.seed,
            progress=_progress,
        )
    except NothingToTune as reason:  # the program is fine as it is
        if as_json:
            say_json({"chosen": None, "reason": str(reason)}, indent=2)
        else:
            say(f"nothing to tune: {reason}")
        return
    if as_json:
        say_json(found.to_json(), indent=2)
    else:
        say("\n".join(_lines(found)))
    if plot_to is not None:
        plot(found, plot_to)
    if write:
        path = Path(program)
        path.write_text(with_split(path.read_text("utf-8"), found.pattern, found.chosen), "utf-8")
        say(f"wrote split {found.chosen} into {path}", err=True)


def rates_in(text: str | None) -> dict[str, float]:
    """`E1=50,E2=25` as numbers."""
    try:
        pairs = [part.split("=") for part in (text or "").split(",") if part.strip()]
        return {name.strip(): float(rate) for name, rate in pairs}
    except ValueError:
        raise UsageError(f"--rates takes events per second of types, as in E1=50,E2=25, not {text!r}") from None


def domain_in(text: str) -> tuple[str, Domain]:
    """`ID=0..100` as a name with the least and greatest value."""
    name, _, span = text.partition("=")
    low, dots, high = span.partition("..")
    try:
        if not dots:
            raise ValueError
        return name.strip(), (int(low), int(high))
    except ValueError:
        raise UsageError(f"--domain takes values of an attribute, as in ID=0..100, not {text!r}") from None


def _lines(found: Tuning) -> Iterator[str]:
    yield f"pattern {found.pattern}, alpha {found.alpha:g}, C {found.coefficient:,.4g}; 95 % intervals"
    yield ""
    latency = "latency, ms" if found.latency == "mean" else "latency, 99th pct., ms"
    yield f"{'split':<8}{'throughput, events/s':>26}{latency:>24}{'g':>24}{'looked at: event':>18}{'set':>8}"
    for one in found.alternatives:
        mark = "*" if one.split == found.chosen else " "
        yield (
            f"{mark} {one.split:<6}{_shown(one.throughput, ',.0f'):>26}{_shown(one.latency, '.4f'):>24}"
            f"{_shown(one.goal, '.4f'):>24}{one.looked:>18.1f}{one.looked_late:>8.1f}"
        )
    yield ""
    yield f"not beaten in both   {', '.join(found.pareto)}"
    yield "best by alpha        " + ", ".join(f"{alpha:g}: {split}" for alpha, split in found.by_alpha.items())
    yield f"by rates alone       {found.quick}"
    doubt = "" if found.clear else " (not certain: its interval overlaps that of the next one)"
    yield f"chosen               {found.chosen}{doubt}"


def _shown(value: Estimate, form: str) -> str:
    return f"{value.mean:{form}} ± {value.high - value.mean:{form}}"


def _progress(done: int, of: int) -> None:
    rewrite_line(f"run {done} of {of}" if done < of else "")
