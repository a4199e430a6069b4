"""A reader over the words of an SQL expression, with messages for unexpected ones."""

from __future__ import annotations

from weft.errors import Diagnostic, ProgramError
from weft.languages.sql.words import SqlWord, words_of
from weft.source import SourceText, Span

COMPARISONS = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class WordReader:
    """The words of one expression, read from left to right."""

    def __init__(self, source: SourceText, span: Span) -> None:
        self._source = source
        self._words = words_of(source.text, span)
        self._end = Span(span.end, span.end)
        self._at = 0

    # ---------------------------------------------------------------- words

    def _here(self) -> SqlWord | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def _says(self, *texts: str, ahead: int = 0) -> bool:
        index = self._at + ahead
        return index < len(self._words) and self._words[index].says(*texts)

    def _take(self) -> SqlWord:
        word = self._here()
        if word is None:
            raise self._wrong(
                "a value is missing at the end of the expression", self._end, "an expression ends too early here"
            )
        self._at += 1
        return word

    def _taken(self, *texts: str) -> bool:
        """Take the next word if it is one of these."""
        if not self._says(*texts):
            return False
        self._at += 1
        return True

    def _expect(self, text: str, hint: str | None = None) -> SqlWord:
        word = self._here()
        if word is None or not word.says(text):
            found = f"{word.text!r} is not expected here" if word is not None else "the expression ends too early"
            raise self._wrong(f"{found}; expected {text!r}", word.span if word else self._end, hint)
        return self._take()

    def _wrong(self, message: str, span: Span, hint: str | None = None, code: str = "syntax") -> ProgramError:
        return ProgramError([Diagnostic(code, message, self._source, span, hint)])

    def _from(self, start: Span) -> Span:
        return start.to(self._words[self._at - 1].span)

    def require_end(self) -> None:
        """Refuse words after the expression."""
        word = self._here()
        if word is None:
            return
        hint = "join conditions by AND or OR; separate items by commas"
        if word.text in COMPARISONS:
            hint = "comparisons cannot be chained: write low < x AND x < high"
        elif word.text == ")":
            hint = "remove it, or add the opening one"
        elif word.says("OVER"):
            hint = "window functions cannot be used here: PREV, NEXT, FIRST and LAST reach other rows"
        elif word.says("FILTER"):
            hint = "write a CASE inside the aggregate: SUM(CASE WHEN A.x > 0 THEN A.x END)"
        raise self._wrong(f"{word.text!r} is not expected here", word.span, hint)
