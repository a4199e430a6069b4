"""From CEQL text to syntax: the grammar turned into nodes while it is parsed."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lark import Lark, Token, UnexpectedInput
from lark.visitors import Transformer

from weft.errors import ProgramError
from weft.languages.ceql import syntax
from weft.languages.ceql.mistakes import explain_mistake
from weft.languages.grammars import load_parser
from weft.source import SourceText, Span

Child = Any  # what the grammar's rules hand on: tokens, nodes, tuples of nodes, or None for an absent option


def parse(source: SourceText) -> syntax.Program:
    """The syntax tree of a program; raises ProgramError at the first place that is no CEQL."""
    try:
        statements: tuple[syntax.Statement, ...] = _parser().parse(source.text)  # type: ignore[assignment]
    except UnexpectedInput as unexpected:
        raise ProgramError([explain_mistake(source, unexpected)]) from None
    return syntax.Program(statements, span=Span(0, len(source.text)))


@cache
def _parser() -> Lark:
    return load_parser("weft.languages.ceql", _Nodes())


def _name(token: Token) -> syntax.Name:
    text = token.value
    if text[0] == "`":
        text = text[1:-1].replace("``", "`")
    return syntax.Name(text, span=_place(token))


def _place(token: Child) -> Span:
    return Span(token.start_pos, token.end_pos)


def _from_to(first: Child, last: Child) -> Span:
    """The text from one token or node to another."""
    start = first.span.start if isinstance(first, syntax.SyntaxNode) else first.start_pos
    end = last.span.end if isinstance(last, syntax.SyntaxNode) else last.end_pos
    return Span(start, end)


def _unquote(token: Token) -> str:
    text: str = token.value
    return text[1:-1].replace(text[0] * 2, text[0])


def _number(token: Token) -> int | float:
    text: str = token.value
    return int(text) if text.isdigit() else float(text)


_QUALIFIED_PARTS = re.compile(r"[^\W\d]\w*|`(?:[^`\n]|``)+`")
_SAME_OPERATOR = {"==": "=", "!=": "<>"}
_CLAUSE_OF = {
    syntax.Partition: "partition",
    syntax.Within: "within",
    syntax.Consume: "consume",
    syntax.Limit: "limit",
}


def _variable(token: Token) -> syntax.Variable:
    """A variable from its token, which may be `stream>name` in one."""
    if token.type != "QUALIFIED":
        return syntax.Variable(_name(token), span=_place(token))
    stream, name = _QUALIFIED_PARTS.finditer(token.value)
    start: int = token.start_pos  # type: ignore[assignment]
    parts = [Token("NAME", part[0], start + part.start(), end_pos=start + part.end()) for part in (stream, name)]
    return syntax.Variable(_name(parts[1]), _name(parts[0]), span=_place(token))


class _Nodes(Transformer[Token, Any]):
    """One method per rule of the grammar, called by the parser as it goes."""

    def start(self, children: list[Child]) -> tuple[syntax.Statement, ...]:
        return tuple(children)

    # declarations

    def create_stream(self, children: list[Child]) -> syntax.CreateStream:
        create, name, events, close = children
        return syntax.CreateStream(_name(name), events or (), span=_from_to(create, close))

    def event_types(self, children: list[Child]) -> tuple[Child, ...]:
        return tuple(children)

    attributes = values = event_types

    def event_type(self, children: list[Child]) -> syntax.EventDeclaration:
        event, name, attributes, close = children
        return syntax.EventDeclaration(_name(name), attributes or (), span=_from_to(event, close))

    def attribute(self, children: list[Child]) -> syntax.AttributeDeclaration:
        name, kind = children
        return syntax.AttributeDeclaration(_name(name), _name(kind), span=_from_to(name, kind))

    def declare_event(self, children: list[Child]) -> syntax.EventDeclaration:
        declare, _, name, attributes, close = children
        return syntax.EventDeclaration(_name(name), attributes or (), span=_from_to(declare, close))

    def declare_stream(self, children: list[Child]) -> syntax.DeclareStream:
        declare, name, types, close = children
        return syntax.DeclareStream(_name(name), types or (), span=_from_to(declare, close))

    def quarantine(self, children: list[Child]) -> syntax.Quarantine:
        create, block = children
        return syntax.Quarantine(block.value, span=_from_to(create, block))

    def names(self, children: list[Child]) -> tuple[syntax.Name, ...]:
        return tuple([_name(token) for token in children])

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
            span=_from_to(title[0] if title else select, clauses[-1] if clauses else formula),
            **found,  # type: ignore[arg-type]
        )

    def query_name(self, children: list[Child]) -> tuple[Token, syntax.Name]:
        query, name = children
        return query, _name(name)

    def select_all(self, children: list[Child]) -> None:
        return None

    def select_none(self, children: list[Child]) -> tuple[()]:
        return ()

    def select_list(self, children: list[Child]) -> tuple[syntax.Selected, ...]:
        return tuple(children)

    def selected(self, children: list[Child]) -> syntax.Selected:
        variable, attributes, close = children
        return syntax.Selected(variable, attributes or (), span=_from_to(variable, close or variable))

    def selected_field(self, children: list[Child]) -> syntax.Selected:
        variable, attribute = children
        place = _from_to(variable, attribute)
        return syntax.Selected(syntax.Variable(_name(variable), span=_place(variable)), (_name(attribute),), span=place)

    def partition(self, children: list[Child]) -> syntax.Partition:
        word, *parts = children
        return syntax.Partition(tuple(parts), span=_from_to(word, parts[-1][-1]))

    def key_part(self, children: list[Child]) -> tuple[syntax.Name, ...]:
        first = children[0]
        return (_name(first),) if isinstance(first, Token) else first

    def within(self, children: list[Child]) -> syntax.Within:
        word, *spans = children
        return syntax.Within(tuple(spans), span=_from_to(word, spans[-1]))

    def within_attribute(self, children: list[Child]) -> syntax.Within:
        word, amount, name, close = children
        return syntax.Within(amount=amount[0], attribute=_name(name), span=_from_to(word, close))

    def span_part(self, children: list[Child]) -> syntax.Amount:
        (amount, first), unit = children
        return syntax.Amount(amount, _name(unit), span=_from_to(first, unit))

    def consume(self, children: list[Child]) -> syntax.Consume:
        word, what = children
        return syntax.Consume(_name(what), span=_from_to(word, what))

    def limit(self, children: list[Child]) -> syntax.Limit:
        word, (amount, first) = children
        return syntax.Limit(amount, span=_from_to(word, first))

    def signed(self, children: list[Child]) -> tuple[int | float, Token]:
        minus, number = children
        return (-_number(number), minus) if minus else (_number(number), number)

    # formulas

    def event(self, children: list[Child]) -> syntax.Event:
        *stream, name = children
        return syntax.Event(_name(name), _name(stream[0]) if stream else None, span=_from_to(children[0], name))

    def negated(self, children: list[Child]) -> syntax.Negated:
        word, formula, close = children
        return syntax.Negated(formula, span=_from_to(word, close))

    def named(self, children: list[Child]) -> syntax.Named:
        formula, name = children
        return syntax.Named(formula, _name(name), span=_from_to(formula, name))

    def repeated(self, children: list[Child]) -> syntax.Repeated:
        formula, plus = children
        return syntax.Repeated(formula, span=_from_to(formula, plus))

    def repeated_contiguous(self, children: list[Child]) -> syntax.Repeated:
        formula, plus = children
        return syntax.Repeated(formula, contiguous=True, span=_from_to(formula, plus))

    def sequence(self, children: list[Child]) -> syntax.Sequence:
        left, right = children
        return syntax.Sequence(left, right, span=_from_to(left, right))

    def adjacent(self, children: list[Child]) -> syntax.Sequence:
        left, right = children
        return syntax.Sequence(left, right, contiguous=True, span=_from_to(left, right))

    def either(self, children: list[Child]) -> syntax.Either:
        left, right = children
        return syntax.Either(left, right, span=_from_to(left, right))

    def filtered(self, children: list[Child]) -> syntax.Filtered:
        formula, _, condition = children
        return syntax.Filtered(formula, condition, span=_from_to(formula, condition))

    # filters and predicates

    def or_(self, children: list[Child]) -> syntax.Or:
        left, right = children
        return syntax.Or(left, right, span=_from_to(left, right))

    def and_(self, children: list[Child]) -> syntax.And:
        left, right = children
        return syntax.And(left, right, span=_from_to(left, right))

    def not_(self, children: list[Child]) -> syntax.Not:
        word, operand = children
        return syntax.Not(operand, span=_from_to(word, operand))

    def comparison(self, children: list[Child]) -> syntax.Comparison:
        left, operator, right = children
        symbol = _SAME_OPERATOR.get(operator.value, operator.value)
        return syntax.Comparison(symbol, left, right, span=_from_to(left, right))

    def like(self, children: list[Child]) -> syntax.Like:
        operand, negated, word, pattern = children
        place = _from_to(operand, pattern)
        text = _unquote(pattern)
        return syntax.Like(
            word.value.upper(), operand, text, negated is not None, span=place, pattern_span=_place(pattern)
        )

    def in_set(self, children: list[Child]) -> syntax.In:
        operand, negated, values, close = children
        return syntax.In(operand, values or (), negated is not None, span=_from_to(operand, close))

    def in_range(self, children: list[Child]) -> syntax.InRange:
        operand, negated, low, high, close = children
        return syntax.InRange(operand, low, high, negated is not None, span=_from_to(operand, close))

    def arithmetic(self, children: list[Child]) -> syntax.Arithmetic:
        left, operator, right = children
        return syntax.Arithmetic(operator.value, left, right, span=_from_to(left, right))

    def negative(self, children: list[Child]) -> syntax.Negative:
        minus, operand = children
        return syntax.Negative(operand, span=_from_to(minus, operand))

    def attribute_name(self, children: list[Child]) -> syntax.Attribute:
        return syntax.Attribute(_name(children[0]), span=_place(children[0]))

    def of_variable(self, children: list[Child]) -> syntax.Of:
        variable, body, close = children
        return syntax.Of(_variable(variable), body, span=_from_to(variable, close))

    def call(self, children: list[Child]) -> syntax.Call:
        function, variable, attribute, _, close = children
        named = attribute and _name(attribute)
        return syntax.Call(function.value.upper(), variable, named, span=_from_to(function, close))

    def variable(self, children: list[Child]) -> syntax.Variable:
        if len(children) == 1:
            return _variable(children[0])
        stream, name = children
        return syntax.Variable(_name(name), _name(stream), span=_from_to(stream, name))

    def number(self, children: list[Child]) -> syntax.Literal:
        return syntax.Literal(_number(children[0]), span=_place(children[0]))

    def negative_number(self, children: list[Child]) -> syntax.Literal:
        minus, number = children
        return syntax.Literal(-_number(number), span=_from_to(minus, number))

    def string(self, children: list[Child]) -> syntax.Literal:
        return syntax.Literal(_unquote(children[0]), span=_place(children[0]))

    def true(self, children: list[Child]) -> syntax.Literal:
        return syntax.Literal(True, span=_place(children[0]))

    def false(self, children: list[Child]) -> syntax.Literal:
        return syntax.Literal(False, span=_place(children[0]))
