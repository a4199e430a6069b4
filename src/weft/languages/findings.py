"""A collector of diagnostics, so that a program's mistakes are reported together and not one by one."""

from __future__ import annotations

from weft.errors import Diagnostic, ProgramError
from weft.source import SourceText, Span


class Findings:
    """The errors and warnings found so far in one text."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self._found: dict[tuple[str, Span, str], Diagnostic] = {}

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Note an error; the same one at the same place is kept once."""
        self._found.setdefault((code, span, message), Diagnostic(code, message, self.source, span, hint))

    def warning(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Note a warning; the same one at the same place is kept once."""
        found = Diagnostic(code, message, self.source, span, hint, severity="warning")
        self._found.setdefault((code, span, message), found)

    def conclude(self) -> tuple[Diagnostic, ...]:
        """The warnings, in the order of the text; raises ProgramError when there is an error among the findings."""
        found = sorted(self._found.values(), key=lambda d: (d.span.start, d.span.end))
        errors = [d for d in found if d.severity == "error"]
        if errors:
            raise ProgramError(errors)
        return tuple(found)
