"""`weft measure`: what the optimiser wants to know of events, measured in files of them."""

from __future__ import annotations

from typing import Annotated

import typer

from weft import api
from weft.cli import options
from weft.cli.console import say_json
from weft.cli.grouping import grouped
from weft.cli.match import Events, events_of
from weft.errors import UsageError
from weft.running import registry
from weft.statistics import Statistics, from_json

Sample = Annotated[int | None, typer.Option(min=1, metavar="N", help="Measure the first N events only.")]


@grouped
def measure(
    texts: options.ProgramTexts,
    events: Events = None,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="The file; else stdout.")] = None,
    sample: Sample = None,
    run: Annotated[str | None, typer.Option("--run", metavar="NAME", help="What a run has counted so far.")] = None,
    time: options.Time = "ts",
    type_: options.Type = "type",
) -> None:
    """Measure rates by type and how often conditions hold, and write them for --statistics.

    weft measure fraud.eql --events cards.jsonl --out rates.json

    weft explain fraud.eql --stage optimized --statistics rates.json

    weft measure --run fraud --out rates.json
    """
    if run is not None:
        if texts.paths or texts.queries or events:
            raise UsageError("--run takes the program and events of the run: omit PROGRAM, --query and --events")
        found = counted_by(run)
    else:
        program = texts.compiled(texts.paths)
        found = api.measure(events_of(events or [], program), program, time=time, type=type_, sample=sample)
    if not found.rates:
        missing = "give --events FILE with some" if run is None else "try again when some have come"
        raise UsageError(f"there is no event to measure: {missing}")
    if out is None or out == "-":
        say_json(found.to_json(), indent=2)
    else:
        found.write(out)


def counted_by(run: str) -> Statistics:
    """The rates by type, and how often conditions on one event hold, of the events of a run."""
    return from_json(registry.entry(run).status.get("statistics") or {})
