"""Program texts and places in them: offsets to lines and columns, and the caret under a span."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets, `text[start:end]`."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a span: {self.start}..{self.end}")

    def to(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True)
class SourceText:
    """A program's text with the name it is reported under (a file name, or `<text>`)."""

    text: str
    name: str = "<text>"
    stem: str = field(default="q")

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(i + 1 for i, char in enumerate(self.text) if char == "\n")]

    def location(self, offset: int) -> tuple[int, int]:
        """One-based line and column of an offset."""
        line = bisect_right(self._line_starts, offset) - 1
        return line + 1, offset - self._line_starts[line] + 1

    def line(self, number: int) -> str:
        """The text of a one-based line, without its end."""
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]

    def caret(self, span: Span) -> str:
        """The span's first line with carets under the part of the span that is on it."""
        line_number, column = self.location(min(span.start, len(self.text)))
        line = self.line(line_number)
        width = max(1, min(span.end - span.start, len(line) - column + 1))
        lead = "".join(char if char == "\t" else " " for char in line[: column - 1])
        gutter = f"{line_number:>4} | "
        blank = " " * (len(gutter) - 2) + "| "
        return f"{gutter}{line}\n{blank}{lead}{'^' * width}"
