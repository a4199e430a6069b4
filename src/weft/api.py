"""The public functions: compile a program, match a frame, detect in data, count, explain.

The whole way of a query is one line each in `detect`: text, algebra, plan, run, matches.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import engines, inputs
from weft.algebra.query import Program
from weft.described import described
from weft.described.checking import FLAG, check
from weft.detection import Detection, report_rejected, warn_suspicious_data
from weft.errors import Diagnostic, ProgramError, UsageError, callers_level
from weft.languages import compile_text
from weft.languages.defined import Compile, Defined, compile_together
from weft.languages.texts import path_of_program, read_program
from weft.optimizer.fitting import unused_statistics
from weft.optimizer.pipeline import Choices
from weft.pattern import Pattern
from weft.plan.parallel.model import model_of
from weft.plan.partitioning.choice import MANY_LANES
from weft.runtime.data.events import Rejected
from weft.runtime.lanes.sharing import LaneCount, Sharing
from weft.runtime.limits.budgets import Given
from weft.runtime.limits.shedding import Shed
from weft.runtime.options import FrameOptions, Options
from weft.runtime.reading.fronts import MAX_JUMP
from weft.runtime.reading.idleness import IdleAfter
from weft.schema import Catalog
from weft.statistics import Statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Programs = Program | Pattern | str | Path | Sequence[Program | Pattern | str | Path]
Known = Statistics | str | Path | None  # statistics, or a file of them
Schema = Catalog | Mapping[str, Mapping[str, str]]


class ProgramWarning(UserWarning):
    """Something in a program that is allowed and probably not meant."""


@described(
    text_or_path="The text of a program, a `Path`, or a text that ends like one (`fire.ceql`).",
    schema="Event types that the text does not declare itself: `{type: {attribute: kind}}` or a Catalog.",
)
def compile(
    text_or_path: str | Path,
    language: str | None = None,
    schema: Schema | None = None,
    time_unit: str = "ms",
) -> Program:
    """Compile a program from its text or its file.

    The language is told by the file's ending or a leading keyword.
    """
    program, findings = compile_with_findings(text_or_path, language, schema, time_unit)
    warn_of(findings)
    return program


def compile_with_findings(
    text_or_path: str | Path,
    language: str | None = None,
    schema: Schema | None = None,
    time_unit: str = "ms",
    *,
    stem: str | None = None,
    running: Program | None = None,
    defined: Defined | None = None,
) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Like `compile`, but gives the warnings back.

    `stem` is what a nameless query is called. The text is checked together with a program that is running already,
    and with the types that are `defined` in it and beside it.
    """
    check({"language": language, "schema": schema, "time_unit": time_unit, "name": stem})
    path = path_of_program(text_or_path)
    program, findings = compile_text(
        str(text_or_path) if path is None else read_program(path),
        language=language,
        name="<text>" if path is None else str(path),
        stem=stem or ("q" if path is None else path.stem),
        schema=schema,
        time_unit=time_unit,
        running=running,
        defined=defined,
    )
    return replace(program, time_unit=time_unit), findings


def warn_of(findings: Sequence[Diagnostic]) -> None:
    """Warn about diagnostics of a program, at the user's line of code."""
    for finding in findings:
        warnings.warn(finding.render(), ProgramWarning, stacklevel=callers_level())


