"""From CEQL text to syntax: the grammar turned into nodes while it is parsed."""

from __future__ import annotations

import re
from functools import cache

from lark import Lark, Token, UnexpectedInput

from weft.algebra.numbers import negated
from weft.errors import ProgramError
from weft.languages.ceql import syntax
from weft.languages.ceql.mistakes import CEQL
from weft.languages.grammars import load_parser
from weft.languages.stops import explain
from weft.languages.tokens import Child, ExpressionRules, constant_of, from_to, number_of, place
from weft.source import SourceText, Span


def parse(source: SourceText) -> syntax.Program:
    """The syntax tree of a program; raises ProgramError at the first place that is no CEQL."""
    try:
        statements: tuple[syntax.Statement, ...] = _parser().parse(source.text)  # type: ignore[assignment]
    except UnexpectedInput as unexpected:
        raise ProgramError([explain(source, unexpected, CEQL)]) from None
    return syntax.Program(statements, span=Span(0, len(source.text)))


@cache
def _parser() -> Lark:
    return load_parser("weft.languages.ceql", _Nodes())


_QUALIFIED_PARTS = re.compile(r"[^\W\d]\w*|`(?:[^`\n]|``)+`")
_CLAUSE_OF = {
    syntax.Partition: "partition",
    syntax.Within: "within",
    syntax.Consume: "consume",
    syntax.Limit: "limit",
    syntax.Session: "session",
    syntax.Top: "top",
}


