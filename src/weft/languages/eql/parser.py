"""From EQL text to syntax: the grammar turned into nodes while it is parsed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from lark import Lark, UnexpectedInput

from weft.errors import ProgramError
from weft.languages import syntax as expressions
from weft.languages.counts import count_of
from weft.languages.eql import syntax
from weft.languages.eql.mistakes import EQL
from weft.languages.grammars import load_parser
from weft.languages.stops import explain
from weft.languages.tokens import Child, ExpressionRules, from_to, number_of
from weft.source import SourceText, Span


def parse(source: SourceText) -> syntax.Program:
    """The syntax tree of a program; raises ProgramError at the first place that is no EQL."""
    try:
        program: syntax.Program = _parser().parse(source.text)  # type: ignore[assignment]
    except UnexpectedInput as unexpected:
        raise ProgramError([explain(source, unexpected, EQL)]) from None
    return replace(program, span=Span(0, len(source.text)))


@cache
def _parser() -> Lark:
    return load_parser("weft.languages.eql", _Nodes())


class _Nodes(ExpressionRules):
    """One method per rule of the grammar, called by the parser as it goes."""

    def start(self, children: list[Child]) -> syntax.Program:
        queries = tuple(child for child in children if isinstance(child, syntax.Query))
        return syntax.Program(tuple(children[: len(children) - len(queries)]), queries)

    # sources and sinks

    def source(self, children: list[Child]) -> syntax.Source:
        word, name, attributes, close, uri, rate = children
        return syntax.Source(
            self.name_of(name),
            attributes or (),
            uri and self.text_of(uri),
            None if rate is None else number_of(rate),
            span=from_to(word, rate or uri or close),
        )

    def attribute(self, children: list[Child]) -> syntax.Attribute:
        name, kind = children[0], children[-1]
        return syntax.Attribute(self.name_of(name), self.name_of(kind), span=from_to(name, kind))

    def sink(self, children: list[Child]) -> syntax.Sink:
        word, name, uri = children
        return syntax.Sink(self.name_of(name), self.text_of(uri), span=from_to(word, uri))

    # queries

    def query(self, children: list[Child]) -> syntax.Query:
        select, selected, pattern, conditions, sinks = children
        conditions = conditions or ()
        names = tuple(self.name_of(name) for name in sinks or ())
        last = names or conditions or (pattern,)
        return syntax.Query(pattern, selected, conditions, names, span=from_to(select, last[-1]))

    def select_all(self, children: list[Child]) -> None:
        return None

    # patterns

    def leaf(self, children: list[Child]) -> syntax.Leaf:
        type_, alias = children
        return syntax.Leaf(self.name_of(type_), alias and self.name_of(alias), span=from_to(type_, alias or type_))

    def union(self, children: list[Child]) -> syntax.Union:
        left, right = children
        return syntax.Union(left, right, span=from_to(left, right))

    def without(self, children: list[Child]) -> syntax.Without:
        pattern, unwanted = children
        return syntax.Without(pattern, unwanted, span=from_to(pattern, unwanted))

    def next(self, children: list[Child]) -> syntax.Next:
        left, right = children
        return syntax.Next(left, right, span=from_to(left, right))

    def repeated(self, children: list[Child]) -> syntax.Repeated:
        pattern, plus = children
        return syntax.Repeated(pattern, span=from_to(pattern, plus))

    def counted(self, children: list[Child]) -> syntax.Repeated:
        pattern, least, comma, most, close = children
        return syntax.Repeated(pattern, count_of(least, comma, most), span=from_to(pattern, close))

    def timed(self, children: list[Child]) -> syntax.Timed:
        pattern, duration = children
        return syntax.Timed(pattern, duration, span=from_to(pattern, duration))

    def duration(self, children: list[Child]) -> syntax.Duration:
        amount, unit = children
        return syntax.Duration(number_of(amount), unit and self.name_of(unit), span=from_to(amount, unit or amount))

    # conditions

    def occurs(self, children: list[Child]) -> syntax.Occurs:
        opening, first, last, duration = children
        return syntax.Occurs(self.name_of(first), self.name_of(last), duration, span=from_to(opening, duration))

    def call(self, children: list[Child]) -> syntax.Call:
        function, argument, close = children
        return syntax.Call(function.value.upper(), argument, span=from_to(function, close))

    def group(self, children: list[Child]) -> expressions.Expression:
        _, inner = children
        return inner  # type: ignore[no-any-return]