@described(
    rejects="Whether events that took no part come too, with the reason and the event in two more columns.",
    delay="For a stream without a watermark: how many ticks later than its successors an event may come.",
)
def match(
    frame: DataFrame | str | Path | Sequence[str | Path],
    program: Programs,
    time: str = "ts",
    type: str = "type",
    *,
    language: str | None = None,
    order: str | Sequence[str] = (),
    key: str | Sequence[str] = (),
    rejects: bool = False,
    optimize: bool = True,
    statistics: Known = None,
    budget: Given = None,
    shed: Shed | None = None,
    rows: bool = False,
    positions: bool = False,
    strategy: str | None = None,
    lanes: LaneCount = None,
    heavy_keys: bool = False,
    delay: int | None = None,
    adapt: bool = False,
    checkpoint: str | Path | None = None,
    scan: str = "auto",
    state: str = "auto",
    columns: Sequence[str] | None = None,
    payload: StructType | str | None = None,
    schema: StructType | None = None,
    streaming: bool = False,
) -> DataFrame:
    """Find the matches in a Spark DataFrame, batch or streaming, or in files, as a Spark DataFrame.

    Its columns are query, id, start and end (with the type of the input's times), variables (a struct that has for each
    variable an array of its events) and event (a struct, or a JSON text when the queries' fields differ). Matches are
    events of the type of their query for others. Limits are shared out to lanes; what was left out is counted
    (`counts.get` of the result).
    """
    given = locals()
    check(given, rejects=FLAG, positions=FLAG, schema=None)
    if engines.is_spark_frame(frame) or inputs.paths_of(frame) is not None:
        whole, options = merge_programs(program, language=language), Options.of(given)
        warn_of_unused(options.choices, whole)
        return engines.match_on_spark(frame, whole, options, FrameOptions.of(given))
    raise UsageError(
        f"weft.match takes a Spark DataFrame or files, not a {frame.__class__.__name__}: "
        "for data in Python use weft.detect(events, program)"
    )


@described(frame="The DataFrame in which they were found.")
def rows(matches: DataFrame, frame: DataFrame) -> DataFrame:
    """Return a row for each event of each match, as ALL ROWS PER MATCH gives in SQL.

    Its columns are the match's `query` and `match_id`, the `variable`, the event's `number` in the match from 1 on, and
    all columns of the frame.
    """
    return engines.rows_on_spark(matches, frame)


@described()
def detect(
    events: Any,
    program: Programs,
    engine: str | None = None,
    *,
    language: str | None = None,
    time: str = "ts",
    type: str = "type",
    order: str | Sequence[str] = (),
    key: str | Sequence[str] = (),
    rejects: list[Rejected] | None = None,
    delay: int | None = None,
    idle_after: IdleAfter = "rate",
    max_jump: float | None = MAX_JUMP,
    strategy: str | None = None,
    lanes: LaneCount = None,
    threads: int | None = None,
    optimize: bool = True,
    statistics: Known = None,
    budget: Given = None,
    shed: Shed | None = None,
) -> Detection:
    """Find the matches in events, in match order: objects to iterate over, or a table (`to_arrow`, `to_pandas`, …).

    Events that cannot be read take no part. Events of live sources (dicts, lists of them, record batches, or a
    `Heartbeat`) are matched as they come, in the order of all sources.
    """
    given = locals()
    check(given)
    whole, options = merge_programs(program, language=language), Options.of(given)
    warn_of_unused(options.choices, whole)
    start = partial(engines.start, events, whole, engine, options)
    again = None if inputs.reads_once(events) else partial(engines.events_here, events, whole, options)

    def report(run: engines.Execution) -> None:
        report_rejected(run.rejected, rejects, stacklevel=6)
        warn_suspicious_data(run, stacklevel=6)

    # What is wrong shows now, not when the matches are asked for.
    drawn = partial(_plan_picture, whole, options.choices)
    return Detection(start(), partial(start, showing=True), report, again, (time, type), drawn)


def _plan_picture(program: Program, chosen: Choices) -> str:
    """Draw the plan of a program, with what only those load who look at it."""
    from weft.drawing.program import plan_picture

    return plan_picture(program, chosen)


@described()
def count(
    events: Any,
    program: Programs,
    engine: str | None = None,
    *,
    language: str | None = None,
    time: str = "ts",
    type: str = "type",
    order: str | Sequence[str] = (),
    key: str | Sequence[str] = (),
    rejects: list[Rejected] | None = None,
    delay: int | None = None,
    idle_after: IdleAfter = "rate",
    max_jump: float | None = MAX_JUMP,
    strategy: str | None = None,
    lanes: LaneCount = None,
    threads: int | None = None,
    optimize: bool = True,
    statistics: Known = None,
) -> dict[str, int]:
    """Count the matches of each query, by name, without making match objects."""
    given = locals()
    check(given)
    whole, options = merge_programs(program, language=language), Options.of(given)
    warn_of_unused(options.choices, whole)
    run = engines.start(events, whole, engine, options, counting=True)
    counts = run.counts()
    report_rejected(run.rejected, rejects)
    warn_suspicious_data(run)
    return counts


