"""From text to the syntax of patterns with policies: the grammar turned into nodes while it is parsed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from lark import Lark, UnexpectedInput

from weft.errors import ProgramError
from weft.languages import syntax as expressions
from weft.languages.epn import syntax
from weft.languages.epn.mistakes import EPN
from weft.languages.grammars import load_parser
from weft.languages.stops import explain
from weft.languages.tokens import Child, ExpressionRules, from_to, number_of
from weft.source import SourceText, Span


def parse(source: SourceText) -> syntax.Program:
    """The syntax tree of a program; raises ProgramError at the first place that cannot be read."""
    try:
        program: syntax.Program = _parser().parse(source.text)  # type: ignore[assignment]
    except UnexpectedInput as unexpected:
        raise ProgramError([explain(source, unexpected, EPN)]) from None
    return replace(program, span=Span(0, len(source.text)))


@cache
def _parser() -> Lark:
    return load_parser("weft.languages.epn", _Nodes())


class _Nodes(ExpressionRules):
    """One method per rule of the grammar, called by the parser as it goes."""

    def start(self, children: list[Child]) -> syntax.Program:
        return syntax.Program(tuple(children))

    def pattern(self, children: list[Child]) -> syntax.Pattern:
        word, name, kind, participants, close, *clauses = children
        span = from_to(word, clauses[-1] if clauses else close)
        return syntax.Pattern(self.name_of(name), self.name_of(kind), participants, tuple(clauses), span=span)

    def participant(self, children: list[Child]) -> syntax.Participant:
        type_, alias, condition, close = children
        names = self.name_of(type_), alias and self.name_of(alias)
        return syntax.Participant(*names, condition, span=from_to(type_, close or alias or type_))

    def where(self, children: list[Child]) -> syntax.Where:
        word, condition = children
        return syntax.Where(condition, span=from_to(word, condition))

    # policies

    def policies(self, children: list[Child]) -> syntax.Policies:
        word, *groups = children
        return syntax.Policies(tuple(groups), span=from_to(word, groups[-1]))

    def group(self, children: list[Child]) -> syntax.Group:
        names, *settings = children
        variables = tuple(self.name_of(name) for name in names or ())
        return syntax.Group(tuple(settings), variables, span=from_to((*variables, *settings)[0], settings[-1]))

    def setting(self, children: list[Child]) -> syntax.Setting:
        policy, value = children
        return syntax.Setting(self.name_of(policy), self.name_of(value), span=from_to(policy, value))

    # contexts

    def context(self, children: list[Child]) -> syntax.Context:
        word, interval, attributes, forget = children
        by = tuple(self.name_of(name) for name in attributes or ())
        last = (interval, *by)[-1] if forget is None else forget
        return syntax.Context(interval, by, forget, span=from_to(word, last))

    def forget(self, children: list[Child]) -> syntax.Duration:
        duration: syntax.Duration = children[0]
        return duration

    def keyed(self, children: list[Child]) -> syntax.Context:
        word, attributes = children
        by = tuple(self.name_of(name) for name in attributes)
        return syntax.Context(None, by, span=from_to(word, by[-1]))

    def fixed(self, children: list[Child]) -> syntax.Fixed:
        word, length = children
        return syntax.Fixed(length, span=from_to(word, length))

    def sliding(self, children: list[Child]) -> syntax.Sliding:
        word, length, step = children
        return syntax.Sliding(length, step, span=from_to(word, step))

    def until(self, children: list[Child]) -> syntax.Until:
        word, opener, closer = children
        return syntax.Until(self.name_of(opener), self.name_of(closer), span=from_to(word, closer))

    def lasting(self, children: list[Child]) -> syntax.Lasting:
        word, opener, length = children
        return syntax.Lasting(self.name_of(opener), length, span=from_to(word, length))

    def duration(self, children: list[Child]) -> syntax.Duration:
        amount, unit = children
        return syntax.Duration(number_of(amount), unit and self.name_of(unit), span=from_to(amount, unit or amount))

    # derived events

    def derive(self, children: list[Child]) -> syntax.Derive:
        word, *fields = children
        return syntax.Derive(tuple(fields), span=from_to(word, fields[-1]))

    def derived(self, children: list[Child]) -> syntax.Derived:
        name, _, value = children
        return syntax.Derived(self.name_of(name), value, span=from_to(name, value))

    # conditions

    def group_(self, children: list[Child]) -> expressions.Expression:
        _, inner, _ = children
        return inner  # type: ignore[no-any-return]

    def call(self, children: list[Child]) -> syntax.Call:
        function, _, *operands, close = children
        return syntax.Call(self.name_of(function), tuple(operands), span=from_to(function, close))
