"""From TESLA syntax back to text that parses to the same syntax, in the syntax of the paper."""

from __future__ import annotations

import re
from types import MappingProxyType

from weft.languages.printing import ADD, AND, COMPARE, OR, ExpressionPrinter
from weft.languages.syntax import Expression, Name
from weft.languages.tesla import syntax
from weft.languages.tesla.mistakes import KEYWORDS

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_FUNCTIONS = frozenset({"AVG", "SUM", "COUNT", "MIN", "MAX"})
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_source(node: syntax.Program) -> str:
    """The program as text: one clause per line, an empty line between rules."""
    return "\n\n".join(map(rule_text, node.rules)) + "\n"


def rule_text(node: syntax.Rule) -> str:
    """A rule as text."""
    lines = [] if node.label is None else [f"Rule {_name(node.label)}"]
    if node.assigned:
        lines.append("Assign " + ", ".join(f"{n.number!r} => {_name(n.type)}" for n in node.assigned))
    fields = ", ".join(f"{_name(field.name)}: {_name(field.kind)}" for field in node.fields)
    lines.append(f"define {_name(node.type)}({fields})")
    lines.append("from " + " and\n     ".join(map(clause_text, node.clauses)))
    if node.assignments:
        lines.append("where " + ",\n      ".join(map(_assignment, node.assignments)))
    if node.consumed:
        lines.append("consuming " + ", ".join(map(_name, node.consumed)))
    return "\n".join(lines) + ";"


def clause_text(node: syntax.Clause) -> str:
    """A clause of a pattern as text."""
    match node:
        case syntax.Selected(predicate, selection, count, extent):
            counted = "" if count is None else f"{count}-"
            word = "" if selection is None else f"{counted}{selection} "
            return word + predicate_text(predicate) + _extent(extent)
        case syntax.Negated(predicate, extent):
            return f"not {predicate_text(predicate)}{_extent(extent)}"
        case syntax.Condition(condition):
            return expression_text(condition)
    raise AssertionError(f"not a clause: {node!r}")


def predicate_text(node: syntax.Predicate) -> str:
    """A predicate as text."""
    alias = "" if node.alias is None else f" as {_name(node.alias)}"
    # Before a bracket, a type called Max would be taken for the function.
    return f"{_name(node.type, KEYWORDS | _FUNCTIONS)}({_constraints(node.constraints)}){alias}"


class _Printer(ExpressionPrinter):
    """TESLA's spelling of values and conditions."""

    connectives = MappingProxyType({OR: "or", AND: "and"})
    negation = "not "
    negation_level = COMPARE
    contains = "contains"
    true, false = "true", "false"

    def name(self, name: Name) -> str:
        return _name(name)

    def quoted(self, text: str) -> str:
        return '"' + "".join(_ESCAPES.get(char, char) for char in text) + '"'

    def own(self, node: Expression) -> tuple[str, int] | None:
        match node:
            case syntax.Comparisons(operands, operators):
                shown = [self._at(operand, ADD) for operand in operands]
                pairs = zip(map(_operator, operators), shown[1:], strict=True)
                return " ".join([shown[0], *(f"{operator} {operand}" for operator, operand in pairs)]), COMPARE
            case syntax.Binding(attribute, parameter):
                return f"{_name(attribute)} => ${parameter.text}", COMPARE
            case syntax.Parameter(name):
                return f"${name.text}", self.atom
            case syntax.Typed(kind, attribute):
                return f"[{_name(kind)}]{_name(attribute)}", self.atom
            case syntax.Aggregate(function, type_, constraints, attribute, extent):
                field = "" if attribute is None else f".{_name(attribute)}"
                counted = f"{_name(type_)}({_constraints(constraints)}){field}"
                return f"{function.capitalize()}({counted}{_extent(extent)})", self.atom
        return None


def expression_text(node: Expression) -> str:
    """A condition or value as text, with no more parentheses than it needs."""
    return _Printer().text(node)


def _constraints(constraints: tuple[Expression, ...]) -> str:
    return ", ".join(map(expression_text, constraints))


def _assignment(node: syntax.Assignment) -> str:
    return f"{_name(node.field)} {_operator(node.operator)} {expression_text(node.value)}"


def _operator(symbol: str) -> str:
    return "!=" if symbol == "<>" else symbol


def _extent(extent: syntax.Extent | None) -> str:
    match extent:
        case syntax.Within(duration, anchor):
            unit = "" if duration.unit is None else f" {_name(duration.unit)}"
            return f" within {duration.amount!r}{unit} from {_name(anchor)}"
        case syntax.Unbounded(anchor):
            return f" from {_name(anchor)}"
        case syntax.Between(first, second):
            return f" between {_name(first)} and {_name(second)}"
    return ""


def _name(name: Name, taken: frozenset[str] = KEYWORDS) -> str:
    """The name, in back-quotes where it would be taken for something else."""
    if _PLAIN_NAME.fullmatch(name.text) and name.text.upper() not in taken:
        return name.text
    return "`" + name.text.replace("`", "``") + "`"
