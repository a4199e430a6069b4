"""Values and predicates of CEQL, lowered to the algebra and checked against the declared kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from weft.algebra import predicates as algebra
from weft.algebra.numbers import negated
from weft.errors import did_you_mean
from weft.languages.ceql import syntax
from weft.languages.ceql.scope import CeqlScope, Occurrence
from weft.languages.ceql.timestamps import ticks_at
from weft.languages.conditions import BOOLEAN, FAMILY_OF, NUMBER, TEXT, Families, Typed, say
from weft.languages.durations import TICKS
from weft.languages.findings import Findings
from weft.languages.limits import MOST_CHARACTERS
from weft.languages.syntax import parts_of
from weft.regexes import RegexError, finder, hint

MONOTONE = ("INCREASING", "DECREASING")
# What functions take and give; the parts of a date are numbers of numbers.
_NUMBERS, _TEXTS = frozenset({"number"}), frozenset({"text"})
FUNCTIONS = {"LOWER": (_TEXTS, _TEXTS), "UPPER": (_TEXTS, _TEXTS), "LENGTH": (_TEXTS, _NUMBERS)}


@dataclass(frozen=True)
class AttributeOwner:
    """The variable whose attributes are read: the one before the bracket.

    `label` goes onto the attributes in the algebra; it is None where the predicate is about the current event.
    """

    name: str
    events: frozenset[Occurrence]
    label: str | None = None
    known: bool = True  # False once the variable itself has been reported


@dataclass(frozen=True)
class Outside:
    """Outside any brackets, attributes are read through variables: `a[x] > b[x]`."""

    owner_of: Callable[[syntax.Variable], AttributeOwner]
    example: str = "x"  # a variable that could have been meant


Place = AttributeOwner | Outside  # where an expression stands


class Expressions:
    """Lowers expressions of one query."""

    def __init__(self, scope: CeqlScope, time_unit: str, findings: Findings) -> None:
        self._scope = scope
        self._time_unit = time_unit
        self._findings = findings

    # ------------------------------------------------------------ predicates

    def predicate(self, node: syntax.Expression, owner: AttributeOwner) -> algebra.Predicate:
        """The predicate inside a variable's brackets."""
        match node:
            case syntax.And():
                return algebra.And(tuple(self.predicate(part, owner) for part in parts_of(node, syntax.And)))
            case syntax.Or():
                return algebra.Or(tuple(self.predicate(part, owner) for part in parts_of(node, syntax.Or)))
            case syntax.Not(operand):
                return algebra.Not(self.predicate(operand, owner))
            case syntax.Literal(True):
                return algebra.Always()
            case syntax.Literal(False):
                return algebra.Not(algebra.Always())
            case syntax.Attribute():
                return self._flag(node, owner)
            case syntax.Comparison(operator, left, right):
                return self.comparison(operator, self.value(left, owner), self.value(right, owner), node)
            case syntax.Like() | syntax.In() | syntax.InRange() | syntax.IsNull():
                return self.test(node, owner)
            case syntax.Of() | syntax.Call():
                self._refuse_nested(node, owner)
            case _:
                self.value(node, owner)
                self._refuse_value(node)
        return algebra.Always()

    def test(self, node: syntax.Like | syntax.In | syntax.InRange | syntax.IsNull, place: Place) -> algebra.Predicate:
        """LIKE, MATCHES, IN, IN RANGE, BETWEEN and IS NULL."""
        operand = self.value(node.operand, place)
        found: algebra.Predicate
        match node:
            case syntax.Like():
                found = self._like(node, operand)
            case syntax.In():
                found = self._in(node, operand)
            case syntax.InRange():
                found = algebra.And(self.range_bounds(node, operand, place))
            case syntax.IsNull():
                found = algebra.IsNull(operand.value)
        return algebra.Not(found) if node.negated else found

    def range_bounds(
        self, node: syntax.InRange, operand: Typed, place: Place
    ) -> tuple[algebra.Comparison, algebra.Comparison]:
        """Return the two comparisons that IN RANGE is short for."""
        low = self.comparison(">=", operand, self.value(node.low, place), node)
        high = self.comparison("<=", operand, self.value(node.high, place), node)
        return low, high

    def comparison(self, operator: str, left: Typed, right: Typed, node: syntax.Expression) -> algebra.Comparison:
        """`left operator right`, whose sides must be of kinds that compare."""
        if left.families is not None and right.families is not None and not left.families & right.families:
            message = f"{say(left.families)} never compares with {say(right.families)}"
            self._findings.error("type-mismatch", message, node.span, _comparison_hint(left, right))
        return algebra.Comparison(cast(algebra.ComparisonOperator, operator), left.value, right.value)

    def _like(self, node: syntax.Like, operand: Typed) -> algebra.Predicate:
        self._expect(operand, TEXT, node.operand, f"{node.operator} needs a text")
        if len(node.pattern) > MOST_CHARACTERS:
            message = f"this pattern has {len(node.pattern):,} characters; {MOST_CHARACTERS:,} is the limit"
            self._findings.error("too-large", message, node.pattern_span, "use several conditions, joined by OR")
            return algebra.Like(operand.value, "")
        if node.operator == "LIKE":
            return algebra.Like(operand.value, node.pattern)
        try:
            finder(node.pattern)
        except RegexError as fault:
            message = f"not a regular expression: {fault}"
            self._findings.error("bad-regex", message, node.pattern_span, hint(node.pattern))
        return algebra.RegexMatch(operand.value, node.pattern)

    def _in(self, node: syntax.In, operand: Typed) -> algebra.Predicate:
        if not node.values:
            self._findings.error("empty-in", "IN {} is never true", node.span, "list the values: IN {1, 2}")
        for literal in node.values:
            value = Typed(algebra.Literal(literal.value), FAMILY_OF[type(literal.value)])
            if operand.families is not None and value.families is not None and not operand.families & value.families:
                message = f"{say(operand.families)} is never {literal.value!r}"
                self._findings.error("type-mismatch", message, literal.span, _comparison_hint(operand, value))
                break
        return algebra.In(operand.value, tuple(literal.value for literal in node.values))

    def _flag(self, node: syntax.Attribute, owner: AttributeOwner) -> algebra.Predicate:
        flag = self.value(node, owner)
        needed = f"{node.name.text!r} alone must be a boolean"
        self._expect(flag, BOOLEAN, node, needed, f"compare it with a value: {node.name.text} = …")
        return algebra.Comparison("=", flag.value, algebra.Literal(True))

    # ------------------------------------------------------------ values

    def value(self, node: syntax.Expression, place: Place) -> Typed:
        """The value of an expression."""
        match node:
            case syntax.Literal(constant):
                return Typed(algebra.Literal(constant), FAMILY_OF[type(constant)])
            case syntax.Attribute(name):
                return self._attribute(name, place)
            case syntax.Negative(syntax.Literal(number)) if not isinstance(number, bool | str):
                return Typed(algebra.Literal(negated(number)), NUMBER)
            case syntax.Negative(operand):
                return Typed(algebra.Negative(self._number(operand, place)), NUMBER)
            case syntax.Arithmetic(operator, left, right):
                sides = self._number(left, place), self._number(right, place)
                return Typed(algebra.Arithmetic(operator, *sides), NUMBER)
            case syntax.Function():
                return self._function(node, place)
            case syntax.Timestamp(text):
                return Typed(algebra.Literal(ticks_at(text, self._time_unit, node.span, self._findings)), NUMBER)
            case syntax.Of(more=(extra, *_)):
                hint = "write one attribute, or join conditions with AND"
                self._findings.error("not-a-condition", "only a select list has several attributes", extra.span, hint)
            case syntax.Of(variable, body) if isinstance(place, Outside):
                return self.value(body, place.owner_of(variable))
            case syntax.Call() if isinstance(place, Outside):
                return self._aggregate(node, place.owner_of(node.variable))
            case syntax.Of() | syntax.Call():
                self._refuse_nested(node, place)
            case _:
                hint = "compare values, and join conditions with AND, OR and NOT"
                message = "a condition stands where a value is needed"
                self._findings.error("not-a-value", message, node.span, hint)
        return Typed(algebra.Literal(0), None)

    def _function(self, node: syntax.Function, place: Place) -> Typed:
        function = cast(algebra.Function, node.function)
        operands = [self.value(operand, place) for operand in node.operands]
        tick = TICKS[self._time_unit]
        call = algebra.Call(function, tuple(operand.value for operand in operands), tick)
        if function == "COALESCE":
            known = [operand.families for operand in operands if operand.families is not None]
            return Typed(call, frozenset().union(*known) if len(known) == len(operands) else None)
        if len(operands) != 1:
            message = f"{function} takes one value, not {len(operands)}"
            self._findings.error("wrong-operands", message, node.span, f"write {function}(attribute)")
        takes, gives = FUNCTIONS.get(function, (_NUMBERS, _NUMBERS))
        self._expect(operands[0], takes, node.operands[0], f"{function} needs {say(takes)}")
        return Typed(call, gives)

    def _attribute(self, name: syntax.Name, place: Place) -> Typed:
        if isinstance(place, AttributeOwner):
            return Typed(algebra.Attribute(name.text, place.label), self.families_of(name, place))
        message = f"{name.text!r} stands outside any brackets: of which variable is it?"
        hint = f"write {place.example}[{name.text}] for an attribute of {place.example}, '{name.text}' for a text"
        variable, dot, attribute = name.text.partition(".")
        if dot:
            message, hint = "attributes are not written with a dot", f"write {variable}[{attribute}]"
        self._findings.error("attribute-without-variable", message, name.span, hint)
        return Typed(algebra.Literal(0), None)

    def families_of(self, name: syntax.Name, owner: AttributeOwner) -> Families:
        """What an attribute of a variable can be; reports one that no event of the variable has."""
        kinds = self._scope.kinds(owner.events, name.text) if owner.known else None
        if kinds is None:
            return None
        if not kinds:
            types = sorted({type_ for _, type_ in owner.events})
            which = f"event type {types[0]!r}" if types == [owner.name] else f"{owner.name!r} ({', '.join(types)})"
            message = f"{which} has no attribute {name.text!r}"
            hint = did_you_mean(name.text, self._scope.attributes(owner.events)) or "it is declared without attributes"
            self._findings.error("unknown-attribute", message, name.span, hint)
            return None
        return frozenset(kind.family for kind in kinds)

    def _aggregate(self, node: syntax.Call, owner: AttributeOwner) -> Typed:
        if node.function in MONOTONE:
            hint = f"use it as a filter of its own: … AND {node.function}(x[attribute])"
            self._findings.error("not-a-value", f"{node.function} is a condition, not a value", node.span, hint)
            return Typed(algebra.Literal(0), None)
        function = cast(algebra.AggregateFunction, node.function)
        if node.attribute is None:
            if function != "COUNT":
                message = f"{function} needs an attribute"
                hint = f"write {function}({node.variable.text}[attribute])"
                self._findings.error("aggregate-without-attribute", message, node.span, hint)
            return Typed(algebra.Aggregate(function, algebra.Attribute("*", owner.name)), NUMBER)
        families = self.families_of(node.attribute, owner)
        lowered = algebra.Aggregate(function, algebra.Attribute(node.attribute.text, owner.name))
        if function in ("SUM", "AVG"):
            self._expect(Typed(lowered, families), NUMBER, node, f"{function} needs numbers")
        return Typed(lowered, families if function in ("MIN", "MAX", "FIRST", "LAST") else NUMBER)

    def _number(self, node: syntax.Expression, place: Place) -> algebra.Expression:
        found = self.value(node, place)
        self._expect(found, NUMBER, node, "arithmetic needs numbers")
        return found.value

    # ------------------------------------------------------------ complaints

    def _expect(
        self, found: Typed, wanted: Families, node: syntax.Expression, needed: str, hint: str | None = None
    ) -> None:
        if found.families is not None and wanted is not None and not found.families & wanted:
            self._findings.error("type-mismatch", f"{needed}; this is {say(found.families)}", node.span, hint)

    def _refuse_nested(self, node: syntax.Of | syntax.Call, place: Place) -> None:
        outer = place.name if isinstance(place, AttributeOwner) else "x"
        if isinstance(node, syntax.Call):
            message = f"{node.function} speaks of all events of a variable, so it cannot stand inside brackets"
            hint = f"write it as a filter of its own: … AND {node.function}(…) > …"
        else:
            # Inside brackets, `price > b[` has been read as the event b of a stream called price.
            attribute = node.variable.stream.text if node.variable.stream else "attribute"
            message = f"another variable, {node.variable.name.text!r}, inside the brackets of {outer!r}"
            hint = f"compare the two outside: {outer}[{attribute}] > {node.variable.name.text}[…]"
        self._findings.error("nested-variable", message, node.span, hint)

    def _refuse_value(self, node: syntax.Expression) -> None:
        hint = "compare it with something, as in price > 3"
        self._findings.error("not-a-condition", "a value stands where a condition is needed", node.span, hint)


def _comparison_hint(left: Typed, right: Typed) -> str | None:
    """How the constant of a comparison between different kinds should have been written."""
    other = left if isinstance(right.value, algebra.Literal) else right
    if other is right and not isinstance(left.value, algebra.Literal):
        return None
    if other.families == BOOLEAN:
        return "a boolean is compared with TRUE or FALSE"
    return "a text is written in quotes" if other.families == TEXT else "a number is written without quotes"
