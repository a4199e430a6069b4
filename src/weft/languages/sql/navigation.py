"""Expressions of MEASURES and DEFINE in the algebra's normal form: which rows of the match each part reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from weft.algebra.row_patterns import (
    At,
    Cast,
    Choose,
    Constant,
    MatchNumber,
    RowAggregate,
    RowCall,
    RowExpression,
    RowField,
    RowLabel,
    When,
)
from weft.errors import did_you_mean
from weft.languages.findings import Findings
from weft.languages.sql import syntax
from weft.languages.sql.functions import AGGREGATES, COUNTS_ROWS, NAVIGATION, spelled
from weft.source import Span

Place = Literal["DEFINE", "MEASURES"]
_NOTHING = Constant(None)


@dataclass(frozen=True)
class RowNames:
    """What names mean: primary variables with subsets (by their members), and the columns of the input if known."""

    variables: Mapping[str, tuple[str, ...]]  # a subset or variable -> primary variables
    columns: Sequence[str] | None
    findings: Findings

    def members(self, name: syntax.Identifier) -> tuple[str, ...] | None:
        """Return the primary variables that a name refers to; report an unknown name."""
        found = self.variables.get(name.folded)
        if found is None:
            message = f"{name.text!r} is no variable of PATTERN, and no SUBSET"
            hint = did_you_mean(name.folded, self.variables)
            self.findings.error("unknown-variable", message, name.span, hint)
        return found

    def column(self, name: syntax.Identifier) -> str:
        """A column in the spelling of the input; an unknown one is reported."""
        if self.columns is None or name.text in self.columns:
            return name.text
        near = [column for column in self.columns if column.lower() == name.text.lower()]
        if len(near) == 1 and not name.quoted:
            return near[0]
        if near and not name.quoted:
            message = f"several columns are called {name.text!r} but for the case: {', '.join(near)}"
            self.findings.error("ambiguous-column", message, name.span, 'quote the one that is meant: "…"')
        elif near:
            hint = f'quoted names are compared letter by letter: write "{near[0]}"'
            self.findings.error("unknown-column", f"there is no column {name.text!r}", name.span, hint)
        else:
            known = did_you_mean(name.text, self.columns)
            self.findings.error("unknown-column", f"the input has no column {name.text!r}", name.span, known)
        return name.text


@dataclass
class _Argument:
    """What the references in one argument name: the variable of each, and where."""

    function: str
    named: list[tuple[syntax.Identifier | None, Span]] = field(default_factory=list)
    is_wrong: bool = False  # it has been reported


class Navigations:
    """Turns the expressions of one clause into the algebra."""

    def __init__(self, scope: RowNames, place: Place) -> None:
        self._scope = scope
        self._place = place
        self._findings = scope.findings

    def lower(self, node: syntax.SqlExpression) -> RowExpression:
        """An expression in the normal form; what is wrong in it is reported."""
        return self._lower(node, None)

    def _lower(self, node: syntax.SqlExpression, inside: _Argument | None) -> RowExpression:
        match node:
            case syntax.SqlLiteral(value, kind):
                return Constant(value, kind)
            case syntax.ColumnName():
                return self._column(node, inside)
            case syntax.FunctionCall():
                return self._call(node, inside)
            case syntax.Operation(operator, operands):
                return RowCall(operator, tuple(self._lower(operand, inside) for operand in operands))
            case syntax.CaseExpression():
                return self._case(node, inside)
            case syntax.CastExpression(argument, type_, tries):
                return Cast(self._lower(argument, inside), type_, tries)
            case syntax.AllRows():
                hint = "only COUNT takes it: COUNT(A.*)"
                self._findings.error("all-rows", "all columns of a row are no value", node.span, hint)
        return _NOTHING

    def _case(self, node: syntax.CaseExpression, inside: _Argument | None) -> RowExpression:
        operand = None if node.operand is None else self._lower(node.operand, inside)
        branches = []
        for branch in node.branches:
            condition = self._lower(branch.condition, inside)
            if operand is not None:
                condition = RowCall("=", (operand, condition))
            branches.append(When(condition, self._lower(branch.value, inside)))
        return Choose(tuple(branches), _NOTHING if node.otherwise is None else self._lower(node.otherwise, inside))

    # ---------------------------------------------------------------- columns

    def _column(self, node: syntax.ColumnName, inside: _Argument | None) -> RowExpression:
        first, *rest = node.parts
        is_variable = bool(rest) and not self._is_struct(first)
        members = self._scope.members(first) if is_variable else None
        column, *path = rest if is_variable else node.parts
        value: RowExpression = RowField(self._scope.column(column))
        for part in path:
            value = RowCall(".", (value, Constant(part.text)))
        if inside is None:
            return At(value, members)
        inside.named.append((first if is_variable else None, node.span))
        return value

    def _is_struct(self, first: syntax.Identifier) -> bool:
        """Whether a name before a dot is a column (of structs): no variable is called like it."""
        if first.folded in self._scope.variables or self._scope.columns is None:
            return False
        return any(column.lower() == first.text.lower() for column in self._scope.columns)

    # ---------------------------------------------------------------- functions

    def _call(self, node: syntax.FunctionCall, inside: _Argument | None) -> RowExpression:
        name = node.name.text.lower()
        if name == "match_number":
            self._require_count(node, 0, 0)
            return MatchNumber()
        if name == "classifier":
            return self._classifier(node, inside)
        if name in NAVIGATION or name in AGGREGATES:
            if inside is not None:
                self._refuse_nested(node, inside)
                return _NOTHING
            self._check_mode(node)
            return self._navigation(node) if name in NAVIGATION else self._aggregate(node)
        if node.mode:
            message = f"{node.mode} is followed by FIRST, LAST or an aggregate, not by {node.name.text}"
            hint = f"write it before the function inside: {node.mode} LAST(…)"
            self._findings.error("running-final", message, node.span, hint)
        if node.distinct:
            self._findings.error("distinct", f"{node.name.text} is no aggregate: it has no DISTINCT", node.span)
        return RowCall(spelled(name), tuple(self._lower(argument, inside) for argument in node.arguments))

    def _classifier(self, node: syntax.FunctionCall, inside: _Argument | None) -> RowExpression:
        self._require_count(node, 0, 1)
        variable: syntax.Identifier | None = None
        if node.arguments:
            argument = node.arguments[0]
            if not isinstance(argument, syntax.ColumnName) or len(argument.parts) > 1:
                hint = "write CLASSIFIER() or CLASSIFIER(A)"
                self._findings.error("classifier", "CLASSIFIER takes a variable", argument.span, hint)
                return _NOTHING
            variable = argument.parts[0]
        members = None if variable is None else self._scope.members(variable)
        if inside is None:
            return At(RowLabel(), members)
        inside.named.append((variable, node.span))
        return RowLabel()

    def _check_mode(self, node: syntax.FunctionCall) -> None:
        name = node.name.text.upper()
        if node.mode and name in ("PREV", "NEXT"):
            hint = f"write {name}({node.mode} LAST(…))"
            self._findings.error("running-final", f"{name} has no {node.mode} of its own", node.span, hint)
        elif node.mode == "FINAL" and self._place == "DEFINE":
            hint = "while a row is tested, the rest of the match is not known: remove FINAL"
            self._findings.error("final-in-define", "FINAL cannot stand in DEFINE", node.span, hint)

    def _refuse_nested(self, node: syntax.FunctionCall, inside: _Argument) -> None:
        inside.is_wrong = True
        name, outer = node.name.text.upper(), inside.function.upper()
        if name.lower() in AGGREGATES:
            hint = "write one beside the other: SUM(A.x) / LAST(A.x)"
            message = f"the aggregate {name} cannot stand inside {outer}"
        elif outer in ("PREV", "NEXT") and name in ("FIRST", "LAST"):
            hint = f"{name} stands directly inside {outer}: {outer}({name}(A.x), 2) + 1"
            message = f"{name} cannot stand in an expression inside {outer}"
        else:
            hint = "PREV and NEXT may hold FIRST or LAST, nothing else is nested: PREV(LAST(A.x, 1), 2)"
            message = f"{name} cannot stand inside {outer}"
        self._findings.error("nested-navigation", message, node.span, hint)

    def _navigation(self, node: syntax.FunctionCall) -> RowExpression:
        name = node.name.text.upper()
        shift, mode = 0, node.mode
        inner = node
        if name in ("PREV", "NEXT"):
            shift = self._offset(node, 1) * (-1 if name == "PREV" else 1)
            argument = node.arguments[0] if node.arguments else None
            if not isinstance(argument, syntax.FunctionCall) or argument.name.text.upper() not in ("FIRST", "LAST"):
                value, members = self._argument(node, node.arguments[:1])
                return At(value, members, shift=shift)
            self._check_mode(argument)
            inner, mode = argument, argument.mode
        offset = self._offset(inner, 0)
        value, members = self._argument(inner, inner.arguments[:1])
        return At(value, members, inner.name.text.upper() == "FIRST", offset, shift, mode == "FINAL")

    def _argument(
        self, node: syntax.FunctionCall, arguments: tuple[syntax.SqlExpression, ...]
    ) -> tuple[RowExpression, tuple[str, ...] | None]:
        inside = _Argument(node.name.text)
        value = self._lower(arguments[0], inside) if arguments else _NOTHING
        if not inside.named and arguments and not inside.is_wrong:
            message = f"{node.name.text.upper()} reads no row: its argument has no column and no CLASSIFIER()"
            self._findings.error("no-reference", message, node.span, "name a column, or write the constant alone")
        return value, self._one_variable(inside)

    def _offset(self, node: syntax.FunctionCall, default: int) -> int:
        """The offset of a navigation function: a constant that is not negative."""
        self._require_count(node, 1, 2)
        if len(node.arguments) < 2:
            return default
        given = node.arguments[1]
        if isinstance(given, syntax.SqlLiteral) and type(given.value) is int and given.value >= 0:
            return given.value
        message = f"the offset of {node.name.text.upper()} is a whole number from 0 on"
        hint = "write a constant"
        if isinstance(given, syntax.SqlLiteral) and isinstance(given.value, int):
            other = {"prev": "NEXT", "next": "PREV"}.get(node.name.text.lower())
            hint = f"to go the other way, write {other}" if other else hint
        self._findings.error("offset", message, given.span, hint)
        return default

    def _aggregate(self, node: syntax.FunctionCall) -> RowExpression:
        name = spelled(node.name.text)
        counted = node.arguments[0] if len(node.arguments) == 1 else None
        final = node.mode == "FINAL"
        if isinstance(counted, syntax.AllRows) or (not node.arguments and name in COUNTS_ROWS):
            if name not in COUNTS_ROWS:
                hint = f"name a column: {node.name.text}(A.price)"
                self._findings.error("all-rows", f"{node.name.text} takes no *", node.span, hint)
            if node.distinct:
                hint = "rows are all different: name a column"
                self._findings.error("distinct", "COUNT(DISTINCT *) counts nothing", node.span, hint)
            variable = counted.variable if isinstance(counted, syntax.AllRows) else None
            members = None if variable is None else self._scope.members(variable)
            return RowAggregate(name, (), members, final=final)
        if not node.arguments:
            self._findings.error("arguments", f"{node.name.text} has no argument", node.span, "name a column")
        inside = _Argument(node.name.text)
        arguments = tuple(self._lower(argument, inside) for argument in node.arguments)
        return RowAggregate(name, arguments, self._one_variable(inside), node.distinct, final)

    def _one_variable(self, inside: _Argument) -> tuple[str, ...] | None:
        """The variable that all references of an argument name; several are reported."""
        names = {None if name is None else name.folded: (name, span) for name, span in reversed(inside.named)}
        if len(names) > 1:
            shown = ", ".join(sorted("all rows" if name is None else name for name in names))
            message = f"the argument of {inside.function.upper()} reads rows of several variables: {shown}"
            hint = "all columns in it name the same variable: SUM(A.x * A.y)"
            self._findings.error("several-variables", message, inside.named[-1][1], hint)
        found = [self._scope.members(name) for name, _ in names.values() if name is not None]
        return found[0] if found else None

    def _require_count(self, node: syntax.FunctionCall, least: int, most: int) -> None:
        if least <= len(node.arguments) <= most:
            return
        many = str(least) if least == most else f"{least} or {most}"
        message = f"{node.name.text.upper()} takes {many} arguments, not {len(node.arguments)}"
        self._findings.error("arguments", message, node.span)
