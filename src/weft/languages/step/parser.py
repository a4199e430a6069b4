"""From Step text to syntax: the grammar turned into nodes while it is parsed."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from lark import Lark, Token, UnexpectedInput

from weft.errors import ProgramError
from weft.languages.counts import count_of
from weft.languages.grammars import load_parser
from weft.languages.step import syntax
from weft.languages.step.mistakes import STEP
from weft.languages.stops import explain
from weft.languages.syntax import Expression, Name
from weft.languages.tokens import Child, ExpressionRules, from_to, number_of, place
from weft.source import SourceText, Span

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def parse(source: SourceText) -> syntax.Program:
    """The syntax tree of a program; raises ProgramError at the first place that is no Step."""
    try:
        program: syntax.Program = _parser().parse(source.text)  # type: ignore[assignment]
    except UnexpectedInput as unexpected:
        raise ProgramError([explain(source, unexpected, STEP)]) from None
    return replace(program, span=Span(0, len(source.text)))


@cache
def _parser() -> Lark:
    return load_parser("weft.languages.step", _Nodes())


class _Nodes(ExpressionRules):
    """One method per rule of the grammar, called by the parser as it goes."""

    def name_of(self, token: Token) -> Name:
        if token.value.startswith("`"):
            return super().name_of(token)
        return Name(token.value.removeprefix("^"), span=place(token))

    def text_of(self, token: Token) -> str:
        return _ESCAPE.sub(lambda found: _unescaped(found[1], found[2]), token.value[1:-1])

    def start(self, children: list[Child]) -> syntax.Program:
        _, topology, *statements = children
        externals = tuple(child for child in statements if isinstance(child, syntax.External))
        queries = tuple(child for child in statements if isinstance(child, syntax.Query))
        return syntax.Program(topology and self.text_of(topology), externals, queries)

    # statements

    def external(self, children: list[Child]) -> syntax.External:
        word, name, fields, close, uri, rate, end = children
        return syntax.External(
            self.name_of(name), fields or (), uri and self.text_of(uri), rate, span=from_to(word, end or uri or close)
        )

    def declared(self, children: list[Child]) -> syntax.Declared:
        name, kind = children
        return syntax.Declared(self.name_of(name), self.name_of(kind), span=from_to(name, kind))

    def rate(self, children: list[Child]) -> int | float:
        minus, number = children
        return -number_of(number) if minus else number_of(number)

    def query(self, children: list[Child]) -> syntax.Query:
        name, projection, _, pattern, sink = children
        span = from_to(name, sink or pattern)
        return syntax.Query(self.name_of(name), pattern, projection, sink and self.text_of(sink), span=span)

    def project_all(self, children: list[Child]) -> None:
        return None

    # patterns

    def leaf(self, children: list[Child]) -> syntax.Leaf:
        type_, alias, bracketed = children
        condition, last = bracketed or (None, alias or type_)
        return syntax.Leaf(self.name_of(type_), alias and self.name_of(alias), condition, span=from_to(type_, last))

    def either(self, children: list[Child]) -> syntax.Either:
        left, right = children
        return syntax.Either(left, right, span=from_to(left, right))

    def follow(self, children: list[Child]) -> syntax.Follow:
        left, operator, bracketed, right = children
        condition = bracketed and bracketed[0]
        return syntax.Follow(left, right, condition, operator.value != ";", span=from_to(left, right))

    def overlap(self, children: list[Child]) -> syntax.Overlap:
        left, bracketed, right = children
        condition = bracketed and bracketed[0]
        return syntax.Overlap(left, right, condition, span=from_to(left, right))

    def repeat(self, children: list[Child]) -> syntax.Repeat:
        pattern, operator, bracketed = children
        condition, last = bracketed or (None, operator)
        return syntax.Repeat(pattern, condition, operator.value != "+", span=from_to(pattern, last))

    def counted(self, children: list[Child]) -> syntax.Repeat:
        pattern, least, comma, most, close, bracketed = children
        condition, last = bracketed or (None, close)
        count = count_of(least, comma, most)
        return syntax.Repeat(pattern, condition, close.value != "}", count, span=from_to(pattern, last))

    def negated(self, children: list[Child]) -> syntax.Negated:
        bang, pattern, *behind = children
        condition, last = (behind and behind[0]) or (None, pattern)
        return syntax.Negated(pattern, condition, span=from_to(bang, last))

    def bracketed(self, children: list[Child]) -> tuple[Expression, Token]:
        condition, close = children
        return condition, close

    # conditions

    def previous(self, children: list[Child]) -> syntax.Previous:
        word, argument, close = children
        return syntax.Previous(argument, span=from_to(word, close))

    def duration(self, children: list[Child]) -> syntax.Duration:
        return syntax.Duration(span=place(children[0]))

    def length(self, children: list[Child]) -> syntax.Length:
        return syntax.Length(span=place(children[0]))


def _unescaped(code: str | None, char: str) -> str:
    return chr(int(code, 16)) if code else _ESCAPED.get(char, char)
