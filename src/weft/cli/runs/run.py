"""`weft run`: match live streams of events on Spark, until told to stop."""

from __future__ import annotations

import os
import signal
import sys
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from weft import engines
from weft.algebra.prefixes import Steps as StepsOfQueries
from weft.algebra.prefixes import step_names, with_steps
from weft.algebra.query import Program
from weft.cli import options
from weft.cli.console import say
from weft.cli.grouping import grouped
from weft.cli.interrupts import end_in_order, was_interrupted
from weft.cli.render import progress, show_stats
from weft.cli.runs.options import DryRun, Format, ReportOptions, RunLimits, Sources, TransferOptions, rate_of
from weft.errors import UsageError, WeftError
from weft.optimizer.pipeline import Choices
from weft.running import registry
from weft.running.activity import Activity
from weft.running.changing import ProgramChange
from weft.running.logs import LOGGER, log_trigger, show_logs
from weft.running.program_files import ProgramFiles
from weft.runtime.watching.triggers import Trigger

if TYPE_CHECKING:
    from weft.runtime.spark.runs.run import ContinuousRun

GLANCE = 0.2  # seconds after which a wait looks whether it should go on
SOON, IN_TIME = 0.5, 30.0  # seconds for the trigger in progress, after Ctrl-C and when told to stop otherwise
EXECUTORS_EVERY = 2.0  # seconds between two questions to Spark


@grouped
def run(
    source: Sources,
    flow: TransferOptions,
    texts: options.ProgramTexts,
    names: options.EventNames,
    telling: ReportOptions,
    optimising: options.Optimising,
    within: RunLimits,
    output_format: Format = "jsonl",
    dry_run: DryRun = False,
) -> None:
    """Match live streams of events, on Spark Structured Streaming.

    Files of events that appear in the sources are matched as they come; each trigger adds a file of matches
    to the sink. Stop with Ctrl-C: the same command resumes where it stopped, and no match is lost or duplicated.

        weft run fire.ceql --source warehouse=incoming --sink matches --checkpoint state

        weft run fire.ceql --source warehouse=incoming --sink matches --checkpoint state --until complete --stats

    A source may also be a topic of Kafka or a Delta table, and so may the sink (docs/kafka.md, docs/delta.md):

        weft run fire.ceql --source 'sensors=kafka://localhost:9092/sensors' --sink kafka://localhost:9092/fires \
            --checkpoint state --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0

    An event waits until none that belongs before it can come any more: --delay says how late one may be.

    The program may be another one when it is started again: queries that are the same keep their state (--dry-run says
    which), and those that are new or have changed begin with the events that come then. So may --lanes and --strategy:
    queries move to the new lanes without losing matches.

    With --watch that happens while it runs: programs that change, or appear in a folder that is given as PROGRAM, apply
    from the next trigger on. A program with errors is reported, and the previous one keeps running.

    With --name it is listed by `weft list`; with --detach it keeps running after the command has returned:

        weft run fire.ceql --source warehouse=incoming --sink matches --checkpoint state --name fire --detach
    """
    if telling.detach:
        start_detached(telling.name)
        return
    if within.watch and (flow.until != "stopped" or not texts.paths):
        raise UsageError("--watch is for runs of programs in files or folders that go on until they are stopped")
    if within.watch and within.adapt:
        raise UsageError("--watch does not go together with --adapt: leave one of them out")
    files = ProgramFiles(texts.paths)

    def compiled() -> WrittenProgram:
        program = texts.compiled(files.paths())
        return WrittenProgram(program.names, *(with_steps(program) if telling.steps else (program, {})))

    written = compiled()
    continuous = engines.continuous(
        written.program,
        [named_source(item) for item in source],
        **{field.name: getattr(flow, field.name) for field in fields(flow)} | {"rate": rate_of(flow.rate)},
        **names.named,
        format=output_format,
        choices=optimising.chosen_for(written.program),
        limits=within.limits,
        adapt=within.adapt,
        counted=step_names(written.steps),
    )
    if dry_run:
        say(continuous.kept())
        return
    started = clock.perf_counter()
    about = about_run(written, texts, source, flow, names, telling.listen, watch=within.watch)
    taking_over = partial(take_over, continuous, compiled, optimising.choices) if within.watch else None
    stop = Event()
    with watched(continuous.watch, about, telling) as registration, set_by(signal.SIGTERM, stop):
        continuous.start()
        shown = telling.show_progress and telling.log_format is None
        # Spark, which has begun now, has its own handler of Ctrl-C: it cancels the work at hand.
        with set_by(signal.SIGINT, stop), progress("matching", lambda: continuous.counters, shown=shown):
            end_in_order()
            wait_for_end(continuous, stop, registration, files, taking_over)
            continuous.stop(SOON if was_interrupted() else IN_TIME)
    if telling.stats:
        show_stats(continuous.counters, clock.perf_counter() - started)
    if was_interrupted():
        raise KeyboardInterrupt("the same command resumes from the checkpoint")


