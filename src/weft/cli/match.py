"""`weft match`: the matches of programs in files of events."""

from __future__ import annotations

import json
import sys
import time as clock
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from weft import engines
from weft.api import PROGRAM_SUFFIXES, together
from weft.cli import options
from weft.cli.render import compile_all, progress, show_stats, write_rejects
from weft.connectors.files import write_matches
from weft.engines import Engine
from weft.errors import InputError

OutputFormat = Literal["jsonl", "csv", "parquet"]
FORMAT_OF_SUFFIX: dict[str, OutputFormat] = {".csv": "csv", ".parquet": "parquet"}
EVENTS_OPTIONS = ("--events", "-e")


class MatchCommand(TyperCommand):
    """Lets one `--events` take several files, as a shell's `*.jsonl` gives them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat `--events` before each of its files."""
        return super().parse_args(ctx, spread_events(args))


def spread_events(args: Sequence[str]) -> list[str]:
    """`--events a b` as `--events a --events b`. A program's file never counts as a file of events."""
    spread: list[str] = []
    reading = False  # the last thing read was a file of events
    for before, arg in pairwise(["", *args]):
        named = before in EVENTS_OPTIONS or arg.startswith("--events=")
        more = reading and not arg.startswith("-") and Path(arg).suffix not in PROGRAM_SUFFIXES
        if more:
            spread.append("--events")
        spread.append(arg)
        reading = named or more
    return spread


def match(
    programs: options.Programs,
    events: Annotated[
        list[str],
        typer.Option("--events", "-e", metavar="FILE...", help="Files of events: .jsonl, .csv or .parquet."),
    ],
    engine: Annotated[
        Engine,
        typer.Option(
            help="`local` is this process, `spark` an embedded or given Spark, `meaning` the slow definition."
        ),
    ] = "local",
    time: options.Time = "ts",
    type_: options.Type = "type",
    time_unit: options.TimeUnit = "ms",
    language: options.Language = None,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where matches go; `-` is stdout.")] = "-",
    output_format: Annotated[
        OutputFormat | None, typer.Option("--format", "-f", help="By the ending of --out, else jsonl.")
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Only count: one JSON object per query.")] = False,
    stats: options.Stats = False,
    rejects: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write events that cannot be read here, with the reason.")
    ] = None,
    show_progress: options.ShowProgress = True,
) -> None:
    """Find all matches of one or more programs in files of events.

    Matches are written in match order, one JSON object per line:

        weft match fire.ceql --events sensors.jsonl

        weft match fire.ceql --events day1.parquet day2.parquet --out matches.parquet

        weft match fraud.ceql --events cards.csv --time at --type kind --count

    Events that cannot be read are counted and never silently dropped; see --rejects.
    """
    started = clock.perf_counter()
    program = together(compile_all(programs, language, time_unit))
    run = engines.start(events, program, engine, time=time, type=type_)
    compiled = clock.perf_counter() - started
    # Matches on a terminal are progress enough, and a bar would run into them.
    on_terminal = out == "-" and sys.stdout.isatty() and not count
    with progress("matching", lambda: run.counters, shown=show_progress and not on_terminal):
        counts = run.counts() if count else None
        if counts is None:
            write_matches(run.rows(), out, output_format or _format_of(out))
    if counts is not None:
        _write_counts(counts, out)
    write_rejects(run.rejected, rejects)
    if stats:
        seconds = clock.perf_counter() - started
        stages = {"compile": compiled, **run.seconds}
        show_stats(run.counters, seconds, {**stages, "write": seconds - sum(stages.values())})


def _format_of(out: str) -> OutputFormat:
    return FORMAT_OF_SUFFIX.get(Path(out).suffix, "jsonl")


def _write_counts(counts: dict[str, int], out: str) -> None:
    lines = "".join(json.dumps({"query": name, "count": n}, ensure_ascii=False) + "\n" for name, n in counts.items())
    if out == "-":
        sys.stdout.write(lines)
        sys.stdout.flush()
        return
    try:
        Path(out).write_text(lines, encoding="utf-8")
    except OSError as problem:
        raise InputError(f"cannot write {out}: {problem.strerror}") from None
