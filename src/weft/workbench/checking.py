"""A program's text while it is written: findings, colours, words that may come next, the plan and the rewrites."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from weft.algebra.query import Program
from weft.api import compile_beside, compile_with_findings
from weft.drawing.highlighting import pieces, words_of_grammar
from weft.drawing.plan import plan_svg
from weft.errors import Diagnostic, WeftError
from weft.languages import LANGUAGES
from weft.optimizer.pipeline import trace
from weft.optimizer.report import trace_text
from weft.plan.planner import plan
from weft.plan.text import plan_text

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MOST_WORDS = 200


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
    """What is known of a text. `words` are those that may be meant next."""

    findings: list[Finding]
    colours: list[Colour]
    words: list[str]
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
    """The program of a text, None when it is wrong, and all that was found in it."""

    def compile(**context: object) -> tuple[Program, tuple[Diagnostic, ...]]:
        # A text of one line is never taken for a path: it is given with its language, and an end of line.
        return compile_with_findings(text + "\n", language, stem=stem, **context)  # type: ignore[arg-type]

    (found,) = compile_beside([compile])
    return found


def check(text: str, language: str, stem: str = "q") -> Checked:
    """What `weft check` finds in a text, and how it is coloured."""
    if not text.strip():
        return Checked([], [], keywords(language))
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
    parts = colours(text, language)
    return Checked(findings, parts, words(text, language, parts), names)


def colours(text: str, language: str) -> list[Colour]:
    """The coloured parts of a text."""
    try:
        return [Colour(kind, start, end) for kind, start, end in pieces(text, language) if end > start]
    except WeftError:
        return []


def keywords(language: str) -> list[str]:
    """The words of a language, those that a text may start with first."""
    first = sorted(next(one.keywords for one in LANGUAGES if one.name == language))
    others = sorted({word.upper() if first[0].isupper() else word for word in words_of_grammar(language)})
    return list(dict.fromkeys([*first, *others]))


def words(text: str, language: str, parts: list[Colour]) -> list[str]:
    """What may be completed: the names that the text has (types, attributes, variables), and the language's words."""
    covered = [(part.start, part.end) for part in parts]
    names = [
        found[0] for found in WORD.finditer(text) if not any(start <= found.start() < end for start, end in covered)
    ]
    return list(dict.fromkeys([*names, *keywords(language)]))[:MOST_WORDS]


def planned(text: str, language: str, stem: str = "q") -> Planned:
    """The plan of a program that is right; else nothing."""
    program, _ = compiled(text, language, stem)
    if program is None:
        return Planned("", "", [])
    try:
        found = trace(program)
        chosen = plan(found.program)
    except WeftError as problem:
        return Planned("", str(problem), [])
    return Planned(plan_svg(chosen), plan_text(chosen), trace_text(found).splitlines())
