"""`weft explain`: a program at each stage on its way to the kernels."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from weft.api import explain as explain_program
from weft.cli import options
from weft.cli.console import say
from weft.cli.render import compile_all
from weft.source import printable_json
from weft.stages import Format, Stage


def explain(
    programs: options.Programs = None,
    queries: options.Queries = None,
    stage: Annotated[Stage, typer.Option(help="How far on its way to show the program.")] = "plan",
    output_format: Annotated[Format, typer.Option("--format", "-f", help="`dot` is for Graphviz.")] = "text",
    language: options.Language = None,
    time_unit: options.TimeUnit = "ms",
    optimize: options.Optimize = True,
    statistics: options.StatisticsFile = None,
    strategy: options.Strategy = None,
    lanes: options.Lanes = None,
    rates: Annotated[bool, typer.Option("--tasks", help="Show rates and tasks of each component.")] = False,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model of tasks: `step2012`, or a file.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Place operators on this many nodes, as NEXT does.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Show a program at each stage of compilation. Several files form one program.

    `syntax` is the text as it was understood, `algebra` what it means, `optimized` the same after rewriting
    (with the rules that applied), `plan` the operators that run, `tables` what the kernels are driven by:

        weft explain fire.ceql --stage algebra

        weft explain fire.ceql --stage plan --format dot | dot -Tsvg > plan.svg

        weft explain fire.ceql --stage plan --lanes 4

        weft explain spikes.step --tasks

    `optimized` shows every rewrite with the cost before and after it, rewrites that were refused and why, and where
    each rate is from:

        weft explain fraud.eql --stage optimized --statistics rates.json
    """
    compiled = compile_all(programs, queries, language, time_unit, warns=False)
    form = "json" if as_json else output_format
    how: dict[str, Any] = {"optimize": optimize, "statistics": statistics, "strategy": strategy, "lanes": lanes}
    how |= {"rates": rates, "model": model, "nodes": nodes}
    shown = explain_program(compiled, stage=stage, format=form, **how)
    say(printable_json(shown) if form == "json" else shown)
