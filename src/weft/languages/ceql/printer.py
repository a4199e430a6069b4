"""From CEQL syntax back to text that parses to the same syntax."""

from __future__ import annotations

import re

from weft.algebra.numbers import number_text
from weft.algebra.predicates import Value
from weft.languages.ceql import syntax
from weft.languages.ceql.clause_words import KEYWORDS
from weft.languages.syntax import chain

# How tightly things bind; an operand that binds less tightly is put in parentheses.
_FILTER, _EITHER, _ADJACENT, _SEQUENCE, _POSTFIX = range(5)
_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _NEGATE, _ATOM = range(8)
_LEVEL_OF_OPERATOR = {"+": _ADD, "-": _ADD, "*": _MULTIPLY, "/": _MULTIPLY, "%": _MULTIPLY}
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def to_source(node: syntax.Program) -> str:
    """The program as text: one clause per line, an empty line between statements."""
    return "\n\n".join(statement_text(statement) for statement in node.statements) + "\n"


def statement_text(node: syntax.Statement) -> str:
    """A query or a declaration as text."""
    match node:
        case syntax.Query():
            return _query(node)
        case syntax.CreateStream(name, events):
            inner = ",\n".join(f"  EVENT {_name(e.name)} {{ {_attributes(e, ':')} }}" for e in events)
            return f"CREATE STREAM {_name(name)} {{\n{inner}\n}}"
        case syntax.EventDeclaration(name):
            return f"DECLARE EVENT {_name(name)}({_attributes(node, ' ')})"
        case syntax.DeclareStream(name, types):
            return f"DECLARE STREAM {_name(name)}({_names(types)})"
        case syntax.Quarantine(block):
            return f"CREATE QUARANTINE {block}"
    raise AssertionError(f"not a statement: {node!r}")


def _query(node: syntax.Query) -> str:
    strategy = f"{node.strategy} " if node.strategy else ""
    lines = [f"SELECT {strategy}{_selection(node.selected)}"]
    if node.name is not None:
        lines.insert(0, f"QUERY {_name(node.name)} AS")
    if node.streams:
        lines.append(f"FROM {_names(node.streams)}")
    lines.append(f"WHERE {formula_text(node.formula)}")
    own = (node.partition, node.session, node.within, node.consume, node.limit, node.top)
    clauses = (*own, *node.extra)
    lines += [_clause(clause) for clause in clauses if clause is not None]
    return "\n".join(lines)


def _selection(selected: tuple[syntax.Selected | syntax.SelectedValue, ...] | None) -> str:
    if selected is None:
        return "*"
    return ", ".join(_selected(item) for item in selected) or "NONE"


def _selected(item: syntax.Selected | syntax.SelectedValue) -> str:
    if isinstance(item, syntax.SelectedValue):
        return _at(item.value, _ADD) + ("" if item.name is None else f" AS {_name(item.name)}")
    return _variable(item.variable) + (f"[{_names(item.attributes)}]" if item.attributes else "")


def _clause(clause: syntax.SyntaxNode) -> str:
    match clause:
        case syntax.Partition(parts):
            return "PARTITION BY " + ", ".join(f"[{_names(part)}]" for part in parts)
        case syntax.Within(spans, amount, attribute, jump):
            if attribute is not None and amount is not None:
                most = jump.text if isinstance(jump, syntax.Name) else repr(jump)
                return f"WITHIN {amount!r} [{_name(attribute)}]" + ("" if jump is None else f" JUMP {most}")
            return f"WITHIN {_spans(spans)}"
        case syntax.Session(spans):
            return f"SESSION {_spans(spans)}"
        case syntax.Top(value, amount, spans, ascending):
            direction = "ASC" if ascending else "DESC"
            return f"ORDER BY {_at(value, _ADD)} {direction} LIMIT {amount!r} EVERY {_spans(spans)}"
        case syntax.Consume(what):
            return f"CONSUME BY {what.text}"
        case syntax.Limit(amount):
            return f"LIMIT {amount!r}"
    raise AssertionError(f"not a clause: {clause!r}")


def _spans(spans: tuple[syntax.Amount, ...]) -> str:
    return " ".join(f"{span.amount!r} {span.unit.text}" for span in spans)


def _attributes(event: syntax.EventDeclaration, between: str) -> str:
    return ", ".join(f"{_name(a.name)}{between}{a.kind.text}" for a in event.attributes)


def _names(names: tuple[syntax.Name, ...]) -> str:
    return ", ".join(map(_name, names))


def _name(name: syntax.Name) -> str:
    if _PLAIN_NAME.fullmatch(name.text) and name.text.upper() not in KEYWORDS:
        return name.text
    return "`" + name.text.replace("`", "``") + "`"


def _variable(variable: syntax.Variable) -> str:
    stream = "" if variable.stream is None else f"{_name(variable.stream)}>"
    return stream + _name(variable.name)


# ---------------------------------------------------------------- formulas


def formula_text(node: syntax.Formula) -> str:
    """A formula as text, with no more parentheses than it needs."""
    return _formula(node)[0]


