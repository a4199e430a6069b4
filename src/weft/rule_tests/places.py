"""Where the values of a TOML file are written, so that a mistake in one is shown with its line and a caret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.errors import Diagnostic, ProgramError
from weft.source import SourceText, Span

# What can begin where: texts first, for they may hold anything that looks like the rest.
_TOKEN = re.compile(
    r"""
      (?P<comment> \#[^\n]* )
    | (?P<text> \"\"\" (?: \\. | [^\\] )*? \"{3,5} | ''' .*? '{3,5} | " (?: \\. | [^"\\\n] )* " | '[^'\n]*' )
    | (?P<case> ^[ \t]* \[\[ [ \t]* case [ \t]* \]\] )
    | ^[ \t]* \[\[? (?P<table> [^\]\n]* ) \]
    | ^[ \t]* (?P<key> [A-Za-z0-9_-]+ ) [ \t]* = [ \t]*
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
# A `#` inside quotes or inside a word begins no remark.
_REMARK = re.compile(r"\"(?:\\.|[^\"\\])*\"|(?P<remark>(?:^|\s+)\#.*)")


@dataclass(frozen=True)
class TestText:
    """A piece of a test file. When it is not `exact` (the file has it with escapes), its place is its key's."""

    text: str
    source: SourceText
    span: Span
    exact: bool = True

    def part(self, start: int, end: int) -> TestText:
        """A piece of the piece."""
        span = Span(self.span.start + start, self.span.start + end) if self.exact else self.span
        return TestText(self.text[start:end], self.source, span, self.exact)

    def pieces(self, pattern: str) -> Iterator[TestText]:
        """The pieces that the pattern finds."""
        return (self.part(*found.span()) for found in re.finditer(pattern, self.text))

    def lines(self) -> list[TestText]:
        """Its lines that say something, without the spaces around them and the remarks, which a `#` begins."""
        lines = (line.part(0, _end_of(line.text)) for line in self.pieces(r"\S(?:.*\S)?"))
        return [line for line in lines if line.text]

    @property
    def line(self) -> int:
        """The one-based line it begins on."""
        return self.source.location(self.span.start)[0]

    def wrong(self, code: str, message: str, hint: str | None = None) -> ProgramError:
        """What to raise when it is wrong."""
        return ProgramError([Diagnostic(code, message, self.source, self.span, hint)])


def _end_of(line: str) -> int:
    """Where a line's remark begins; its end if it has none."""
    return next((found.start() for found in _REMARK.finditer(line) if found["remark"] is not None), len(line))


class Places:
    """The places of the keys of a file: those of the file itself (section 0) and those of each case (from 1)."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self._heads: list[Span] = [Span(0, 0)]
        self._keys: list[dict[str, tuple[Span, int]]] = [{}]
        for found in _TOKEN.finditer(source.text):
            if found["case"] is not None:
                self._heads.append(Span(*found.span("case")))
                self._keys.append({})
            elif found["table"] is not None:  # none is known: it is here to be shown
                inside = -1 if found["table"].strip().startswith("case.") else 0
                name = found["table"].rpartition(".")[2].strip()
                self._keys[inside].setdefault(name, (Span(*found.span("table")), found.end()))
            elif found["key"] is not None:
                self._keys[-1].setdefault(found["key"], (Span(*found.span("key")), found.end()))

    def head(self, section: int) -> TestText:
        """Where a section begins; the file's beginning if it is written in another way."""
        span = self._heads[section] if section < len(self._heads) else self._heads[0]
        return self._written(span)

    def key(self, section: int, key: str) -> TestText:
        """Where a key is written."""
        known = self._keys[section] if section < len(self._keys) else {}
        return self._written(known[key][0]) if key in known else self.head(section)

    def value(self, section: int, key: str, text: str) -> TestText:
        """Where a text is written, to the letter if the file has it to the letter."""
        place = self.key(section, key)
        known = self._keys[section] if section < len(self._keys) else {}
        if key in known:
            written = self.source.text
            opening = re.compile(r"\"\"\"\n?|'''\n?|\"|'").match(written, known[key][1])
            if opening is not None and written.startswith(text, opening.end()):
                return TestText(text, self.source, Span(opening.end(), opening.end() + len(text)))
        return TestText(text, self.source, place.span, exact=False)

    def _written(self, span: Span) -> TestText:
        return TestText(self.source.text[span.start : span.end], self.source, span)


def shifted(error: ProgramError, program: TestText) -> ProgramError:
    """The findings about a program written inside a test file, at their places in that file."""

    def moved(finding: Diagnostic) -> Diagnostic:
        place = program.part(finding.span.start, finding.span.end)
        return replace(finding, source=place.source, span=place.span)

    return ProgramError([moved(finding) for finding in error.diagnostics])
