"""A program over sample events: matches as rows, a timeline, why not, and cases for `weft test`."""

from __future__ import annotations

import csv
import io
import json
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from weft import engines, inputs, meaning_run
from weft.algebra.query import Program
from weft.api import detect
from weft.drawing.scene import scene_of, with_events
from weft.drawing.timeline import WIDTH, timeline_svg
from weft.errors import InputError, ProgramError, UsageError
from weft.reasons import Reasons, funnel, why
from weft.rule_tests.lines import Notation
from weft.rule_tests.report import match_text
from weft.runtime.options import EventColumns, Options
from weft.runtime.writing.match_rows import rows_to_matches
from weft.workbench import tables
from weft.workbench.checking import compiled
from weft.workbench.event_files import csv_value, drawn

MOST_MATCHES = 10_000
MOST_EVENTS = 2_000  # shown
LARGEST_SAMPLE = 20_000_000  # bytes of pasted events
Row = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """Events to try a program on: pasted rows (JSON lines or CSV), or a file; and the names of columns.

    Of a file `take` rows are drawn (0: all), after those that are to `skip`.
    """

    rows: str = ""
    file: str = ""
    time: str = "ts"
    type: str = "type"
    skip: int = 0
    take: int = 0


@dataclass(frozen=True)
class Tried:
    """What was found: the first matches, how many there are in all, the first events, and the picture of both."""

    matches: list[Row]
    total: int
    counts: dict[str, int]
    events: list[Row]
    event_total: int
    timeline: str  # with a lane for each type of events
    timeline_by_variable: str
    funnels: dict[str, list[tuple[str, int]]]  # by query: the steps, and how many partial matches reached each
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    is_table: bool = False  # rows of SQL: matches have no events, and events no types


def sample_events(sample: Sample, file: Path | None) -> list[Row] | str:
    """The events of a sample: rows, or the path of a file."""
    if file is not None:
        return drawn(file, sample.skip, sample.take) if sample.take else str(file)
    text = sample.rows.strip()
    if len(text) > LARGEST_SAMPLE:
        raise UsageError("these are too many events to paste: put them into a file")
    if not text:
        raise UsageError("there are no events: paste some, or choose a file")
    return _json_rows(text) if text[0] in "{[" else _csv_rows(text)


def _json_rows(text: str) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise InputError(f"line {number} is not a JSON object: {line[:80]}") from None
            if not isinstance(row, dict):
                raise InputError(f"line {number} is not a JSON object: {line[:80]}")
            rows.append(row)
    return rows


def _csv_rows(text: str) -> list[Row]:
    rows = csv.DictReader(io.StringIO(text))
    return [{name: csv_value(value) for name, value in row.items() if value} for row in rows]


def program_of(text: str, language: str, stem: str) -> Program:
    """The program of a text; raises its mistakes."""
    program, findings = compiled(text, language, stem)
    if program is None:
        raise ProgramError([finding for finding in findings if finding.severity == "error"])
    return program


def refuse_sql(program: Program, message: str) -> None:
    """Refuse a program of SQL where events are needed."""
    if program.row_patterns:
        raise UsageError(message)


def try_program(program: Program, sample: Sample, file: Path | None = None, width: int = WIDTH) -> Tried:
    """All matches of a program in a sample, on timelines of a width in pixels; of SQL, the rows of its result."""
    if program.row_patterns:
        return _try_query(program, sample, file)
    events = sample_events(sample, file)
    started = clock.perf_counter()
    rows: list[Row] = []
    counts = dict.fromkeys(program.names, 0)
    run = engines.start(events, program, "local", Options(EventColumns(sample.time, sample.type)))
    for match in (match for batch in run.rows() for match in rows_to_matches(batch)):
        counts[match.query] += 1
        if len(rows) < MOST_MATCHES:
            rows.append(match.to_json())
    seconds = clock.perf_counter() - started
    source = inputs.open_input(events, program, time=sample.time, type=sample.type, shown=None)
    scene = with_events(scene_of(rows, sum(counts.values()), sample.time, sample.type), source, source.reading)
    every, total = events_in_order(events, program, sample, MOST_EVENTS)
    shown = [_placed(position, event) for position, event in enumerate(every)]
    unread = run.rejected
    notes = [f"{len(unread):,} events could not be read; the first: {unread[0]}"] if unread else []
    funnels = funnel(events, program, time=sample.time, type=sample.type)
    pictures = timeline_svg(scene, width=width), timeline_svg(scene, "variable", width)
    return Tried(rows, sum(counts.values()), counts, shown, total, *pictures, funnels, [*notes, *run.doubts], seconds)


