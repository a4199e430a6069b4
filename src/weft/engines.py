"""The engines behind one interface: a run gives matches as rows in match order, counts, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import pyarrow as pa

from weft.algebra.analysis.feeding import feeders
from weft.algebra.predicates import Attribute
from weft.algebra.query import Program
from weft.connectors.adapters.registry import problem_of
from weft.connectors.files import ENDINGS, READERS
from weft.connectors.places import check_folders
from weft.connectors.uris import as_uri
from weft.errors import UsageError, did_you_mean
from weft.input_schemas import check_fit, columns_of
from weft.inputs import open_input, paths_of, spark_input
from weft.optimizer.cost import Costs, resolve_statistics
from weft.optimizer.pipeline import DEFAULT, Choices
from weft.plan.operators import Plan
from weft.plan.parallel.model import Model, model_of
from weft.plan.parallel.tasks import lanes_for
from weft.plan.partitioning.choice import AUTO, MANY_LANES, families_of
from weft.plan.partitioning.here import gain_of, may_gain
from weft.plan.partitioning.splits import PLACED, Lane, is_placed
from weft.plan.planner import plan
from weft.plan.properties import columns_without_fields
from weft.plan.staging.placing import stays_whole
from weft.runtime.data import blocks
from weft.runtime.data.events import Rejected
from weft.runtime.lanes.sharing import Sharing
from weft.runtime.limits.guarding import NO_LIMITS
from weft.runtime.local import Events, LocalRun
from weft.runtime.options import USUAL, EventColumns, FrameOptions, Options
from weft.runtime.watching.measuring import Measure
from weft.statistics import Statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from weft.runtime.spark.runs.run import ContinuousRun

Engine = Literal["local", "spark", "meaning"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
KEPT_PLANS = 16
GAIN = 1.2  # how many times as fast threads must be expected to be, to be used unasked


class Execution(Protocol):
    """One pass of a program over events. Counters and rejected events are complete when it is."""

    counters: dict[str, int]
    seconds: dict[str, float]  # by stage, as far as the engine can tell

    @property
    def rejected(self) -> Sequence[Rejected]:
        """The events that could not be read."""

    @property
    def doubts(self) -> list[str]:
        """What the events show that is probably not meant."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """All matches, in match order, as rows of MATCH_SCHEMA."""

    def results(self) -> Iterator[pa.RecordBatch]:
        """All matches, in match order, with the events that they show; at least one batch. Types may differ."""

    def counts(self) -> dict[str, int]:
        """The number of matches of each query."""


def start(
    events: Any,
    program: Program,
    engine: str | None = None,
    options: Options = USUAL,
    *,
    showing: bool = False,
    counting: bool = False,
) -> Execution:
    """Set up a run; nothing is read yet. Spark frames are matched on Spark unless an engine is named.

    `showing`: the events of matches are kept for its results. `counting`: matches are only counted.
    """
    columns, choices, limits = options.columns, options.choices, options.limits
    sharing = counted(options.sharing, program, choices, places=limits.is_none)
    engine = engine or ("spark" if is_spark_frame(events) else "local")
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}; {did_you_mean(engine, ENGINES)}")
    if engine != "spark" and is_spark_frame(events):
        if events.isStreaming:
            raise UsageError("a stream has no end to wait for: use weft.match, which gives a streaming DataFrame")
        events = collected(events)
    if engine != "local" and not limits.is_none:
        raise UsageError("`budget` and `shed` are for engine='local', weft.match, weft.live and weft run")
    if engine == "spark":
        from weft.runtime.spark.detect import SparkRun  # Spark takes seconds to load, and most runs do without

        if options.arrival.is_asked_for:
            raise UsageError(
                "`delay`, `idle_after` and `max_jump` are for engine='local' here: the other engines sort all events"
            )
        check_input(events, program, None, columns)
        given = spark_input(events, program, time=columns.time, type=columns.type)
        chosen = _cached_plan(program, sharing.strategy or AUTO, choices, sharing.number or MANY_LANES)
        return SparkRun(given, chosen, columns, lanes=sharing.number)
    names: dict[str, Any] = {**columns.named, "arrival": options.arrival}
    shown = None if showing else frozenset[str]()
    if engine == "meaning":
        if sharing.is_asked_for:
            raise UsageError("`strategy`, `lanes` and `threads` are for engine='local' and engine='spark'")
        check_input(events, program, None, columns)
        # All columns are read unless fields of structs are wanted, which are found by their names.
        wanted = plan(program).columns if _reads_fields(program) else None
        from weft.meaning_run import MeaningRun  # the definition: other engines do without

        return MeaningRun(program, open_input(events, program, **names, columns=wanted, shown=shown))
    if is_placed(sharing.strategy) and not limits.is_none:
        raise UsageError("budgets and shedding are for queries that run whole: leave out the strategy 'placed'")
    shared = sharing.is_shared_here
    strategy = sharing.strategy or AUTO if shared else None
    chosen = _cached_plan(program, strategy, choices, sharing.lanes_here)
    check_input(events, program, chosen, columns)
    # Of the only query, results take what `SELECT *` shows from the events that they show.
    lean = counting or (showing and len(program.queries) == 1)
    read = columns_without_fields(program.queries, chosen.columns) if lean else chosen.columns
    source = open_input(events, program, **names, columns=read, shown=shown)
    lanes = chosen.lanes_for(sharing.lanes_here) if shared else ()
    threads = sharing.threads_here
    guard = limits.guard(chosen.queries)
    settled = sharing.is_asked_for or threads == 1 or not limits.is_none or not may_gain(program.queries, threads)
    lanes_for = None if settled else partial(_parallel_plan_if_faster, program, choices, threads)
    return LocalRun(chosen, source, lanes, threads, program, choices, guard, lanes_for)


def _parallel_plan_if_faster(
    program: Program, choices: Choices, threads: int, measured: Statistics
) -> tuple[Plan, tuple[Lane, ...], Choices] | None:
    """Return lanes for the number of threads if they are expected to be faster than one thread, else None."""
    if choices.statistics is not None:
        measured = measured.over(choices.statistics)
    choices = choices._replace(statistics=measured)
    program = choices.applied(program)
    if gain_of(program.queries, feeders(program.queries), Costs(resolve_statistics(program, measured)), threads) < GAIN:
        return None
    found = plan(program, strategy=AUTO, lanes=threads, statistics=measured)
    return found, found.lanes_for(threads), choices


def counted(
    sharing: Sharing, program: Program, choices: Choices, model: Model | None = None, *, places: bool = True
) -> Sharing:
    """The same with as many lanes as the program's rates ask for, where that is wanted.

    Where nothing else is said, operators are placed one by one then, if a query would have one lane otherwise;
    `places`: whether that is possible.
    """
    if sharing.lanes != "auto":
        return sharing
    whole = choices.applied(program)
    found = sharing.counted(lambda: lanes_for(whole, model or model_of(), choices.statistics))
    if not places or sharing.strategy is not None or found.lanes_here < 2:
        return found
    costs = Costs(resolve_statistics(whole, choices.statistics))
    families = families_of(whole.queries, feeders(whole.queries))
    return replace(found, strategy=PLACED) if stays_whole(families, costs, found.lanes_here) else found


def _reads_fields(program: Program) -> bool:
    """Whether an attribute is a field of a struct."""
    parts = (part for query in program.queries for part in query.walk())
    return any(isinstance(part, Attribute) and "." in part.name for part in parts)


def measure(events: Any, program: Program, *, most: int | None, **names: Any) -> Statistics:
    """Return the statistics of the events, or of the first `most` events."""
    if is_spark_frame(events):
        events = collected(events if most is None else events.limit(most))
    measure = Measure(program)
    left = most
    for batch in open_input(events, program, **names, columns=plan(program).columns):
        measure.look(batch if left is None else blocks.slice(batch, 0, min(left, len(batch))))
        left = None if left is None else left - len(batch)
        if left is not None and left <= 0:
            break
    return measure.statistics()


def _cached_plan(program: Program, strategy: str | None, choices: Choices, lanes: int) -> Plan:
    """Return the plan for a number of lanes, cached by program, since planning dominates for few events."""
    asked = (id(program), strategy, choices.optimize, choices.grows, lanes)
    kept = _PLANS.get(asked) if choices.statistics is None else None
    if kept is not None:
        return kept[1]
    made = plan(choices.applied(program), strategy=strategy, lanes=lanes, statistics=choices.statistics)
    if choices.statistics is None:
        if len(_PLANS) >= KEPT_PLANS:
            _PLANS.clear()
        _PLANS[asked] = program, made
    return made


_PLANS: dict[tuple[object, ...], tuple[Program, Plan]] = {}  # a program that is kept keeps its id


def events_here(events: Any, program: Program, options: Options) -> Events | None:
    """Return the events again, with all their attributes, as a run reads them, or None if they are on Spark."""
    if is_spark_frame(events):
        return None
    return open_input(events, program, **options.columns.named, arrival=options.arrival, shown=None)


def check_input(events: Any, program: Program, chosen: Plan | None, columns: EventColumns) -> None:
    """Refuse a program that cannot find anything in an input, if that has a schema."""
    present = columns_of(events, columns.time, columns.type)
    if present is not None:
        check_fit(program, (chosen or plan(program)).columns, present, columns.time, columns.type)


FOR_FILES = frozenset({"rejects", "rows", "positions", "adapt", "columns"})  # what `weft.match` also takes for files


def match_on_spark(frame: Any, program: Program, options: Options, own: FrameOptions) -> DataFrame:
    """The matches in a Spark DataFrame, or in files, as a Spark DataFrame; see `match_frame` for the options."""
    from weft.runtime.spark.connections.records import has_records
    from weft.runtime.spark.frames import match_files, match_frame

    columns, choices = options.columns, options.choices
    if own.payload is None and not has_records(frame, own.schema, columns.type):
        check_input(own.schema or frame, program, None, columns)
    if options.sharing.lanes == "auto":  # else the frame is not asked: a pipeline's must not be
        places = not (own.streaming or getattr(frame, "isStreaming", False)) and options.limits.is_none
        options = replace(options, sharing=counted(options.sharing, program, choices, places=places))
    if paths_of(frame) is not None:
        if unfit := own.asked_for - FOR_FILES:
            raise UsageError(f"`{min(unfit)}` is for DataFrames: files are read by the tasks themselves")
        if own.adapt:
            raise UsageError(
                "`adapt` is for streams: files are matched as a whole; weft run --adapt reads them as a stream"
            )
        files = spark_input(frame, program, time=columns.time, type=columns.type)
        return match_files(files, choices.applied(program), options, own)
    adapts = _adapts(program, choices) if own.adapt else None
    if own.adapt and not options.limits.is_none:
        raise UsageError("`adapt` does not go together with budgets and shedding: leave one of them out")
    events = spark_input(frame, program, time=columns.time, type=columns.type)
    return match_frame(events, choices.applied(program), options, own, adapts=adapts, written=program)


def rows_on_spark(matches: DataFrame, frame: DataFrame) -> DataFrame:
    """A row for each event of each match."""
    from weft.runtime.spark.frames import rows_of

    return rows_of(matches, frame)


def continuous(
    program: Program,
    sources: Sequence[tuple[str, str]],
    *,
    choices: Choices = DEFAULT,
    adapt: bool = False,
    **options: Any,
) -> ContinuousRun:
    """A run without end on Spark, over named folders, topics and tables; see `RunOptions` for the options.

    Not started yet. `kafka`, `packages` and `jars` are lists of texts.
    """
    from weft.runtime.spark.connections.addresses import folder_of, is_connection
    from weft.runtime.spark.connections.kafka import client_options
    from weft.runtime.spark.jobs.job import NOT_PLACED
    from weft.runtime.spark.runs.options import RunOptions
    from weft.runtime.spark.runs.run import ContinuousRun

    if is_placed(options.get("strategy")):
        raise UsageError(NOT_PLACED)
    for name, uri in sources:
        parsed = as_uri(uri)
        if parsed is not None and not is_connection(uri) and (problem := problem_of(parsed, "source", "spark")):
            raise UsageError(f"source {name}: {uri} cannot be read: {problem}")
    if as_uri(options["sink"]) is not None and not is_connection(options["sink"]):
        options["sink"] = adapter_path(options["sink"])
    options["kafka"] = client_options(options.get("kafka") or ())
    options |= {name: tuple(options.get(name) or ()) for name in ("packages", "jars")}
    options["lanes"] = counted(Sharing(lanes=options.get("lanes")), program, choices).number
    options |= {"adapts": _adapts(program, choices) if adapt else None, "statistics": choices.statistics}
    if adapt and not options.get("limits", NO_LIMITS).is_none:
        raise UsageError("--adapt does not go together with budgets and shedding: leave one of them out")
    run = ContinuousRun(choices.applied(program), sources, chosen := RunOptions(**options), ENDINGS, READERS, program)
    written = [
        place for place in (chosen.sink, chosen.checkpoint, chosen.rejects) if place and not is_connection(place)
    ]
    read = [uri for _, uri in sources if not is_connection(uri)]
    check_folders(*([folder_of(uri)[0] for uri in uris] for uris in (written, read)))
    return run


def adapter_path(uri: str) -> str:
    """The folder that a sink of a run is; an error says why it is none."""
    parsed = as_uri(uri)
    if parsed is None:
        return uri
    problem = problem_of(parsed, "sink", "spark")
    if problem is not None:
        raise UsageError(f"the sink {uri} cannot be written: {problem}")
    return parsed.place


def _adapts(program: Program, choices: Choices) -> tuple[Program, Choices]:
    """What lanes need to know to change the form of queries."""
    if not choices.optimize:
        raise UsageError("a program that runs as it was written does not change its form: leave out adapt, or optimize")
    return program, choices


def is_spark_frame(events: Any) -> bool:
    """Whether this is a DataFrame of Spark, classic or Connect; Spark is not loaded to find out."""
    return type(events).__module__.startswith("pyspark.sql")


def collected(frame: Any) -> pa.Table:
    """The rows of a Spark DataFrame, in this process."""
    from weft.runtime.spark.compat import to_arrow

    return to_arrow(frame)
