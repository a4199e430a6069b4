"""`weft match`: the matches of programs in files of events."""

from __future__ import annotations

import json
import os
import re
import sys
import time as clock
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import typer
from typer.core import TyperCommand

from weft import engines, inputs
from weft.algebra.query import Program
from weft.cli import options
from weft.cli.console import say, say_json
from weft.cli.grouping import grouped
from weft.cli.render import compiling_told, progress, show_stats, write_rejects
from weft.connectors.files import find_files, write_matches, write_to_sinks
from weft.connectors.places import check_places, opened
from weft.connectors.uris import as_uri
from weft.engines import Engine
from weft.errors import InputError, UsageError, plural
from weft.languages import language_of
from weft.languages.texts import PROGRAM_SUFFIXES
from weft.plan.partitioning.splits import PLACED
from weft.runtime.lanes.sharing import Sharing
from weft.runtime.limits.guarding import Limits
from weft.runtime.options import Arrival, Options

OutputFormat = Literal["jsonl", "csv", "parquet"]
FORMAT_OF_SUFFIX: dict[str, OutputFormat] = {".csv": "csv", ".parquet": "parquet"}
NAMED = re.compile(r"(?P<name>\w+)=(?P<file>.+)")
Events = Annotated[
    list[str] | None,
    typer.Option(
        "--events",
        "-e",
        "--source",
        metavar="FILE...",
        help="Files of events (.jsonl, .csv, .parquet) or URIs, or NAME=FILE for a source; else as the program says.",
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--out", "-o", "--sink", metavar="FILE", help="Where matches go: a file or a URI; `-`, the default, is stdout."
    ),
]
EngineName = Annotated[
    Engine,
    typer.Option(help="`local` is this process, `spark` an embedded or given Spark, `meaning` the slow definition."),
]
Format = Annotated[OutputFormat | None, typer.Option("--format", "-f", help="By the ending of --out, else jsonl.")]
Count = Annotated[bool, typer.Option("--count", help="Only count: one JSON object per query.")]
Rejects = Annotated[
    str | None, typer.Option(metavar="FILE", help="A file for events that cannot be read, with the reason.")
]
AllowSinks = Annotated[
    bool, typer.Option("--allow-sinks", help="Let programs write outside their folders, and call functions.")
]
Delay = Annotated[
    int | None,
    typer.Option(min=0, metavar="TICKS", help="Of live sources (tcp://…): by how much an event may be late."),
]
EVENTS_OPTIONS = ("--events", "-e", "--source")


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
        named = before in EVENTS_OPTIONS or arg.startswith(("--events=", "--source="))
        more = reading and not arg.startswith("-") and Path(arg).suffix not in PROGRAM_SUFFIXES
        if more:
            spread.append("--events")
        spread.append(arg)
        reading = named or more
    return spread


@dataclass(frozen=True)
class MatchOutput:
    """The destination of matches, and what is reported in addition."""

    out: Out = None
    output_format: Format = None
    count: Count = False
    positions: options.Positions = True
    stats: options.Stats = False
    rejects: Rejects = None
    show_progress: options.ShowProgress = True
    allow_sinks: AllowSinks = False


@dataclass(frozen=True)
class MatchWork:
    """How it is done, and what it may take."""

    engine: EngineName = "local"
    strategy: options.Strategy = None
    lanes: options.Lanes = None
    nodes: options.Nodes = None
    threads: options.Threads = None
    budget: options.Budgets = None
    shed_share: options.ShedShare = None
    shed_above: options.ShedAbove = None
    delay: Delay = None
    idle_after: options.IdleAfter = "rate"

    @property
    def sharing(self) -> Sharing:
        """How work is shared out."""
        if self.nodes is None:
            return Sharing(self.strategy, self.lanes, self.threads)
        if self.strategy not in (None, PLACED) or self.lanes is not None:
            raise UsageError("--nodes N is --strategy placed with N nodes: leave out --strategy and --lanes")
        return Sharing(PLACED, self.nodes, self.threads)

    @property
    def arrival(self) -> Arrival:
        """How sources that are read as they come are merged."""
        return Arrival(self.delay or 0, self.idle_after)

    @property
    def limits(self) -> Limits:
        """What it may take."""
        return options.limits_of(self.budget, options.shed_of(self.shed_share, self.shed_above))