class _Nodes(ExpressionRules):
    """One method per rule of the grammar, called by the parser as it goes."""

    def variable_of(self, token: Token) -> syntax.Variable:
        """A variable from its token, which may be `stream>name` in one."""
        if token.type != "QUALIFIED":
            return syntax.Variable(self.name_of(token), span=place(token))
        stream, name = _QUALIFIED_PARTS.finditer(token.value)
        start: int = token.start_pos  # type: ignore[assignment]
        parts = [Token("NAME", part[0], start + part.start(), end_pos=start + part.end()) for part in (stream, name)]
        return syntax.Variable(self.name_of(parts[1]), self.name_of(parts[0]), span=place(token))

    def start(self, children: list[Child]) -> tuple[syntax.Statement, ...]:
        return tuple(children)

    # declarations

    def create_stream(self, children: list[Child]) -> syntax.CreateStream:
        create, name, events, close = children
        return syntax.CreateStream(self.name_of(name), events or (), span=from_to(create, close))

    def event_types(self, children: list[Child]) -> tuple[Child, ...]:
        return tuple(children)

    attributes = values = event_types

    def event_type(self, children: list[Child]) -> syntax.EventDeclaration:
        event, name, attributes, close = children
        return syntax.EventDeclaration(self.name_of(name), attributes or (), span=from_to(event, close))

    def attribute(self, children: list[Child]) -> syntax.AttributeDeclaration:
        name, kind = children
        return syntax.AttributeDeclaration(self.name_of(name), self.name_of(kind), span=from_to(name, kind))

    def declare_event(self, children: list[Child]) -> syntax.EventDeclaration:
        declare, _, name, attributes, close = children
        return syntax.EventDeclaration(self.name_of(name), attributes or (), span=from_to(declare, close))

    def declare_stream(self, children: list[Child]) -> syntax.DeclareStream:
        declare, name, types, close = children
        return syntax.DeclareStream(self.name_of(name), types or (), span=from_to(declare, close))

    def quarantine(self, children: list[Child]) -> syntax.Quarantine:
        create, block = children
        return syntax.Quarantine(block.value, span=from_to(create, block))

    def names(self, children: list[Child]) -> tuple[syntax.Name, ...]:
        return tuple([self.name_of(token) for token in children])

    # queries

    def query(self, children: list[Child]) -> syntax.Query:
        title, select, strategy, selection, streams, formula, *clauses = children
        found: dict[str, syntax.SyntaxNode] = {}
        extra = []
        for clause in clauses:
            word = _CLAUSE_OF[type(clause)]
            if found.setdefault(word, clause) is not clause:
                extra.append(clause)
        return syntax.Query(
            formula,
            name=title and title[1],
            strategy=strategy and strategy.value.upper(),
            selected=selection,
            streams=streams or (),
            extra=tuple(extra),
            span=from_to(title[0] if title else select, clauses[-1] if clauses else formula),
            **found,  # type: ignore[arg-type]
        )

    def query_name(self, children: list[Child]) -> tuple[Token, syntax.Name]:
        query, name = children
        return query, self.name_of(name)

    def select_all(self, children: list[Child]) -> None:
        return None

    def select_none(self, children: list[Child]) -> tuple[()]:
        return ()

    def select_list(self, children: list[Child]) -> tuple[syntax.Selected | syntax.SelectedValue, ...]:
        return tuple(children)

    def selected(self, children: list[Child]) -> syntax.Selected | syntax.SelectedValue:
        """A variable, with attributes or not; else a value, which needs a name."""
        value, name = children
        match value:
            case syntax.Attribute(syntax.Name(text)) if name is None and "." in text:
                return self._field_of(text, value.span)
            case syntax.Attribute(variable) if name is None:
                return syntax.Selected(syntax.Variable(variable, span=value.span), span=value.span)
            case syntax.Of(variable, body, more) if name is None:
                read = (body, *more)
                names = tuple(part.name for part in read if isinstance(part, syntax.Attribute))
                if len(names) == len(read):
                    return syntax.Selected(variable, names, span=value.span)
        return syntax.SelectedValue(value, name and self.name_of(name), span=from_to(value, name or value))

    def _field_of(self, text: str, span: Span) -> syntax.Selected:
        """`variable.attribute`, in one word."""
        variable, _, attribute = text.partition(".")
        middle = span.start + len(variable)
        named = syntax.Name(variable, span=Span(span.start, middle))
        shown = syntax.Name(attribute, span=Span(middle + 1, span.end))
        return syntax.Selected(syntax.Variable(named, span=named.span), (shown,), span=span)

    def selected_stream(self, children: list[Child]) -> syntax.Selected:
        variable = self.variable(children)
        return syntax.Selected(variable, span=variable.span)

    def selected_field(self, children: list[Child]) -> syntax.Selected:
        variable, attribute = children
        named = syntax.Variable(self.name_of(variable), span=place(variable))
        return syntax.Selected(named, (self.name_of(attribute),), span=from_to(variable, attribute))

    def partition(self, children: list[Child]) -> syntax.Partition:
        word, *parts = children
        return syntax.Partition(tuple(parts), span=from_to(word, parts[-1][-1]))

    def key_part(self, children: list[Child]) -> tuple[syntax.Name, ...]:
        first = children[0]
        return (self.name_of(first),) if isinstance(first, Token) else first

    def within(self, children: list[Child]) -> syntax.Within:
        word, *spans = children
        return syntax.Within(tuple(spans), span=from_to(word, spans[-1]))

    def within_attribute(self, children: list[Child]) -> syntax.Within:
        word, amount, name, close, _, jump = children
        most = jump if jump is None else self.name_of(jump) if isinstance(jump, Token) else jump[0]
        last = close if jump is None else jump if isinstance(jump, Token) else jump[1]
        return syntax.Within(amount=amount[0], attribute=self.name_of(name), jump=most, span=from_to(word, last))

    def span_part(self, children: list[Child]) -> syntax.Amount:
        (amount, first), unit = children
        return syntax.Amount(amount, self.name_of(unit), span=from_to(first, unit))

    def consume(self, children: list[Child]) -> syntax.Consume:
        word, what = children
        return syntax.Consume(self.name_of(what), span=from_to(word, what))

    def limit(self, children: list[Child]) -> syntax.Limit:
        word, (amount, first) = children
        return syntax.Limit(amount, span=from_to(word, first))

    def session(self, children: list[Child]) -> syntax.Session:
        word, *spans = children
        return syntax.Session(tuple(spans), span=from_to(word, spans[-1]))

    def top(self, children: list[Child]) -> syntax.Top:
        word, value, direction, _, (amount, _), _, *spans = children
        ascending = direction is not None and direction.value.upper() == "ASC"
        return syntax.Top(value, amount, tuple(spans), ascending, span=from_to(word, spans[-1]))

    def signed(self, children: list[Child]) -> tuple[int | float, Token]:
        minus, number = children
        if not minus:
            return number_of(number), number
        return -number_of(number), Token("NUMBER", f"-{number}", minus.start_pos, end_pos=number.end_pos)

    # formulas

    def event(self, children: list[Child]) -> syntax.Event:
        *streams, name = children
        stream = self.name_of(streams[0]) if streams else None
        return syntax.Event(self.name_of(name), stream, span=from_to(children[0], name))

    def negated(self, children: list[Child]) -> syntax.Negated:
        word, formula, close = children
        return syntax.Negated(formula, span=from_to(word, close))

    def named(self, children: list[Child]) -> syntax.Named:
        formula, name = children
        return syntax.Named(formula, self.name_of(name), span=from_to(formula, name))

    def repeated(self, children: list[Child]) -> syntax.Repeated:
        formula, plus = children
        return syntax.Repeated(formula, span=from_to(formula, plus))

    def repeated_contiguous(self, children: list[Child]) -> syntax.Repeated:
        formula, plus = children
        return syntax.Repeated(formula, contiguous=True, span=from_to(formula, plus))

    def counted(self, children: list[Child]) -> syntax.Counted:
        formula, opening, least, comma, most, close = children
        low = number_of(least)
        high = (None if most is None else number_of(most)) if comma else low
        return syntax.Counted(formula, low, high, opening.value.startswith(":"), span=from_to(formula, close))

    def optional(self, children: list[Child]) -> syntax.Counted:
        formula, mark = children
        return syntax.Counted(formula, 0, 1, span=from_to(formula, mark))

    def sequence(self, children: list[Child]) -> syntax.Sequence:
        left, right = children
        return syntax.Sequence(left, right, span=from_to(left, right))

    def adjacent(self, children: list[Child]) -> syntax.Sequence:
        left, right = children
        return syntax.Sequence(left, right, contiguous=True, span=from_to(left, right))

    def either(self, children: list[Child]) -> syntax.Either:
        left, right = children
        return syntax.Either(left, right, span=from_to(left, right))

    def filtered(self, children: list[Child]) -> syntax.Filtered:
        formula, _, condition = children
        return syntax.Filtered(formula, condition, span=from_to(formula, condition))

    # filters and predicates

    def like(self, children: list[Child]) -> syntax.Like:
        operand, negated, word, pattern = children
        return syntax.Like(
            word.value.upper(),
            operand,
            self.text_of(pattern),
            negated is not None,
            span=from_to(operand, pattern),
            pattern_span=place(pattern),
        )

    def in_set(self, children: list[Child]) -> syntax.In:
        operand, negated, values, close = children
        return syntax.In(operand, values or (), negated is not None, span=from_to(operand, close))

    def in_range(self, children: list[Child]) -> syntax.InRange:
        operand, negated, low, high, close = children
        return syntax.InRange(operand, low, high, negated is not None, span=from_to(operand, close))

    def between(self, children: list[Child]) -> syntax.InRange:
        operand, negated, _, low, high = children
        return syntax.InRange(operand, low, high, negated is not None, between=True, span=from_to(operand, high))

    def is_null(self, children: list[Child]) -> syntax.IsNull:
        operand, _, negated, null = children
        return syntax.IsNull(operand, negated is not None, span=from_to(operand, null))

    def call_of_values(self, children: list[Child]) -> syntax.Function:
        function, *operands, close = children
        return syntax.Function(function.value.upper(), tuple(operands), span=from_to(function, close))

    def timestamp(self, children: list[Child]) -> syntax.Timestamp:
        word, text = children
        return syntax.Timestamp(self.text_of(text), span=from_to(word, text))

    def attribute_name(self, children: list[Child]) -> syntax.Attribute:
        return syntax.Attribute(self.name_of(children[0]), span=place(children[0]))

    def of_variable(self, children: list[Child]) -> syntax.Of:
        variable, body, *more, close = children
        return syntax.Of(self.variable_of(variable), body, tuple(more), span=from_to(variable, close))

    def call(self, children: list[Child]) -> syntax.Call:
        function, variable, attribute, _, close = children
        named = attribute and self.name_of(attribute)
        return syntax.Call(function.value.upper(), variable, named, span=from_to(function, close))

    def variable(self, children: list[Child]) -> syntax.Variable:
        if len(children) == 1:
            return self.variable_of(children[0])
        stream, name = children
        return syntax.Variable(self.name_of(name), self.name_of(stream), span=from_to(stream, name))

    def negative_number(self, children: list[Child]) -> syntax.Literal:
        minus, number = children
        return syntax.Literal(negated(constant_of(number)), span=from_to(minus, number))
