"""Options that several commands have, each written once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from weft.algebra.query import Program
from weft.api import merge_programs
from weft.cli.console import say
from weft.cli.render import compile_all
from weft.errors import UsageError
from weft.optimizer.fitting import unused_statistics
from weft.optimizer.pipeline import Choices
from weft.pattern.functions import load_functions
from weft.runtime.lanes.sharing import LaneCount
from weft.runtime.limits.budgets import Budget, budget_from_text
from weft.runtime.limits.guarding import Limits
from weft.runtime.limits.shedding import Shed
from weft.runtime.options import EventColumns

Programs = Annotated[
    list[str] | None, typer.Argument(metavar="PROGRAM", show_default=False, help="Files with queries.")
]


def declare_functions(paths: list[str] | None) -> list[str] | None:
    """Let programs use the functions that files declare, before any program is compiled."""
    for path in paths or ():
        load_functions(path)
    return paths


Functions = Annotated[
    list[str] | None,
    typer.Option(
        "--functions",
        metavar="FILE.py",
        callback=declare_functions,
        help="A Python file that declares functions by weft.function; repeatable.",
    ),
]
Queries = Annotated[
    list[str] | None,
    typer.Option("--query", "-q", metavar="TEXT", help="A query itself, in place of a file; repeatable."),
]
Language = Annotated[
    str | None, typer.Option(metavar="NAME", help="The query language; told by the file's ending if not given.")
]
Time = Annotated[str, typer.Option(metavar="NAME", help="The attribute with an event's time.")]
Type = Annotated[str, typer.Option("--type", metavar="NAME", help="The attribute with an event's type.")]
Order = Annotated[
    list[str] | None,
    typer.Option("--order", metavar="NAME", help="An attribute that decides between equal times; repeatable."),
]
Key = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="NAME", help="An attribute that identifies events in ids of matches; repeatable."),
]
TimeUnit = Annotated[str, typer.Option(metavar="UNIT", help="One tick of event time: ns, us, ms, s, min, h or d.")]
Strategy = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="How work is shared out: key, slice, replicate, query, rank, match (match:rr, match:potc, match:es, "
        "match:mcee), one, or placed.",
    ),
]


def lane_count(text: str) -> LaneCount:
    """A number of lanes, or `auto`."""
    if text == "auto":
        return "auto"
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise typer.BadParameter("it is a number, at least 1, or `auto`")
    return int(text)


def idle_after(text: str) -> Any:
    """A number of seconds, `rate`, or `never` (None)."""
    if text in ("rate", "never"):
        return text if text == "rate" else None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise typer.BadParameter("it is a number of seconds, `rate` or `never`")
    return seconds


MaxJump = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="How far an event may be ahead before time waits for others to confirm it; `inf`: any.",
    ),
]
IdleAfter = Annotated[
    Any,  # as the functions take it, which the command line's library has no kind for
    typer.Option(
        "--idle-after",
        parser=idle_after,
        metavar="SECONDS",
        help="Do not wait longer for a source that sends nothing; `rate`: by its declared rate; or `never`.",
    ),
]
Lanes = Annotated[
    Any,  # LaneCount, which the command line's library has no kind for
    typer.Option(
        "--lanes",
        parser=lane_count,
        metavar="N",
        help="How many lanes share the work; `auto`: as many as the rates ask for.",
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option("--nodes", min=1, metavar="N", help="Place operators on N nodes, stage by stage, as NEXT does."),
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, metavar="N", help="How many lanes work at once in this process.")
]
Stats = Annotated[bool, typer.Option("--stats", help="Print counters and throughput to stderr.")]
ShowProgress = Annotated[bool, typer.Option("--progress/--no-progress", help="Show progress on a terminal's stderr.")]
Optimize = Annotated[bool, typer.Option("--optimize/--no-optimize", help="Rewrite queries into their cheapest form.")]
StatisticsFile = Annotated[
    str | None,
    typer.Option(
        "--statistics", metavar="FILE", help="A file of rates and selectivities, as `weft measure` writes it."
    ),
]
Budgets = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="[QUERY:]LIMITS",
        help="Limits and what happens at them: state=100MB,then=shed or alarms:matches=1000,then=sample; repeatable.",
    ),
]


ShedShare = Annotated[
    float | None,
    typer.Option(
        min=0, max=1, metavar="SHARE", help="Leave this share of the events out, of those whose loss invents no match."
    ),
]
ShedAbove = Annotated[
    str | None,
    typer.Option(
        metavar="N|SECONDS",
        help="Leave events out where that invents no match: above N in a batch (100000), or to keep it short (2s).",
    ),
]
Positions = Annotated[
    bool, typer.Option("--positions/--no-positions", help="Whether positions and bindings of matches are written.")
]


@dataclass(frozen=True)
class ProgramTexts:
    """What is to be found."""

    programs: Programs = None
    queries: Queries = None
    language: Language = None
    time_unit: TimeUnit = "ms"
    functions: Functions = None

    @property
    def paths(self) -> list[str]:
        """The files."""
        return self.programs or []

    def each(self, paths: Sequence[str]) -> list[Program]:
        """The programs in these files, and those that were given as text."""
        return compile_all(paths, self.queries, self.language, self.time_unit)

    def compiled(self, paths: Sequence[str]) -> Program:
        """The same, as one."""
        return merge_programs(self.each(paths))


@dataclass(frozen=True)
class EventNames:
    """Which attributes of events mean something to weft."""

    time: Time = "ts"
    type_: Type = "type"
    order: Order = None
    key: Key = None

    @property
    def columns(self) -> EventColumns:
        """As a program takes them."""
        return EventColumns(self.time, self.type_, tuple(self.order or ()), tuple(self.key or ()))

    @property
    def named(self) -> dict[str, Any]:
        """As the public functions take them."""
        return self.columns.named


@dataclass(frozen=True)
class Optimising:
    """How programs are rewritten."""

    optimize: Optimize = True
    statistics: StatisticsFile = None

    @property
    def choices(self) -> Choices:
        """As the optimiser takes them."""
        return Choices.of(self.optimize, self.statistics)

    def chosen_for(self, program: Program) -> Choices:
        """The same; warn about statistics that match nothing in the program."""
        chosen = self.choices
        for remark in unused_statistics(program, chosen.statistics):
            say(f"warning: {remark}", err=True)
        return chosen


def shed_of(share: float | None, above: str | None) -> Shed | None:
    """`--shed-share` and `--shed-above`, which is a number of events or of seconds."""
    if share is not None and above is not None:
        raise UsageError("--shed-share and --shed-above do not go together: give one of them")
    if above is None:
        return None if share is None else Shed(share=share)
    try:
        return Shed(seconds=float(above[:-1])) if above.endswith("s") else Shed(above=int(above.replace("_", "")))
    except ValueError:
        raise UsageError(f"--shed-above takes a number of events (100000) or seconds (2s), not {above!r}") from None


def limits_of(budgets: list[str] | None, shed: Shed | None) -> Limits:
    """What a program may take, as the options say it."""
    found: dict[str, list[Budget]] = {}
    for name, budget in map(budget_from_text, budgets or ()):
        found.setdefault(name, []).append(budget)
    return Limits(found or None, shed)
