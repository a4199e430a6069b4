"""What the workbench has done in other processes, because users' programs and events decide how much it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.drawing.timeline import WIDTH
from weft.errors import UsageError
from weft.reasons import Reasons
from weft.rule_tests import run_file, to_json
from weft.rule_tests.lines import Notation
from weft.workbench import trying
from weft.workbench.trying import Sample, Tried

MOST_REPLAYED = 200_000  # events that a program in the workbench's own process is given
Text = tuple[str, str, str]  # a program's text, its language, and what a nameless query of it is called


@dataclass(frozen=True)
class TestCase:
    """A case of a test file, as it came out."""

    file: str
    name: str
    line: int
    passed: bool
    missing: list[dict[str, Any]]
    extra: list[dict[str, Any]]
    counts: list[dict[str, Any]]


@dataclass(frozen=True)
class TestReport:
    """What became of a project's tests: cases, and what is wrong in their files."""

    cases: list[TestCase]
    problems: list[str]

    @property
    def passed(self) -> bool:
        """Whether all is well."""
        return not self.problems and all(case.passed for case in self.cases)


def tried(text: Text, sample: Sample, file: Path | None, width: int = WIDTH) -> Tried:
    """What a program finds in a sample."""
    return trying.try_program(trying.program_of(*text), sample, file, width)


def explained(text: Text, sample: Sample, file: Path | None, positions: Sequence[int]) -> Reasons:
    """Why events of a sample are a match or not."""
    return trying.explain(trying.program_of(*text), sample, file, positions)


def replayed(text: Text, sample: Sample, file: Path | None) -> list[trying.Row]:
    """The events of a sample in stream order, for a program that runs in the workbench's own process."""
    events, program = trying.sample_events(sample, file), trying.program_of(*text)
    shown, total = trying.events_in_order(events, program, sample, MOST_REPLAYED)
    if total > MOST_REPLAYED:
        raise UsageError(
            f"these are {total:,} events, and at most {MOST_REPLAYED:,} are replayed here: draw some of them, or run "
            "the program on Spark"
        )
    return shown


def case_text(name: str, text: Text, sample: Sample, file: Path | None, notation: Notation) -> str:
    """A case of a test file, with what a program finds in a sample."""
    return trying.case_text(name, trying.program_of(*text), sample, file, notation)


def tested(files: Sequence[tuple[str, Path]], folder: Path) -> TestReport:
    """The outcomes of test files, by their paths inside a project; they may name files of its folder only."""
    cases: list[TestCase] = []
    problems: list[str] = []
    for inside, path in files:
        result = run_file(path, "local", within=folder)
        problems += [finding.render() for finding in result.findings]
        for outcome in result.outcomes:
            told: dict[str, Any] = to_json(outcome)
            kept = {key: told[key] for key in ("line", "passed", "missing", "extra", "counts")}
            cases.append(TestCase(file=inside, name=told["case"], **kept))
    return TestReport(cases, problems)
