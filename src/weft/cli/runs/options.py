"""The options of `weft run`: sources and sinks, reporting, and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from weft.cli import options
from weft.errors import UsageError
from weft.running.logs import LogFormat
from weft.runtime.limits.guarding import Limits

Delay = Annotated[
    int, typer.Option(min=0, metavar="TICKS", help="How much later than its successors an event may come.")
]
Until = Annotated[
    Literal["stopped", "read", "complete"],
    typer.Option(help="When to end: when stopped, or when all files are read; `complete` ends the stream then, too."),
]
Sources = Annotated[
    list[str],
    typer.Option(
        "--source",
        "--events",
        "-e",
        metavar="NAME=URI",
        help="A folder that files of events are put into, kafka://HOST:PORT/TOPIC, or delta:PATH; repeatable.",
    ),
]
Sink = Annotated[
    str,
    typer.Option(
        "--sink",
        "--out",
        "-o",
        metavar="URI",
        help="The folder that files of matches are put into, kafka://HOST:PORT/TOPIC, delta:PATH.",
    ),
]
Kafka = Annotated[
    list[str] | None,
    typer.Option(metavar="OPTION=VALUE", help="An option of Kafka's clients, or @FILE with such lines; repeatable."),
]
Packages = Annotated[
    list[str] | None,
    typer.Option("--packages", metavar="GROUP:NAME:VERSION", help="A package that Spark fetches by Maven; repeatable."),
]
Jars = Annotated[list[str] | None, typer.Option("--jars", metavar="FILE", help="A jar for Spark; repeatable.")]
Checkpoint = Annotated[str, typer.Option(metavar="DIR", help="Where progress and state are kept.")]
Every = Annotated[str, typer.Option(metavar="SPAN", help="How often to look for new files.")]
Adapt = Annotated[
    bool, typer.Option("--adapt", help="Change to a cheaper form of queries when the rates of events change.")
]
FilesPerTrigger = Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of files at once.")]
BytesPerTrigger = Annotated[
    int, typer.Option(min=1, metavar="N", help="Maximum bytes of files at once; one file is always read.")
]
Settle = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="Read a file when it has not changed for so many seconds.")
]
MaxAhead = Annotated[
    float,
    typer.Option(min=0, metavar="SECONDS", help="Reject events that are further ahead of the clock; `inf`: none."),
]
Rate = Annotated[
    list[str] | None,
    typer.Option(
        "--rate",
        metavar="[NAME=]N",
        help="Maximum events read per second, from all sources or from one by name; repeatable.",
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="How many Spark tasks the lanes share from the first start on: room for more lanes later.",
    ),
]
Format = Annotated[Literal["jsonl", "parquet"], typer.Option("--format", "-f", help="How matches are written.")]
Rejects = Annotated[
    str | None,
    typer.Option(
        metavar="DIR", help="Where late and unreadable events go; else SINK/rejects, or in DIR/rejects of --checkpoint."
    ),
]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="Register it, for `weft list`, `show` and `stop`.")]
Detach = Annotated[bool, typer.Option("--detach", help="Start it in the background; needs --name.")]
Listen = Annotated[
    str | None, typer.Option(metavar="PORT", help="Serve /metrics and /health on PORT of this machine, or HOST:PORT.")
]
LogFormatOption = Annotated[
    LogFormat | None,
    typer.Option("--log-format", help="Write a line for each trigger to standard error, in this format."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say which queries would keep the state that the checkpoint has.")
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Take over programs that change, or appear in a folder, at the next trigger.")
]
Steps = Annotated[
    bool, typer.Option("--steps", help="Count how many partial matches reach each step of each query; takes work.")
]


@dataclass(frozen=True)
class TransferOptions:
    """Where events come from, how they are taken and shared out, where matches go: options of `RunOptions`."""

    sink: Sink
    checkpoint: Checkpoint
    rejects: Rejects = None
    delay: Delay = 0
    until: Until = "stopped"
    every: Every = "1 second"
    idle_after: options.IdleAfter = "rate"
    files_per_trigger: FilesPerTrigger = 1000
    bytes_per_trigger: BytesPerTrigger = 1 << 28
    rate: Rate = None
    settle: Settle = 0.0
    max_ahead: MaxAhead = 86_400.0
    max_jump: options.MaxJump = 43_200.0
    strategy: options.Strategy = None
    lanes: options.Lanes = None
    partitions: Partitions = None
    positions: options.Positions = False
    kafka: Kafka = None
    packages: Packages = None
    jars: Jars = None


@dataclass(frozen=True)
class ReportOptions:
    """What a run reports while it is running, and to whom."""

    stats: options.Stats = False
    name: Name = None
    detach: Detach = False
    listen: Listen = None
    log_format: LogFormatOption = None
    show_progress: options.ShowProgress = True
    steps: Steps = False


@dataclass(frozen=True)
class RunLimits:
    """What it may take, and whether it may change meanwhile."""

    budget: options.Budgets = None
    shed_share: options.ShedShare = None
    shed_above: options.ShedAbove = None
    adapt: Adapt = False
    watch: Watch = False

    @property
    def limits(self) -> Limits:
        """What it may take."""
        return options.limits_of(self.budget, options.shed_of(self.shed_share, self.shed_above))


def rate_of(texts: list[str] | None) -> float | dict[str, float] | None:
    """`--rate` for all sources, or by their names."""
    found: dict[str, float] = {}
    for text in texts or ():
        name, _, number = text.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise UsageError(f"--rate takes a number of events in a second, or NAME=N, not {text!r}") from None
    if "" in found and len(texts or ()) > 1:
        raise UsageError("--rate is given once for all sources, or as NAME=N for each")
    return found.get("", found or None)
