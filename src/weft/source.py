"""Program texts and places in them: offsets to lines and columns, and the caret under a span."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

_AROUND = 100  # characters of a long line that are shown before and after a place
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """A text with the characters that a terminal would obey (or turn the line by) as they are written in Python."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable_json(text: str) -> str:
    """The same for lines of JSON, with the escapes of JSON: they say what they said before."""
    return "\n".join(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in text.split("\n"))


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
        """The span's first line with carets under the part of the span that is on it; of a long line, the part around.

        Characters that a terminal would obey are shown as they are written in Python.
        """
        number, column = self.location(min(span.start, len(self.text)))
        line, place = self.line(number), column - 1
        is_long = len(line) > 2 * _AROUND
        begin = max(0, place - _AROUND) if is_long else 0
        end = place + _AROUND if is_long else len(line)
        before = "…" * (begin > 0) + printable(line[begin:place])
        marked = printable(line[place : min(place + span.end - span.start, end)])
        lead = "".join(char if char == "\t" else " " for char in before)
        gutter = f"{number:>4} | "
        blank = " " * (len(gutter) - 2) + "| "
        after = printable(line[place:end]) + "…" * (end < len(line))
        return f"{gutter}{before}{after}\n{blank}{lead}{'^' * max(1, len(marked))}"
