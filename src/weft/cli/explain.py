"""`weft explain`: a program at each stage on its way to the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from weft.api import explain as explain_program
from weft.cli import options
from weft.cli.console import say
from weft.cli.grouping import grouped
from weft.cli.render import compile_all
from weft.source import printable_json
from weft.stages import Format, Stage


@dataclass(frozen=True)
class Explaining:
    """What is shown beside the plan: how work is shared out, and what it takes."""

    strategy: options.Strategy = None
    lanes: options.Lanes = None
    rates: Annotated[bool, typer.Option("--tasks", help="Show rates and tasks of each component.")] = False
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model of tasks: `step2012`, or a file.")] = None
    nodes: options.Nodes = None


@grouped
def explain(
    texts: options.ProgramTexts,
    optimising: options.Optimising,
    shown: Explaining,
    stage: Annotated[Stage, typer.Option(help="The stage of the program to show.")] = "plan",
    output_format: Annotated[Format, typer.Option("--format", "-f", help="`dot` is for Graphviz.")] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Show a program at each stage of compilation. Several files form one program.

    `syntax` is the text as it was understood, `algebra` what it means, `optimized` the same after rewriting
    (with the rules that applied), `plan` the operators that run, `tables` what the kernels are driven by:

        weft explain fire.ceql --stage algebra

        weft explain fire.ceql --stage plan --format dot | dot -Tsvg > plan.svg

        weft explain fire.ceql --stage plan --lanes 4

        weft explain spikes.step --tasks

        weft explain spikes.step --nodes 4

    `optimized` shows every rewrite with the cost before and after it, rewrites that were refused and why, and where
    each rate is from:

        weft explain fraud.eql --stage optimized --statistics rates.json
    """
    compiled = compile_all(texts.paths, texts.queries, texts.language, texts.time_unit, warns=False)
    form = "json" if as_json else output_format
    found = explain_program(compiled, stage=stage, format=form, **vars(optimising), **vars(shown))
    say(printable_json(found) if form == "json" else found)
