"""The row patterns in an SQL text: where each MATCH_RECOGNIZE stands, what it reads, and the text without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.errors import Diagnostic, ProgramError
from weft.languages.sql.words import CLOSING, OPENING, SqlWord, partner, unquoted, word_set, words_of
from weft.source import SourceText, Span

KEYWORD = "MATCH_RECOGNIZE"
# Words that come after a relation, so that they are no alias of it.
_AFTER_RELATION = word_set(
    """WHERE GROUP HAVING ORDER LIMIT OFFSET FETCH UNION INTERSECT EXCEPT MINUS JOIN INNER LEFT RIGHT FULL CROSS
    NATURAL SEMI ANTI ON USING WINDOW QUALIFY LATERAL CLUSTER DISTRIBUTE SORT TABLESAMPLE PIVOT UNPIVOT SELECT WITH
    MATCH_RECOGNIZE"""
)
_BEFORE_RELATION = frozenset({"FROM", "JOIN", "LATERAL"})


@dataclass(frozen=True)
class LocatedClause:
    """One MATCH_RECOGNIZE of a text. `span` is the text its result replaces: the relation and the clause."""

    span: Span
    relation: Span
    keyword: Span
    body: Span  # between the parentheses
    table: str = ""  # the relation, where it is the name of a table
    alias: str = ""  # of the result
    queries: tuple[Span, ...] = ()  # common table expressions (`name AS (…)`) that are in scope, in order
    recursive: bool = False


def find_clauses(source: SourceText) -> tuple[LocatedClause, ...]:
    """The row patterns of a text, each after those inside its relation; raises ProgramError where one is unfinished."""
    words = words_of(source.text)
    _refuse_unclosed(words, source)
    found = [_located(words, index, source) for index, word in enumerate(words) if _is_clause(words, index, word)]
    return tuple(sorted(found, key=lambda clause: clause.span.end))


def has_clause(text: str) -> bool:
    """Whether an SQL text has a MATCH_RECOGNIZE outside of strings and comments."""
    if KEYWORD not in text.upper():
        return False
    words = words_of(text)
    return any(_is_clause(words, index, word) for index, word in enumerate(words))


def whole_clause(source: SourceText) -> LocatedClause:
    """Return the clause of a text that consists of one MATCH_RECOGNIZE, with or without keyword and parentheses."""
    words = words_of(source.text)
    _refuse_unclosed(words, source)
    body = Span(0, len(source.text))
    if words and words[0].says(KEYWORD) and len(words) > 1 and words[1].text == "(":
        closing = partner(words, 1)
        body = Span(words[1].span.end, words[closing].span.start if closing is not None else len(source.text))
    return LocatedClause(body, Span(0, 0), body, body)


def input_query(source: SourceText, clause: LocatedClause, views: Mapping[LocatedClause, str]) -> str:
    """Return the query that is the input of a clause, with nested clauses replaced by the names of their views."""
    relation = _replaced(source.text, clause.relation, views)
    common = ", ".join(_replaced(source.text, span, views) for span in clause.queries)
    recursive = "RECURSIVE " if clause.recursive else ""
    return f"WITH {recursive}{common} SELECT * FROM {relation}" if common else f"SELECT * FROM {relation}"


def outer_query(source: SourceText, views: Mapping[LocatedClause, str]) -> str:
    """The text with each clause and its relation replaced by the name of its view."""
    return _replaced(source.text, Span(0, len(source.text)), views).strip().rstrip(";")


def _replaced(text: str, span: Span, views: Mapping[LocatedClause, str]) -> str:
    parts: list[str] = []
    start = span.start
    for clause in sorted(views, key=lambda clause: (clause.span.start, -clause.span.end)):
        if clause.span.start < start or clause.span.end > span.end:
            continue  # outside of the part, or inside a clause that has been replaced
        parts += [text[start : clause.span.start], views[clause]]
        start = clause.span.end
    return "".join([*parts, text[start : span.end]])


# ---------------------------------------------------------------- places


def _is_clause(words: tuple[SqlWord, ...], index: int, word: SqlWord) -> bool:
    return word.says(KEYWORD) and index + 1 < len(words) and words[index + 1].text == "("


def _refuse_unclosed(words: tuple[SqlWord, ...], source: SourceText) -> None:
    for word in words:
        if word.kind == "unclosed":
            what = "comment" if word.text == "/*" else word.text
            hint = f"close it with {'*/' if word.text == '/*' else word.text}"
            raise ProgramError([Diagnostic("syntax", f"this {what} is never closed", source, word.span, hint)])


def _located(words: tuple[SqlWord, ...], index: int, source: SourceText) -> LocatedClause:
    keyword = words[index]
    closing = partner(words, index + 1)
    if closing is None:
        hint = "close it with ')', or one that is open inside it"
        place = words[index + 1].span
        raise ProgramError([Diagnostic("syntax", "this '(' is never closed", source, place, hint)])
    if words[closing].text != ")":
        message = f"{words[closing].text!r} does not match the '(' of MATCH_RECOGNIZE"
        raise ProgramError([Diagnostic("syntax", message, source, words[closing].span, "close with ')'")])
    start = _relation_start(words, index)
    if start is None or start == index:
        message = "MATCH_RECOGNIZE has no table before it"
        hint = "it follows a table in FROM: SELECT * FROM ticks MATCH_RECOGNIZE (…)"
        raise ProgramError([Diagnostic("no-relation", message, source, keyword.span, hint)])
    relation = Span(words[start].span.start, words[index - 1].span.end)
    common, recursive = _common_tables(words, index)
    return LocatedClause(
        Span(relation.start, words[closing].span.end),
        relation,
        keyword.span,
        Span(words[index + 1].span.end, words[closing].span.start),
        _table_name(words[start:index]),
        _alias(words, closing + 1),
        common,
        recursive,
    )


def _relation_start(words: tuple[SqlWord, ...], index: int) -> int | None:
    """The index of the first word of the relation before an index: after FROM, JOIN, a comma or a parenthesis."""
    depth = 0
    for position in range(index - 1, -1, -1):
        word = words[position]
        if word.kind == "symbol" and word.text in CLOSING:
            depth += 1
        elif word.kind == "symbol" and word.text in OPENING:
            if depth == 0:
                return position + 1
            depth -= 1
        elif depth == 0 and (word.text == "," or word.upper in _BEFORE_RELATION):
            return position + 1
        elif depth == 0 and word.says(";", "SELECT"):
            return None
    return None


def _table_name(words: tuple[SqlWord, ...]) -> str:
    """The name of a relation that is a table, with or without an alias; empty for any other."""
    if not words or words[0].kind != "name":
        return ""
    parts = [unquoted(words[0].text)]
    position = 1
    while position + 1 < len(words) and words[position].text == "." and words[position + 1].kind == "name":
        parts.append(unquoted(words[position + 1].text))
        position += 2
    if position < len(words) and words[position].text == "(":
        return ""  # a table function
    if any(word.says(KEYWORD) for word in words):
        return ""  # the result of another clause
    return ".".join(parts)


def _alias(words: tuple[SqlWord, ...], position: int) -> str:
    rest = words[position : position + 2]
    if rest and rest[0].says("AS"):
        rest = rest[1:]
    if not rest or rest[0].kind != "name" or rest[0].upper in _AFTER_RELATION:
        return ""
    return unquoted(rest[0].text)


def _common_tables(words: tuple[SqlWord, ...], index: int) -> tuple[tuple[Span, ...], bool]:
    """The common table expressions that a clause at an index can read: complete ones before it, outer ones first."""
    found: list[Span] = []
    recursive = False
    for position in range(index):
        if not words[position].says("WITH") or not _encloses(words, position, index):
            continue
        cursor = position + 1
        if cursor < len(words) and words[cursor].says("RECURSIVE"):
            recursive, cursor = True, cursor + 1
        found += _complete_tables(words, cursor, index)
    return tuple(found), recursive


def _encloses(words: tuple[SqlWord, ...], position: int, index: int) -> bool:
    """Return whether the query that begins at a position extends to an index."""
    depth = 0
    for word in words[position:index]:
        if word.kind == "symbol":
            depth += (word.text in OPENING) - (word.text in CLOSING)
        if depth < 0 or (depth == 0 and word.text == ";"):
            return False
    return True


def _complete_tables(words: tuple[SqlWord, ...], cursor: int, index: int) -> list[Span]:
    """The tables `name [(columns)] AS (query)` of a WITH that end before an index."""
    found: list[Span] = []
    while cursor < index:
        first = cursor
        while cursor < index and not words[cursor].says("AS"):
            cursor += 1
        cursor += 1
        if cursor >= index or words[cursor].text != "(":
            break
        closing = partner(words, cursor)
        if closing is None or closing >= index:
            break
        found.append(Span(words[first].span.start, words[closing].span.end))
        if closing + 1 >= len(words) or words[closing + 1].text != ",":
            break
        cursor = closing + 2
    return found