def _try_query(program: Program, sample: Sample, file: Path | None) -> Tried:
    result, table, seconds = tables.found_rows(program, sample, file)
    name = program.names[-1]
    rows = tables.as_matches(name, tables.shown_rows(result, MOST_MATCHES))
    shown = [_placed(number, row) for number, row in enumerate(tables.shown_rows(table, MOST_EVENTS))]
    count = result.num_rows
    return Tried(rows, count, {name: count}, shown, table.num_rows, "", "", {}, seconds=seconds, is_table=True)


def _placed(position: int, event: Row) -> Row:
    """An event with its position; an attribute of that name gets another one."""
    return {"position": position, **{"position_" if name == "position" else name: event[name] for name in event}}


def events_in_order(events: Any, program: Program, sample: Sample, most: int) -> tuple[list[Row], int]:
    """The first events in stream order, and how many there are in all."""
    shown: list[Row] = []
    total = 0
    for batch in inputs.open_input(events, program, time=sample.time, type=sample.type, shown=None):
        total += len(batch)
        for event in meaning_run.to_dicts(batch, sample.type) if len(shown) < most else ():
            ticks = event.get(meaning_run.TICKS)
            plain = {name: value for name, value in event.items() if name != meaning_run.TICKS}
            shown.append(plain if sample.time in plain or ticks is None else {sample.time: ticks, **plain})
    return shown[:most], total


def explain(program: Program, sample: Sample, file: Path | None, positions: Sequence[int]) -> Reasons:
    """Why chosen events are a match or not."""
    refuse_sql(program, "reasons are available for matches of events, not for rows of SQL")
    return why(sample_events(sample, file), program, positions, time=sample.time, type=sample.type)


# ---------------------------------------------------------------- tests


def case_text(name: str, program: Program, sample: Sample, file: Path | None, notation: Notation) -> str:
    """A case of a test file with this notation: the sample as events, and what is found now as expected."""
    if program.row_patterns:
        return tables.table_case_text(name, program, sample, file, MOST_EVENTS)
    for column, wanted, given in (("time", notation.time, sample.time), ("type", notation.type, sample.type)):
        if wanted != given:
            raise UsageError(f"the tests of this program have the {column} in {wanted!r}, and this sample in {given!r}")
    events = sample_events(sample, file)
    source = inputs.open_input(events, program, time=sample.time, type=sample.type, shown=None)
    lines = [_event_line(event, sample.time) for batch in source for event in meaning_run.to_dicts(batch, sample.type)]
    if len(lines) > MOST_EVENTS:
        raise UsageError(f"a case has at most {MOST_EVENTS:,} events, and these are {len(lines):,}")
    matches = detect(events, program, "local", time=sample.time, type=sample.type, rejects=[])
    found = [match_text(match) for match in matches]
    quote = "'''"
    body = "\n".join(lines)
    wanted = "\n".join(found)
    if quote in body or quote in wanted:
        raise UsageError("these events have three quotes in a row, which a case cannot hold")
    expected = f"{quote}\n{wanted}\n{quote}" if found else '"none"'
    return f"\n[[case]]\nname = {toml_text(name)}\nevents = {quote}\n{body}\n{quote}\nexpected = {expected}\n"


def test_head(program: str, notation: Notation) -> str:
    """The beginning of a test file: the program's file, and the columns of time and type if they have other names."""
    usual = asdict(Notation())
    names = {name: own for name, own in asdict(notation).items() if own != usual[name]}
    return "".join(f"{name} = {toml_text(own)}\n" for name, own in {"program": program, **names}.items())


def toml_text(text: str) -> str:
    """A text as TOML has it between quotes: as JSON has it, but other letters as they are."""
    plain = "".join(char if char != "\x7f" and not "\ud800" <= char <= "\udfff" else "?" for char in text)
    return json.dumps(plain, ensure_ascii=False)


def _event_line(event: Mapping[str, object], time: str) -> str:
    ticks = event.get(meaning_run.TICKS)
    plain = {name: value for name, value in event.items() if name != meaning_run.TICKS}
    return json.dumps(plain if ticks is None else {**plain, time: ticks}, ensure_ascii=False, default=str)
