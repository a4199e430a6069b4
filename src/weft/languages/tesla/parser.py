"""From TESLA text to syntax: the grammar turned into nodes while it is parsed."""

from __future__ import annotations

import re
from functools import cache

from lark import Lark, Token, UnexpectedInput

from weft.errors import ProgramError
from weft.languages.forms import Forms, Misplaced, Placed
from weft.languages.grammars import load_parser
from weft.languages.limits import require_digits
from weft.languages.stops import explain
from weft.languages.syntax import Name
from weft.languages.tesla import syntax
from weft.languages.tesla.mistakes import TESLA
from weft.languages.tokens import Child, ExpressionRules, from_to, number_of, place
from weft.source import SourceText, Span

_SAME_OPERATOR = {"==": "=", "!=": "<>", ":=": "="}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}


_FREE = ("NAME", "NUMBER", "STRING", "PARAMETER")
_HEADS = frozenset({"rule", "assign", "define"})


def parse(source: SourceText) -> syntax.Program:
    """The syntax tree of a program; raises ProgramError at the first place that is no TESLA."""
    try:
        rules = _parse_rules(source.text)
    except (UnexpectedInput, Misplaced, RecursionError):
        rules = _parse_whole(source).rules
    return syntax.Program(rules, span=Span(0, len(source.text)))


def _parse_whole(source: SourceText) -> syntax.Program:
    """The text as one: what is wrong with it is said here, and what `_parse_rules` cuts in the wrong place is right."""
    try:
        return _parser().parse(source.text)  # type: ignore[return-value]
    except UnexpectedInput as unexpected:
        raise ProgramError([explain(source, unexpected, TESLA)]) from None


def _parse_rules(text: str) -> tuple[syntax.Rule, ...]:
    """The text rule by rule, as long as words of its headers are no names elsewhere."""
    rules: list[syntax.Rule] = []
    form: list[str] = []
    part: list[Placed] = []
    is_defined = False
    for share, token in _forms().tokens(text):
        if share in _HEADS:
            if is_defined:
                rules += _forms().parse(text, form, part).rules
                form, part = [], []
            is_defined = share == "define"
        form.append(share)
        part.append(token)
    if part:
        rules += _forms().parse(text, form, part).rules
    return tuple(rules)


@cache
def _parser() -> Lark:
    return load_parser("weft.languages.tesla", _Nodes())


@cache
def _forms() -> Forms:
    return Forms(load_parser("weft.languages.tesla"), _Nodes(), _FREE)