@grouped
def match(
    texts: options.ProgramTexts,
    names: options.EventNames,
    work: MatchWork,
    told: MatchOutput,
    optimising: options.Optimising,
    events: Events = None,
) -> None:
    """Find all matches of one or more programs in files of events.

    Matches are written in match order, one JSON object per line:

        weft match fire.ceql --events sensors.jsonl

        weft match fire.ceql --events day1.parquet day2.parquet --out matches.parquet

        weft match fraud.ceql --events cards.csv --time at --type kind --count

    Sources can be given by name. Without --events they are the files that the program names, and without --out
    its matches then go to the sinks that it names:

        weft match spikes.step --events Stock=stocks.jsonl News=news.csv

        weft match spikes.step

    Events that cannot be read are counted and never silently dropped; see --rejects.

    SQL with MATCH_RECOGNIZE reads tables, and its result is written row by row:

        weft match query.sql --events ticks=ticks.parquet --out result.parquet
    """
    if is_sql(texts.paths, texts.queries or [], texts.language):
        _match_sql(texts, events or [], work, told)
        return
    started = clock.perf_counter()
    program = texts.compiled(texts.paths)
    given = events_of(events or [], program)
    sinks = {} if events or told.out or told.count else sinks_of(program)
    if not told.allow_sinks:
        refuse_code(given, events or [])
        refuse_sinks_elsewhere(sinks, texts.paths)
    out = told.out or "-"
    output = MatchDestination(out, told.output_format or _format_of(out), sinks, told.count, told.positions)
    if output.form == "parquet" and output.is_progress and not sinks:
        raise UsageError("Parquet is not for a terminal: give --out FILE")
    check_places([*output.places, *filter(None, [told.rejects])], [*texts.paths, *files_of(given)])
    chosen = Options(names.columns, work.arrival, work.sharing, optimising.chosen_for(program), work.limits)
    run = engines.start(given, program, work.engine, chosen, showing=output.typed)
    compiled = clock.perf_counter() - started
    shown = told.show_progress and not output.is_progress
    with compiling_told(), progress("matching", lambda: run.counters, shown=shown):
        output.write(run)
    write_rejects(run.rejected, told.rejects)
    for doubt in run.doubts:
        say(f"warning: {doubt}", err=True)
    if sys.stderr.isatty() and not told.count and run.counters.get("matches") == 0:
        say(
            f"no matches in {plural(run.counters.get('events', 0), 'event')}; `weft why` says what some of them lack",
            err=True,
        )
    if told.stats:
        seconds = clock.perf_counter() - started
        stages = {"compile": compiled, **run.seconds}
        show_stats(run.counters, seconds, {**stages, "write": seconds - sum(stages.values())})
    if run.rejected and not run.counters.get("events"):
        raise InputError("no event could be read")


def _match_sql(texts: options.ProgramTexts, tables: Sequence[str], work: MatchWork, told: MatchOutput) -> None:
    from weft.sql_tables.command import match_tables  # programs of other languages do without

    started = clock.perf_counter()
    out = "-" if told.count else told.out or "-"
    form = told.output_format or _format_of(out)
    rows = match_tables(texts.paths, texts.queries or [], tables, os.devnull if told.count else out, form, work.engine)
    if told.count:
        say_json({"query": Path(texts.paths[0]).stem if texts.paths else "q", "count": rows})
    if told.stats:
        show_stats({"rows": rows}, clock.perf_counter() - started)


def is_sql(paths: Sequence[str], texts: Sequence[str], language: str | None) -> bool:
    """Whether programs are SQL: by the language asked for, the ending of a file, or what is in a text."""
    if language is not None:
        return language.lower() == "sql"
    return any(Path(path).suffix.lower() == ".sql" for path in paths) or any(
        language_of(text).name == "sql" for text in texts
    )


