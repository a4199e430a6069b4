"""Runs the cases of a test file on an engine and says how each came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft import inputs, meaning_run
from weft.api import detect
from weft.errors import Diagnostic, ProgramError, WeftError
from weft.rule_tests.cases import Case, RuleTests, read_file
from weft.rule_tests.compare import difference
from weft.rule_tests.lines import EventDict, Expected
from weft.rule_tests.tables import TableCase, TableOutcome, run_table_case
from weft.runtime.data.matches import Match


@dataclass(frozen=True)
class PlacedEvent:
    """An event as it is shown: when, of which type, with which attributes."""

    time: str
    type: str
    attributes: EventDict


@dataclass(frozen=True)
class Outcome:
    """How a case came out. `counts` has, by query (None: all), the number wanted and the number found."""

    case: Case
    events: Sequence[PlacedEvent]  # by position
    found: Sequence[Match]
    missing: Sequence[Expected] = ()
    extra: Sequence[Match] = ()
    counts: Sequence[tuple[str | None, int, int]] = ()

    @property
    def passed(self) -> bool:
        """Whether everything is as expected."""
        return not (self.missing or self.extra or self.counts)


@dataclass
class FileResult:
    """The outcomes of a file's cases, and what is wrong in the file."""

    path: Path
    outcomes: list[Outcome | TableOutcome] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether all cases could be run and passed."""
        return not self.findings and all(outcome.passed for outcome in self.outcomes)


def run_file(path: Path, engine: str, *, within: Path | None = None, **sharing: Any) -> FileResult:
    """Run all cases of a file; an invalid case does not affect the rest. For `sharing` see `detect`.

    `within`: the file may name programs and events in this folder only.
    """
    result = FileResult(path)
    try:
        file = read_file(path, within)
    except ProgramError as error:
        result.findings += error.diagnostics
        return result
    for read in file.cases:
        try:
            case = read()
            if isinstance(case, TableCase):
                result.outcomes.append(run_table_case(file.program, case, engine))
            else:
                result.outcomes.append(_run(file, case, engine, sharing))
        except ProgramError as error:
            result.findings += error.diagnostics
    return result


def _run(file: RuleTests, case: Case, engine: str, sharing: Mapping[str, Any]) -> Outcome:
    try:
        events = _place(file, case)
        _check_positions(case, len(events))
        matches = detect(
            case.events, file.program, engine, time=file.notation.time, type=file.notation.type, rejects=[], **sharing
        )
        found = [match for match in matches if case.query in (None, match.query)]
    except ProgramError:
        raise
    except WeftError as error:
        raise case.place.wrong("cannot-run", str(error)) from None
    return compared(case, events, found)


def compared(case: Case, events: Sequence[PlacedEvent], found: Sequence[Match]) -> Outcome:
    """What differs between the matches found and those expected."""
    totals: Counter[str | None] = Counter(match.query for match in found)
    totals[None] = len(found)
    counts = [(name, wanted, totals[name]) for name, wanted in case.counts.items() if totals[name] != wanted]
    if case.expected is not None:
        missing, extra = difference(case.expected, found)
        return Outcome(case, events, found, missing, extra, counts)
    return Outcome(case, events, found, counts=counts)


def _place(file: RuleTests, case: Case) -> list[PlacedEvent]:
    """The events by position, as the engines read them; one that cannot be read is a mistake in the case."""
    notation = file.notation
    source = inputs.open_source(case.events, file.program, time=notation.time, type=notation.type)
    hidden = {notation.time, notation.type, "start", "end", meaning_run.TICKS}
    placed: list[PlacedEvent] = []
    for batch in source:
        times = zip(batch.starts.tolist(), batch.ends.tolist(), strict=True)
        for event, (start, end) in zip(meaning_run.to_dicts(batch, notation.type), times, strict=True):
            time = str(start) if start == end else f"{start}..{end}"
            attributes = {name: value for name, value in event.items() if name not in hidden}
            placed.append(PlacedEvent(time, str(event[notation.type]), attributes))
    for rejected in source.rejected:
        if case.lines:
            raise case.lines[rejected.row].wrong("unreadable-event", f"this event cannot be read: {rejected.reason}")
        raise case.place.wrong("unreadable-event", f"an event cannot be read: {rejected}")
    return placed


def _check_positions(case: Case, count: int) -> None:
    for expected in case.expected or ():
        beyond = [position for position in expected.stated if position >= count]
        if beyond:
            hint = f"the case has {count} event{'s' * (count != 1)}; positions are counted from 0 in order of time"
            raise expected.line.wrong("unknown-position", f"there is no event at position {beyond[0]}", hint)