@described()
def measure(
    events: Any,
    program: Programs,
    *,
    time: str = "ts",
    type: str = "type",
    sample: int | None = None,
) -> Statistics:
    """Measure the statistics that a program's optimisation rests on: rates by type, and how often conditions hold.

    Give them to `detect` and the others as `statistics`.
    """
    check(locals())
    return engines.measure(events, merge_programs(program), most=sample, time=time, type=type)


@described()
def explain(
    program: Programs,
    stage: str = "plan",
    format: str = "text",
    *,
    optimize: bool = True,
    statistics: Known = None,
    strategy: str | None = None,
    lanes: LaneCount = None,
    rates: bool = False,
    model: str | None = None,
    nodes: int | None = None,
) -> str:
    """Return a program at a stage of its way to the kernels.

    The plan says how the work is shared out, and on request what each component has to do.
    """
    check(locals())
    from weft import stages  # what prints programs: to run them needs none of it

    parts, findings = compile_each(program)
    if stage == "syntax":
        return stages.show_syntax(parts, format)
    warn_of(findings)
    if any(part.row_patterns for part in parts):
        return stages.show_row_patterns(parts, stage, format)
    whole, chosen = merge_programs(parts), Choices.of(optimize, statistics)
    shown = model_of(model) if rates or model else None
    if shown is not None and (lanes, nodes) == (None, None):
        lanes = "auto"
    sharing = engines.counted(Sharing(strategy, lanes), whole, chosen, shown)
    return stages.show(whole, stage, format, chosen, (sharing.strategy, sharing.number or MANY_LANES), shown, nodes)


def warn_of_unused(chosen: Choices, program: Program) -> None:
    """Warn about statistics that match nothing in the program."""
    for remark in unused_statistics(program, chosen.statistics):
        warnings.warn(remark, ProgramWarning, stacklevel=callers_level())


def merge_programs(
    programs: Programs, compiled: Compile = compile_with_findings, *, language: str | None = None
) -> Program:
    """Merge several programs into one, deployed on the same events. Their queries can read each other's output.

    With a `language`, texts are in it.
    """
    if language is not None:
        compiled = partial(compiled, language=language)
    parts, findings = compile_each(programs, compiled)
    warn_of(findings)
    if not parts or not all(isinstance(part, Program) for part in parts):
        raise UsageError("a program is what weft.compile(text_or_path) gives, or such a text: pass one, or a list")
    if any(part.row_patterns for part in parts):
        raise UsageError("MATCH_RECOGNIZE reads tables, not events: run it with weft.sql(query, t=table)")
    return reduce(Program.extended, parts)


def compile_each(
    programs: Programs, compiled: Compile = compile_with_findings
) -> tuple[list[Program], tuple[Diagnostic, ...]]:
    """The programs one by one, texts and files compiled, and the warnings; all errors of all are raised together."""
    asked = [programs] if isinstance(programs, Program | Pattern | str | Path) else _several(programs)
    given = [part.program() if isinstance(part, Pattern) else part for part in asked]
    texts = [part for part in given if isinstance(part, str | Path)]
    beside = [part for part in given if isinstance(part, Program)]
    found = iter(compile_together([partial(compiled, text) for text in texts], beside))
    parts: list[Any] = []
    findings: list[Diagnostic] = []
    for part in given:
        program, own = next(found) if isinstance(part, str | Path) else (part, ())
        parts.append(program)
        findings += own
    if None in parts:
        raise ProgramError([finding for finding in findings if finding.severity == "error"])
    return parts, tuple(findings)


def _several(programs: object) -> list[Any]:
    """What is given as several programs; bytes are none, though they are a sequence."""
    asked = list(programs) if isinstance(programs, Iterable) and not isinstance(programs, bytes) else [programs]
    for part in asked:
        if not isinstance(part, Program | Pattern | str | Path):
            raise UsageError(f"a program is a text, a path, or what weft.compile gives, not a {type(part).__name__}")
    return asked