@dataclass(frozen=True)
class MatchDestination:
    """Where matches go: into one file, or to the files in `sinks` by query; or only how many there are."""

    file: str
    form: OutputFormat
    sinks: dict[str, list[str]]
    count: bool
    positions: bool = True

    @property
    def places(self) -> list[str]:
        """All files that are written, each once."""
        return [*dict.fromkeys(path for paths in self.sinks.values() for path in paths), self.file]

    @property
    def typed(self) -> bool:
        """Whether matches are written as columns with the types of the input."""
        forms = map(_format_of, self.places[:-1]) if self.sinks else [self.form]
        return not self.count and all(form == "parquet" for form in forms)

    @property
    def is_progress(self) -> bool:
        """Matches on a terminal are progress enough, and a bar would run into them."""
        return self.file == "-" and sys.stdout.isatty() and not self.count

    def write(self, run: engines.Execution) -> None:
        """Run to the end and write what is found."""
        if self.count:
            _write_counts(run.counts(), self.file)
        elif self.sinks:
            write_to_sinks(self._rows(run), self.sinks)
        else:
            write_matches(self._rows(run), self.file, self.form)

    def _rows(self, run: engines.Execution) -> Iterator[pa.RecordBatch]:
        rows = run.results() if self.typed else run.rows()
        return rows if self.positions else (batch.drop_columns(["positions", "bindings"]) for batch in rows)


def events_of(items: Sequence[str], program: Program) -> list[str] | dict[str, list[str]]:
    """The files that `--events` names, by source if it does so, or those of the program."""
    named = [NAMED.fullmatch(item) for item in items if not Path(item).exists()]
    given: dict[str, list[str]] = {}
    for found in named:
        if found is not None:
            given.setdefault(found["name"], []).append(found["file"])
    if items and not given:
        return list(items)
    if sum(map(len, given.values())) < len(items):
        raise UsageError("--events takes files, or NAME=FILE for each: do not mix the two")
    if not items and not program.inputs:
        raise UsageError("there are no events: give --events FILE (the program names no sources)")
    return inputs.declared_input(program, given)


def files_of(events: list[str] | dict[str, list[str]]) -> list[str]:
    """All files that will be read."""
    places = [events] if isinstance(events, list) else events.values()
    named = (inputs.files_of(place) for place in places)
    return [path for paths in named if paths is not None for path in find_files(paths)]


def sinks_of(program: Program) -> dict[str, list[str]]:
    """The files that the program sends matches to, by query."""
    sinks: dict[str, list[str]] = {}
    for output in program.outputs:
        sinks.setdefault(output.query, []).append(inputs.path_of(output.uri))
    return sinks


def refuse_code(events: list[str] | dict[str, list[str]], items: Sequence[str]) -> None:
    """Refuse functions as sources that the program names, and not the command: to run a query runs no other code."""
    for name, place in events.items() if isinstance(events, dict) else ():
        if isinstance(place, str) and place.startswith("python:") and not any(place in item for item in items):
            raise UsageError(f"the source {name} calls {place}: give --allow-sinks if that is meant")


def refuse_sinks_elsewhere(sinks: dict[str, list[str]], programs: Sequence[str]) -> None:
    """Refuse sinks that are neither below the current folder nor below that of a program, wherever links lead."""
    for name, path in ((name, path) for name, paths in sinks.items() for path in paths if as_uri(path) is not None):
        raise UsageError(f"{name} sends matches to {path}: give --allow-sinks if that is meant, or --out FILE")
    folders = [Path.cwd().resolve(), *(Path(path).resolve().parent for path in programs)]
    for name, paths in sinks.items():
        for path in paths:
            if not any(Path(path).resolve().is_relative_to(folder) for folder in folders):
                raise UsageError(
                    f"{name} writes to {path}, outside its folder and the current one: "
                    "give --allow-sinks if that is meant, or --out FILE"
                )


def _format_of(out: str) -> OutputFormat:
    if as_uri(out) is not None:
        return "jsonl"
    return FORMAT_OF_SUFFIX.get(Path(out).suffix, "jsonl")


def _write_counts(counts: dict[str, int], out: str) -> None:
    sys.set_int_max_str_digits(0)  # a number of matches may have thousands of digits
    lines = "".join(json.dumps({"query": name, "count": n}, ensure_ascii=False) + "\n" for name, n in counts.items())
    with opened(out) as sink:
        sink.write(lines.encode())