def about_run(
    written: WrittenProgram,
    texts: options.ProgramTexts,
    source: Sequence[str],
    flow: TransferOptions,
    names: options.EventNames,
    listen: str | None,
    *,
    watch: bool,
) -> dict[str, object]:
    """What the registry says of a run."""
    return {
        "programs": [*texts.paths, *(texts.queries or ())],
        "sources": source,
        "sink": flow.sink,
        "checkpoint": flow.checkpoint,
        "listen": listen,
        "queries": list(written.names),
        "steps": written.steps,
        "time": names.time,
        "type": names.type_,
        "command": sys.argv[1:],
        "folder": os.getcwd(),
        "watched": [os.path.abspath(path) for path in texts.paths] if watch else [],
    }


def wait_for_end(
    continuous: ContinuousRun,
    stop: Event,
    registration: registry.Registration | None,
    files: ProgramFiles,
    taking_over: Callable[[float], dict[str, object]] | None,
) -> None:
    """Wait until a run ends or is stopped; meanwhile report its status and apply changed programs."""
    asked = 0.0
    while not stop.is_set() and not continuous.wait(GLANCE):
        if registration is not None and clock.monotonic() > asked + EXECUTORS_EVERY:
            asked = clock.monotonic()
            registration.tell(executors=continuous.executors())
        seen = clock.time()
        told = taking_over(seen) if taking_over is not None and files.have_changed() else {}
        if told and registration is not None:
            registration.tell(**told)


class WrittenProgram(NamedTuple):
    """A program as it is written, with its queries up to each of their steps if those are to be counted."""

    names: tuple[str, ...]
    program: Program
    steps: StepsOfQueries


def take_over(
    continuous: ContinuousRun, compiled: Callable[[], WrittenProgram], chosen: Choices, seen: float
) -> dict[str, object]:
    """Let the programs as they are now take the place of those before; if they are wrong, those before go on.

    What the registry is to know of it; nothing if the programs are those that run.
    """
    try:
        written = compiled()
        if continuous.is_running(written.program):
            return {}
        kept = continuous.become(chosen.applied(written.program), written.program, step_names(written.steps))
        say(f"the program has changed:\n{kept}", err=True)
        change = ProgramChange(seen, kept, list(written.names))
        return {"change": asdict(change), "queries": change.queries, "steps": written.steps}
    except WeftError as error:
        say(f"the changed program is refused, and the previous one keeps running:\n{error}", err=True)
        LOGGER.warning("the changed program is refused, and the previous one keeps running: %s", error)
        return {"change": asdict(ProgramChange(seen, str(error), refused=True))}


def start_detached(name: str | None) -> None:
    """Start this very command once more, in the background."""
    if name is None:
        raise UsageError("--detach needs --name, to find the run again: weft run … --name fire --detach")
    arguments = [argument for argument in sys.argv[1:] if argument != "--detach"]
    entry = registry.detach(name, arguments)
    say(f"{name} is running as process {entry.about['pid']}; its log is {entry.log}")


@contextmanager
def watched(
    watch: Callable[[Callable[[Trigger], None]], None], about: Mapping[str, object], telling: ReportOptions
) -> Iterator[registry.Registration | None]:
    """Tell of each trigger: in the log, to the registry, and to whoever asks on a port."""
    name, listen, log_format = telling.name, telling.listen, telling.log_format
    if log_format is not None:
        show_logs(log_format)
    watch(log_trigger)
    registration = None if name is None else registry.Registration(name, about)
    if registration is not None:
        show_logs(log_format or "text", registration.folder / registry.LOG)
    activity = Activity() if registration is None else registration.activity
    watch(activity.add if registration is None else registration.add)
    server = None
    if listen is not None:
        from weft.running.metrics import serve  # few runs serve them

        server = serve(listen, {name or "run": activity})
    problem: str | None = None
    try:
        yield registration
    except BaseException as error:
        problem = str(error) or type(error).__name__
        raise
    finally:
        if server is not None:
            server.shutdown()
            server.server_close()
        if registration is not None:
            registration.end(problem)


@contextmanager
def set_by(number: signal.Signals, event: Event) -> Iterator[None]:
    """Have a signal set an event."""
    before = signal.signal(number, lambda *_: event.set())
    try:
        yield
    finally:
        signal.signal(number, before)


def named_source(text: str) -> tuple[str, str]:
    """`NAME=URI` as its two parts."""
    name, equals, uri = text.partition("=")
    if not (name and equals and uri):
        raise UsageError(f"--source takes NAME=URI, as in warehouse=incoming, not {text!r}")
    return name, uri
