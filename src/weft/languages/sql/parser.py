"""From text to the syntax of row patterns.

Expressions are cut out first, by the words around them and balanced parentheses, and read by `expressions.py`; the rest
of a clause is read by the grammar, in a text of the same length, so that places are those in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from lark import Lark, Token, UnexpectedInput
from lark.visitors import Transformer

from weft.errors import Diagnostic, ProgramError
from weft.languages.grammars import load_parser
from weft.languages.sql import syntax
from weft.languages.sql.clauses import LocatedClause, find_clauses, whole_clause
from weft.languages.sql.expressions import parse_expression
from weft.languages.sql.mistakes import SQL, refuse_foreign, refuse_window
from weft.languages.sql.words import CLOSING, OPENING, SqlWord, unquoted, words_of
from weft.languages.stops import explain
from weft.languages.tokens import Child, from_to, place
from weft.source import SourceText, Span

_CUT = "\x01"
_NUMBERS = re.compile(r"\d+")


def parse(source: SourceText) -> syntax.SqlText:
    """The syntax of the row patterns in an SQL text; raises ProgramError at the first place that cannot be read."""
    located = find_clauses(source)
    if not located and _looks_bare(source):
        located = (whole_clause(source),)
    if not located:
        refuse_window(words_of(source.text), source)
        hint = "a row pattern looks like this: SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B) DEFINE …)"
        message = "there is no MATCH_RECOGNIZE in this text"
        raise ProgramError([Diagnostic("no-pattern", message, source, Span(0, 0), hint)])
    clauses = tuple(parse_clause(source, clause) for clause in located)
    return syntax.SqlText(clauses, span=Span(0, len(source.text)))


def _looks_bare(source: SourceText) -> bool:
    """Return whether a text is the content of MATCH_RECOGNIZE without the keyword and the parentheses."""
    first = next(iter(words_of(source.text)), None)
    return first is not None and first.says("PARTITION", "ORDER", "MEASURES", "ONE", "ALL", "AFTER", "PATTERN")


def parse_clause(source: SourceText, clause: LocatedClause) -> syntax.MatchRecognize:
    """The syntax of one clause."""
    words = words_of(source.text, clause.body)
    refuse_foreign(words, source, clause)
    cut = _expressions(words, source)
    expressions = {span.start: parse_expression(source, span) for span in cut}
    masked = _masked(source, clause.body, words, cut)
    try:
        tree = _parser().parse(masked.text)
    except UnexpectedInput as unexpected:
        raise ProgramError([replace(explain(masked, unexpected, SQL), source=source)]) from None
    found = _Clause(expressions).transform(tree)
    assert isinstance(found, syntax.MatchRecognize)
    name = syntax.Identifier(clause.alias) if clause.alias else None
    relation = source.text[clause.relation.start : clause.relation.end]
    return replace(found, name=name, table=clause.table, relation=relation, span=clause.keyword)


@cache
def _parser() -> Lark:
    return load_parser("weft.languages.sql")


def _masked(source: SourceText, body: Span, words: tuple[SqlWord, ...], cut: list[Span]) -> SourceText:
    """The text with everything blank except the clause, and in it a run of one character for each expression."""
    masked = [char if char == "\n" else " " for char in source.text]
    for word in words:
        masked[word.span.start : word.span.end] = word.text
    for span in cut:
        masked[span.start : span.end] = _CUT * (span.end - span.start)
    return SourceText("".join(masked[: body.end]), source.name, source.stem)


# ---------------------------------------------------------------- where expressions are


def _expressions(words: tuple[SqlWord, ...], source: SourceText) -> list[Span]:
    """The places of all measures, conditions and the interval of WITHIN."""
    found: list[Span] = []
    index = 0
    while index < len(words):
        word = words[index]
        if word.says("MEASURES") and _begins_section(words, index):
            index = _measures(words, index + 1, found, source)
        elif word.says("DEFINE") and _begins_section(words, index):
            index = _defines(words, index + 1, found, source)
        elif word.says("WITHIN") and index and words[index - 1].text == ")":
            end = _until(words, index + 1, lambda word: word.says("SUBSET", "DEFINE"))
            _cut(words, index + 1, end, found, word, source)
            index = end
        else:
            index = _after(words, index)
    return found


def _begins_section(words: tuple[SqlWord, ...], index: int) -> bool:
    if index > 1 and words[index - 1].says("FIRST", "LAST"):
        return words[index - 2].says("NULLS")  # else it is a variable that SKIP TO names
    return index == 0 or not words[index - 1].says("BY", ",", "TO", "AS", "=")


def _after(words: tuple[SqlWord, ...], index: int) -> int:
    """Return the index after a word or, for an opening bracket, after its closing one."""
    if words[index].kind != "symbol" or words[index].text not in OPENING:
        return index + 1
    depth = 0
    for position in range(index, len(words)):
        if words[position].kind == "symbol":
            depth += (words[position].text in OPENING) - (words[position].text in CLOSING)
        if depth == 0:
            return position + 1
    return len(words)


def _until(words: tuple[SqlWord, ...], index: int, ends: Callable[[SqlWord], bool]) -> int:
    while index < len(words) and not ends(words[index]):
        index = _after(words, index)
    return index


def _cut(words: tuple[SqlWord, ...], start: int, end: int, found: list[Span], before: SqlWord, src: SourceText) -> None:
    if start < end:
        found.append(words[start].span.to(words[end - 1].span))
        return
    what = "measure" if before.says("MEASURES", ",") else "condition" if before.says("AS") else "interval"
    raise ProgramError([Diagnostic("syntax", f"a {what} is missing after {before.text!r}", src, before.span)])


def _measures(words: tuple[SqlWord, ...], index: int, found: list[Span], source: SourceText) -> int:
    """Cut out `expression AS name, …`."""
    while True:
        end = _until(words, index, lambda word: word.says("AS", ",", "PATTERN"))
        if end == len(words) or not words[end].says("AS"):
            end = min(end, len(words))
            last = words[end - 1] if end else words[index - 1]
            message = "a measure has a name: write AS name after it"
            here = Span(last.span.end, last.span.end) if end == len(words) else words[end].span
            raise ProgramError([Diagnostic("unnamed-measure", message, source, here, "write LAST(A.price) AS bottom")])
        _cut(words, index, end, found, words[index - 1], source)
        if end + 2 >= len(words) or words[end + 2].text != ",":
            return end + 2
        index = end + 3


def _defines(words: tuple[SqlWord, ...], index: int, found: list[Span], source: SourceText) -> int:
    """Cut out `variable AS expression, …`."""
    while index + 1 < len(words) and words[index + 1].says("AS"):
        end = _until(words, index + 2, lambda word: word.text == "," or word.says("AS"))
        if end < len(words) and words[end].says("AS"):
            name = words[end - 1]
            message = f"a comma is missing before {name.text!r}"
            raise ProgramError([Diagnostic("syntax", message, source, name.span, "write A AS …, B AS …")])
        _cut(words, index + 2, end, found, words[index + 1], source)
        if end >= len(words):
            return end
        index = end + 1
    return index


# ---------------------------------------------------------------- from the grammar's tree


class _Clause(Transformer[Token, Any]):
    """One method per rule of the grammar."""

    def __init__(self, expressions: dict[int, syntax.SqlExpression]) -> None:
        super().__init__()
        self._expressions = expressions

    def _value(self, token: Token) -> syntax.SqlExpression:
        return self._expressions[token.start_pos or 0]

    def _name(self, token: Token) -> syntax.Identifier:
        text: str = token.value
        return syntax.Identifier(unquoted(text), text[0] in '"`', span=place(token))

    def start(self, children: list[Child]) -> syntax.MatchRecognize:
        partition, order, measures, rows, skip, _, opening, pattern, closing, within, subsets, defines = children
        span = from_to(opening, closing)
        return syntax.MatchRecognize(
            replace(pattern, span=span) if pattern.span.end == 0 else pattern,
            tuple(self._name(token) for token in partition or ()),
            order or (),
            measures or (),
            rows,
            skip,
            within,
            subsets or (),
            defines or (),
        )

    def listed(self, children: list[Child]) -> tuple[Child, ...]:
        return tuple(children)

    def sort(self, children: list[Child]) -> syntax.SortItem:
        column, direction, nulls = children
        first = None if nulls is None else nulls.type == "FIRST"
        descending = direction is not None and direction.type == "DESC"
        return syntax.SortItem(
            self._name(column), descending, first, span=from_to(column, nulls or direction or column)
        )

    def measure(self, children: list[Child]) -> syntax.MeasureItem:
        value, name = self._value(children[0]), self._name(children[1])
        return syntax.MeasureItem(value, name, span=from_to(value, name))

    def within(self, children: list[Child]) -> syntax.SqlExpression:
        return self._value(children[0])

    def subset(self, children: list[Child]) -> syntax.SubsetItem:
        name, *members, closing = children
        names = tuple(self._name(token) for token in members)
        return syntax.SubsetItem(self._name(name), names, span=from_to(name, closing))

    def define(self, children: list[Child]) -> syntax.DefineItem:
        name, condition = self._name(children[0]), self._value(children[1])
        return syntax.DefineItem(name, condition, span=from_to(name, condition))

    # rows and skip

    def one_row(self, children: list[Child]) -> syntax.RowsItem:
        return syntax.RowsItem("one", span=from_to(children[0], children[-1]))

    def rows(self, children: list[Child]) -> syntax.RowsItem:
        first, match, mode = children
        return syntax.RowsItem(mode.mode if mode else "show", span=from_to(first, mode or match))

    def show(self, children: list[Child]) -> syntax.RowsItem:
        return syntax.RowsItem("show", span=from_to(children[0], children[-1]))

    def omit(self, children: list[Child]) -> syntax.RowsItem:
        return syntax.RowsItem("omit", span=from_to(children[0], children[-1]))

    def unmatched(self, children: list[Child]) -> syntax.RowsItem:
        return syntax.RowsItem("unmatched", span=from_to(children[0], children[-1]))

    def skip(self, children: list[Child]) -> syntax.SkipItem:
        word, item = children
        return replace(item, span=place(word).to(item.span))  # type: ignore[no-any-return]

    def past_last(self, children: list[Child]) -> syntax.SkipItem:
        return syntax.SkipItem("past last", span=place(children[0]))

    def to_next(self, children: list[Child]) -> syntax.SkipItem:
        return syntax.SkipItem("next", span=place(children[0]))

    def to_first(self, children: list[Child]) -> syntax.SkipItem:
        return syntax.SkipItem("first", self._name(children[1]), span=place(children[1]))

    def to_last(self, children: list[Child]) -> syntax.SkipItem:
        return syntax.SkipItem("last", self._name(children[1]), span=place(children[1]))

    def to_variable(self, children: list[Child]) -> syntax.SkipItem:
        return syntax.SkipItem("last", self._name(children[0]), span=place(children[0]))

    # patterns

    def alternation(self, children: list[Child]) -> syntax.AlternativeTerm:
        return syntax.AlternativeTerm(tuple(children), span=_around(children))

    def sequence(self, children: list[Child]) -> syntax.PatternTerm:
        if not children:
            return syntax.EmptyTerm()
        if len(children) == 1:
            return children[0]  # type: ignore[no-any-return]
        return syntax.SequenceTerm(tuple(children), span=_around(children))

    def variable(self, children: list[Child]) -> syntax.VariableTerm:
        return syntax.VariableTerm(self._name(children[0]), span=place(children[0]))

    def grouped(self, children: list[Child]) -> syntax.PatternTerm:
        opening, inner, closing = children
        return replace(inner, span=from_to(opening, closing))  # type: ignore[no-any-return]

    def excluded(self, children: list[Child]) -> syntax.ExcludedTerm:
        opening, inner, closing = children
        return syntax.ExcludedTerm(inner, span=from_to(opening, closing))

    def permute(self, children: list[Child]) -> syntax.PermuteTerm:
        word, _, *parts, closing = children
        return syntax.PermuteTerm(tuple(parts), span=from_to(word, closing))

    def anchor(self, children: list[Child]) -> syntax.AnchorTerm:
        return syntax.AnchorTerm(children[0].type == "END", span=place(children[0]))

    def quantified(self, children: list[Child]) -> syntax.QuantifiedTerm:
        part, token = children
        text: str = re.sub(r"\s", "", token.value)
        greedy = text in ("*", "+", "?") or not text.endswith("?")
        least, most = _bounds(text if greedy else text[:-1])
        return syntax.QuantifiedTerm(part, least, most, greedy, span=from_to(part, token))


def _bounds(text: str) -> tuple[int, int | None]:
    simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
    if text in simple:
        return simple[text]
    low, comma, high = text[1:-1].partition(",")
    least = int(low or 0)
    return least, (int(high) if high else None) if comma else least


def _around(children: list[Child]) -> Span:
    spans = [child.span for child in children if child.span.end]
    return spans[0].to(spans[-1]) if spans else Span(0, 0)
