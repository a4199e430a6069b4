"""`weft stats`: what the optimiser wants to know of events, measured in files of them."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.api import measure, together
from weft.cli import options
from weft.cli.console import say_json
from weft.cli.match import Events, events_of
from weft.cli.render import compile_all
from weft.errors import UsageError

Sample = Annotated[int | None, typer.Option(min=1, metavar="N", help="Measure the first N events only.")]


def stats(
    programs: options.Programs = None,
    queries: options.Queries = None,
    events: Events = None,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="The file; else stdout.")] = None,
    sample: Sample = None,
    time: options.Time = "ts",
    type_: options.Type = "type",
    time_unit: options.TimeUnit = "ms",
    language: options.Language = None,
) -> None:
    """Measure rates by type and how often conditions hold, and write them for --statistics.

    weft stats fraud.eql --events cards.jsonl --out rates.json

    weft explain fraud.eql --stage optimized --statistics rates.json
    """
    program = together(compile_all(programs, queries, language, time_unit))
    found = measure(events_of(events or [], program), program, time=time, type=type_, sample=sample)
    if not found.rates:
        raise UsageError("there is no event to measure: give --events FILE with some")
    if out is None or out == "-":
        say_json(found.to_json(), indent=2)
    else:
        found.write(out)
