"""Values and conditions lowered to the algebra, with their kinds checked; a language says what its fields read."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from weft.algebra import predicates as algebra
from weft.algebra import terms
from weft.algebra.numbers import negated
from weft.languages import syntax
from weft.languages.findings import Findings
from weft.source import Span

Families = frozenset[str] | None  # what a value can be: number, text, boolean; None: not known

NUMBER: Families = frozenset({"number"})
TEXT: Families = frozenset({"text"})
BOOLEAN: Families = frozenset({"boolean"})
FAMILY_OF = {bool: BOOLEAN, int: NUMBER, float: NUMBER, Decimal: NUMBER, str: TEXT}


class Typed(NamedTuple):
    """A lowered value with what is known of its kind."""

    value: algebra.Expression
    families: Families


UNKNOWN = Typed(algebra.Literal(0), None)  # stands for what has been reported


class ConditionLowering:
    """Lowers the conditions at one place of a program."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    # ------------------------------------------------------------ what a language adds

    def field(self, node: syntax.Field) -> Typed:
        """What a field reads at this place; reports one that cannot be read."""
        raise NotImplementedError

    def own_value(self, node: syntax.Expression) -> Typed | None:
        """The value of a node that only this language has, None when it is none."""
        return None

    def own_condition(self, node: syntax.Expression) -> algebra.Predicate | None:
        """The condition of a node that only this language has, None when it is none."""
        return None

    # ------------------------------------------------------------ conditions

    def condition(self, node: syntax.Expression) -> algebra.Predicate:
        """Return the predicate of a condition."""
        match node:
            case syntax.And():
                return algebra.And(tuple(self.condition(part) for part in syntax.parts_of(node, syntax.And)))
            case syntax.Or():
                return algebra.Or(tuple(self.condition(part) for part in syntax.parts_of(node, syntax.Or)))
            case syntax.Not(operand):
                return algebra.Not(self.condition(operand))
            case syntax.Literal(True):
                return algebra.Always()
            case syntax.Literal(False):
                return algebra.Not(algebra.Always())
            case syntax.Comparison():
                return self.comparison(node)
            case syntax.Contains(operand, part):
                sides = [self.expected(side, TEXT, "only a text contains a text").value for side in (operand, part)]
                return terms.Contains(*sides)
        return self.own_condition(node) or self.flag(node)

    def comparison(self, node: syntax.Comparison) -> algebra.Predicate:
        """`left operator right`, whose sides must be of kinds that compare."""
        left, right = self.value(node.left), self.value(node.right)
        if left.families is not None and right.families is not None and not left.families & right.families:
            message = f"{say(left.families)} never compares with {say(right.families)}"
            hint = "put quotes around a text, and none around a number"
            self.findings.error("type-mismatch", message, node.span, hint)
        return algebra.Comparison(node.operator, left.value, right.value)

    def flag(self, node: syntax.Expression) -> algebra.Predicate:
        """A value that stands where a condition is needed: it must be a boolean."""
        flag = self.value(node)
        if flag.families is not None and not flag.families & frozenset({"boolean"}):
            hint = "compare it with something, as in x.price > 3"
            self.findings.error("not-a-condition", f"{say(flag.families)} is no condition", node.span, hint)
        return algebra.Comparison("=", flag.value, algebra.Literal(True))

    # ------------------------------------------------------------ values

    def value(self, node: syntax.Expression) -> Typed:
        """The value of an expression."""
        match node:
            case syntax.Literal(constant):
                return Typed(algebra.Literal(constant), FAMILY_OF[type(constant)])
            case syntax.Field():
                return self.field(node)
            case syntax.Negative(syntax.Literal(constant)) if not isinstance(constant, bool | str):
                return Typed(algebra.Literal(negated(constant)), NUMBER)
            case syntax.Negative(operand):
                return Typed(algebra.Negative(self._number(operand)), NUMBER)
            case syntax.Arithmetic(operator, left, right):
                return Typed(algebra.Arithmetic(operator, self._number(left), self._number(right)), NUMBER)
            case syntax.Bare(name):
                message = f"{name.text!r} alone is no value"
                hint = f"write {name.text}.attribute, or put a text in quotes: '{name.text}'"
                self.findings.error("not-a-value", message, node.span, hint)
                return UNKNOWN
        own = self.own_value(node)
        if own is None:
            self.refuse_condition(node.span)
        return own or UNKNOWN

    def refuse_condition(self, span: Span) -> None:
        """Report a condition that stands where a value is needed."""
        self.findings.error("not-a-value", "a condition stands where a value is needed", span)

    def _number(self, node: syntax.Expression) -> algebra.Expression:
        return self.expected(node, NUMBER, "arithmetic needs numbers").value

    def expected(self, node: syntax.Expression, wanted: Families, needed: str) -> Typed:
        """The value of an expression, which must be of some kind; reports another."""
        found = self.value(node)
        if found.families is not None and wanted is not None and not found.families & wanted:
            self.findings.error("type-mismatch", f"{needed}; this is {say(found.families)}", node.span)
        return found


def say(families: frozenset[str]) -> str:
    """`a number`, or `a number or a text`."""
    return " or ".join(f"a {family}" for family in sorted(families))