def _formula(node: syntax.Formula) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match node:
        case syntax.Event(type_, stream):
            return ("" if stream is None else f"{_name(stream)}>") + _name(type_), _POSTFIX
        case syntax.Negated(formula):
            return f"NOT({formula_text(formula)})", _POSTFIX
        case syntax.Named(formula, name):
            return f"{_formula_at(formula, _POSTFIX)} AS {_name(name)}", _POSTFIX
        case syntax.Repeated(formula, contiguous):
            return _formula_at(formula, _POSTFIX) + (":+" if contiguous else "+"), _POSTFIX
        case syntax.Counted(formula, least, most, contiguous):
            if (least, most, contiguous) == (0, 1, False):
                return f"{_formula_at(formula, _POSTFIX)}?", _POSTFIX
            bounds = repr(least) if least == most else f"{least!r},{'' if most is None else repr(most)}"
            return _formula_at(formula, _POSTFIX) + (":" if contiguous else "") + f"{{{bounds}}}", _POSTFIX
        case syntax.Sequence(left, right, contiguous):
            level, symbol = (_ADJACENT, ":") if contiguous else (_SEQUENCE, ";")
            return f"{_formula_at(left, level)} {symbol} {_formula_at(right, level + 1)}", level
        case syntax.Either(left, right):
            return f"{_formula_at(left, _EITHER)} OR {_formula_at(right, _ADJACENT)}", _EITHER
        case syntax.Filtered(formula, condition):
            return f"{formula_text(formula)} FILTER {expression_text(condition)}", _FILTER
    raise AssertionError(f"not a formula: {node!r}")


def _formula_at(node: syntax.Formula, level: int) -> str:
    text, binds = _formula(node)
    return text if binds >= level else f"({text})"


# ---------------------------------------------------------------- filters and predicates


def expression_text(node: syntax.Expression) -> str:
    """A filter, predicate or value as text, with no more parentheses than it needs."""
    return _expression(node)[0]


def _expression(node: syntax.Expression) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match node:
        case syntax.Or():
            return " OR ".join(_at(part, _AND) for part in chain(node)), _OR
        case syntax.And():
            return " AND ".join(_at(part, _NOT) for part in chain(node)), _AND
        case syntax.Not(operand):
            return f"NOT {_at(operand, _NOT)}", _NOT
        case syntax.Comparison(operator, left, right):
            return f"{_at(left, _ADD)} {operator} {_at(right, _ADD)}", _COMPARE
        case syntax.Like(operator, operand, pattern, negated):
            return f"{_at(operand, _ADD)} {_negation(negated)}{operator} {_quoted(pattern)}", _COMPARE
        case syntax.In(operand, values, negated):
            listed = ", ".join(_literal(value.value) for value in values)
            return f"{_at(operand, _ADD)} {_negation(negated)}IN {{{listed}}}", _COMPARE
        case syntax.IsNull(operand, negated):
            return f"{_at(operand, _ADD)} IS {_negation(negated)}NULL", _COMPARE
        case syntax.InRange(operand, low, high, negated, between=True):
            bounds = f"{_at(low, _ADD)} AND {_at(high, _ADD)}"
            return f"{_at(operand, _ADD)} {_negation(negated)}BETWEEN {bounds}", _COMPARE
        case syntax.InRange(operand, low, high, negated):
            bounds = f"({_at(low, _ADD)}, {_at(high, _ADD)})"
            return f"{_at(operand, _ADD)} {_negation(negated)}IN RANGE {bounds}", _COMPARE
        case _:
            return _value(node)


def _value(node: syntax.Expression) -> tuple[str, int]:
    match node:
        case syntax.Arithmetic(operator, left, right):
            level = _LEVEL_OF_OPERATOR[operator]
            return f"{_at(left, level)} {operator} {_at(right, level + 1)}", level
        case syntax.Negative(operand):
            # Two minus signs in a row would begin a comment.
            return f"-{_at(operand, _ATOM)}", _NEGATE
        case syntax.Literal(value):
            return _literal(value), _ATOM
        case syntax.Attribute(name):
            return _name(name), _ATOM
        case syntax.Of(variable, body, more):
            return f"{_variable(variable)}[{', '.join(map(expression_text, (body, *more)))}]", _ATOM
        case syntax.Function(function, operands):
            return f"{function}({', '.join(_at(operand, _ADD) for operand in operands)})", _ATOM
        case syntax.Timestamp(text):
            return f"TIMESTAMP {_quoted(text)}", _ATOM
        case syntax.Call(function, variable, attribute):
            read = "" if attribute is None else f"[{_name(attribute)}]"
            return f"{function}({_variable(variable)}{read})", _ATOM
    raise AssertionError(f"not an expression: {node!r}")


def _at(node: syntax.Expression, level: int) -> str:
    text, binds = _expression(node)
    return text if binds >= level else f"({text})"


def _negation(negated: bool) -> str:
    return "NOT " if negated else ""


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return _quoted(value) if isinstance(value, str) else number_text(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
