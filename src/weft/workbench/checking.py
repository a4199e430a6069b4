"""A program's text while it is written: findings, colours, the plan and the rewrites."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.algebra.query import Program
from weft.algebra.text.row_patterns import row_plan_lines
from weft.api import compile_with_findings
from weft.drawing.highlighting import pieces
from weft.drawing.plan import expected, plan_svg
from weft.errors import Diagnostic, WeftError
from weft.languages.defined import compile_together
from weft.optimizer.pipeline import trace
from weft.optimizer.report import trace_text
from weft.plan.partitioning.choice import AUTO, MANY_LANES
from weft.plan.partitioning.text import sharing_lines
from weft.plan.planner import plan
from weft.plan.text.plans import plan_text


@dataclass(frozen=True)
class Finding:
    """A mistake or a doubt, with its place in the text: characters from `start` to `end`."""

    severity: str
    code: str
    message: str
    hint: str | None
    line: int
    column: int
    start: int
    end: int


@dataclass(frozen=True)
class Colour:
    """What the characters from `start` to `end` are: keyword, string, number or comment."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class Checked:
    """What is known of a text."""

    findings: list[Finding]
    colours: list[Colour]
    queries: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether it can run."""
        return not any(finding.severity == "error" for finding in self.findings)


@dataclass(frozen=True)
class Planned:
    """The plan as a picture and as text, and the rewrites that led to it, with costs, line by line."""

    svg: str
    text: str
    rewrites: list[str]


def compiled(text: str, language: str, stem: str = "q") -> tuple[Program | None, tuple[Diagnostic, ...]]:
    """Return the program of a text, or None if it has errors, and all diagnostics."""

    def compile(**context: object) -> tuple[Program, tuple[Diagnostic, ...]]:
        # A text of one line is never taken for a path: it is given with its language, and an end of line.
        return compile_with_findings(text + "\n", language, stem=stem, **context)  # type: ignore[arg-type]

    (found,) = compile_together([compile])
    return found


def check(text: str, language: str, stem: str = "q") -> Checked:
    """What `weft check` finds in a text, and how it is coloured."""
    if not text.strip():
        return Checked([], [])
    program, found = compiled(text, language, stem)
    size = len(text)
    findings = [
        Finding(
            one.severity,
            one.code,
            one.message,
            one.hint,
            one.line,
            one.column,
            min(one.span.start, max(size - 1, 0)),
            min(max(one.span.end, one.span.start + 1), size),
        )
        for one in found
    ]
    names = [] if program is None else list(program.names)
    return Checked(findings, colours(text, language), names)


def colours(text: str, language: str) -> list[Colour]:
    """The coloured parts of a text."""
    try:
        return [Colour(kind, start, end) for kind, start, end in pieces(text, language) if end > start]
    except WeftError:
        return []


def planned(text: str, language: str, stem: str = "q", lanes: int = MANY_LANES) -> Planned:
    """Return the plan of a valid program, split among lanes, or an empty one."""
    program, _ = compiled(text, language, stem)
    if program is None:
        return Planned("", "", [])
    if program.row_patterns:
        lines = (line for query in program.row_patterns for line in row_plan_lines(query))
        return Planned("", "\n".join(lines), [])
    try:
        found = trace(program)
        chosen = plan(found.program)
        picture = plan_svg(chosen, expected(found.program, lanes))
        text = plan_text(chosen, sharing_lines(found.program, AUTO, lanes))
    except WeftError as problem:
        return Planned("", str(problem), [])
    return Planned(picture, text, trace_text(found).splitlines())
