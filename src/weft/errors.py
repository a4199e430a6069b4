"""What can go wrong, as data first (code, message, place, hint) and as text second."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from weft.source import SourceText, Span, printable

Severity = Literal["error", "warning"]
_MOST_SHOWN = 50  # findings in one text; `diagnostics` has all


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a program: what, where, and what to do."""

    code: str  # stable, kebab-case: "unknown-attribute"
    message: str
    source: SourceText
    span: Span
    hint: str | None = None
    severity: Severity = "error"

    @property
    def line(self) -> int:
        """The one-based line it is on."""
        return self.source.location(self.span.start)[0]

    @property
    def column(self) -> int:
        """The one-based column it begins at."""
        return self.source.location(self.span.start)[1]

    def render(self) -> str:
        """The finding as text: place and message, the line with a caret, the hint."""
        head = f"{self.source.name}:{self.line}:{self.column}: {self.severity}[{self.code}]: {self.message}"
        head = "\n".join(map(printable, head.split("\n")))
        hint = f"\n  hint: {printable(self.hint)}" if self.hint else ""
        return f"{head}\n{self.source.caret(self.span)}{hint}"

    def to_json(self) -> dict[str, object]:
        """The finding as a JSON object."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "file": self.source.name,
            "line": self.line,
            "column": self.column,
            "hint": self.hint,
        }


class DataWarning(UserWarning):
    """Something in the events that is probably not meant."""


class RejectedWarning(UserWarning):
    """Events could not be read and took no part."""


class WeftError(Exception):
    """Root of everything weft raises for a user's mistake; its text is fit to be shown."""


class ProgramError(WeftError, ValueError):
    """A program is wrong. Carries every finding, not only the first."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        shown = [finding.render() for finding in self.diagnostics[:_MOST_SHOWN]]
        more = len(self.diagnostics) - len(shown)
        super().__init__("\n\n".join([*shown, f"and {more:,} more like these"] if more else shown))

    def __reduce__(self) -> tuple[type[ProgramError], tuple[Sequence[Diagnostic]]]:
        """Go from process to process with all findings."""
        return type(self), (self.diagnostics,)


class InputError(WeftError, ValueError):
    """Events cannot be read at all: a missing file, an unknown format, no time column."""


class UsageError(WeftError, TypeError):
    """The API or the command line was called in a way that cannot work."""


class InternalError(RuntimeError):
    """A defect of weft: something it promises to itself does not hold."""


class BudgetError(InputError):
    """A program needs more than its budget lets it have."""


class ManyMatchesWarning(UserWarning):
    """So many matches are being listed that this is probably not meant."""


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the nearest known name, or lists the known ones; None when there are none."""
    known = sorted(set(known))
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    if not near:
        near = [k for k in known if k.lower() == name.lower()]
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known here: {', '.join(known[:12])}" if known else None


def callers_level() -> int:
    """The `stacklevel` of a warning that shows the user's own line, however deep in weft and in Spark it is given."""
    modules = (sys.modules.get(name) for name in ("weft", "pyspark"))
    ours = tuple(str(Path(module.__file__).parent) for module in modules if module is not None and module.__file__)
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame, level = frame.f_back, level + 1
    return level


def plural(count: int, one: str, many: str = "") -> str:
    """A count with its noun: `1 match`, `2 matches`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