class _Nodes(ExpressionRules):
    """One method per rule of the grammar, called by the parser as it goes."""

    def text_of(self, token: Token) -> str:
        return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), token.value[1:-1])

    def parameter_of(self, token: Token) -> Name:
        """A parameter's name, without its sign."""
        return Name(token.value[1:], span=place(token))

    # rules

    def start(self, children: list[Child]) -> syntax.Program:
        return syntax.Program(tuple(children))

    def rule(self, children: list[Child]) -> syntax.Rule:
        label, assigned, (word, type_, fields, _), _, clauses, *rest = children
        _, assignments, _, consumed, semicolon = rest
        last = semicolon or (consumed or assignments or clauses)[-1]
        return syntax.Rule(
            type_,
            fields,
            clauses,
            assignments or (),
            consumed or (),
            label and label[1],
            assigned[1] if assigned else (),
            span=from_to(label[0] if label else assigned[0] if assigned else word, last),
        )

    def label(self, children: list[Child]) -> tuple[Token, Name]:
        word, name = children
        return word, self.name_of(name)

    def assign(self, children: list[Child]) -> tuple[Token, tuple[syntax.Assigned, ...]]:
        return children[0], tuple(children[1:])

    def assigned(self, children: list[Child]) -> syntax.Assigned:
        number, _, type_ = children
        return syntax.Assigned(number_of(number), self.name_of(type_), span=from_to(number, type_))

    def define(self, children: list[Child]) -> tuple[Token, Name, tuple[syntax.Declared, ...], Token]:
        word, type_, fields, close = children
        return word, self.name_of(type_), fields or (), close

    def declared(self, children: list[Child]) -> syntax.Declared:
        name, kind = children
        return syntax.Declared(self.name_of(name), self.name_of(kind), span=from_to(name, kind))

    def assignment(self, children: list[Child]) -> syntax.Assignment:
        field, operator, value = children
        symbol = _SAME_OPERATOR.get(operator.value, operator.value)
        return syntax.Assignment(self.name_of(field), value, symbol, span=from_to(field, value))

    def named(self, children: list[Child]) -> tuple[Name, ...]:
        return tuple(self.name_of(name) for name in children)

    # patterns

    def terminator(self, children: list[Child]) -> syntax.Selected:
        return self.unselected(children)

    def unselected(self, children: list[Child]) -> syntax.Selected:
        predicate, extent = children
        return syntax.Selected(predicate, extent=extent, span=from_to(predicate, extent or predicate))

    def selected(self, children: list[Child]) -> syntax.Selected:
        word, predicate, extent = children
        count, _, selection = word.value.lower().rpartition("-")
        require_digits(count, place(word))
        return syntax.Selected(
            predicate,
            selection.strip(),
            int(count) if count else None,
            extent,
            span=from_to(word, extent or predicate),
        )

    def negated(self, children: list[Child]) -> syntax.Negated:
        word, predicate, extent = children
        return syntax.Negated(predicate, extent, span=from_to(word, extent or predicate))

    def condition(self, children: list[Child]) -> syntax.Condition:
        return syntax.Condition(children[0], span=children[0].span)

    def predicate(self, children: list[Child]) -> syntax.Predicate:
        type_, constraints, close, _, alias = children
        name = alias and self.name_of(alias)
        return syntax.Predicate(self.name_of(type_), constraints or (), name, span=from_to(type_, alias or close))

    def within(self, children: list[Child]) -> syntax.Within:
        word, duration, _, anchor = children
        return syntax.Within(duration, self.name_of(anchor), span=from_to(word, anchor))

    def unbounded(self, children: list[Child]) -> syntax.Unbounded:
        word, anchor = children
        return syntax.Unbounded(self.name_of(anchor), span=from_to(word, anchor))

    def between(self, children: list[Child]) -> syntax.Between:
        word, first, second = children
        return syntax.Between(self.name_of(first), self.name_of(second), span=from_to(word, second))

    def duration(self, children: list[Child]) -> syntax.Duration:
        amount, unit = children
        return syntax.Duration(number_of(amount), unit and self.name_of(unit), span=from_to(amount, unit or amount))

    # values and conditions

    def binding(self, children: list[Child]) -> syntax.Binding:
        attribute, _, parameter = children
        span = from_to(attribute, parameter)
        return syntax.Binding(self.name_of(attribute), self.parameter_of(parameter), span=span)

    def comparisons(self, children: list[Child]) -> syntax.Comparisons:
        symbols = (_SAME_OPERATOR.get(token.value, token.value) for token in children[1::2])
        return syntax.Comparisons(tuple(children[::2]), tuple(symbols), span=from_to(children[0], children[-1]))

    def parameter(self, children: list[Child]) -> syntax.Parameter:
        return syntax.Parameter(self.parameter_of(children[0]), span=place(children[0]))

    def typed(self, children: list[Child]) -> syntax.Typed:
        bracket, kind, attribute = children
        return syntax.Typed(self.name_of(kind), self.name_of(attribute), span=from_to(bracket, attribute))

    def measured(self, children: list[Child]) -> tuple[Name, tuple[Child, ...], Name | None]:
        type_, constraints, _, attribute = children
        return self.name_of(type_), constraints or (), attribute and self.name_of(attribute)

    def measured_attribute(self, children: list[Child]) -> tuple[Name, tuple[Child, ...], Name | None]:
        type_, attribute, constraints, close = children
        return self.measured([type_, constraints, close, attribute])

    def aggregate(self, children: list[Child]) -> syntax.Aggregate:
        word, measured, close, extent = children
        type_, constraints, attribute = measured
        span = from_to(word, extent or close)
        return syntax.Aggregate(word.value.upper(), type_, constraints, attribute, extent, span=span)

    def aggregate_inside(self, children: list[Child]) -> syntax.Aggregate:
        word, (type_, constraints, attribute), extent, close = children
        span = from_to(word, close)
        return syntax.Aggregate(word.value.upper(), type_, constraints, attribute, extent, span=span)
