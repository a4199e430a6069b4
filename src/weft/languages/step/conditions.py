"""Step's conditions: those in brackets behind an event or an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal as OneOf

from weft.algebra import predicates as algebra
from weft.algebra import terms
from weft.algebra.composites import Lengths
from weft.languages import syntax as expressions
from weft.languages.conditions import BOOLEAN, NUMBER, UNKNOWN, ConditionLowering, Typed
from weft.languages.counts import bounds_of
from weft.languages.findings import Findings
from weft.languages.limits import MOST_LENGTH, MOST_LENGTH_OF_ANY
from weft.languages.step import syntax
from weft.languages.step.scope import Reason, Variables

Place = OneOf["event", "pair", "iteration", "projection"]
_CONDITION = expressions.And | expressions.Or | expressions.Not | expressions.Comparison | expressions.Contains
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


class StepConditions(ConditionLowering):
    """Lowers the conditions at one place of a pattern."""

    def __init__(
        self,
        variables: Variables,
        readable: frozenset[str],
        unreadable: Mapping[str, Reason],
        place: Place,
        findings: Findings,
        lasting: str | None = None,
    ) -> None:
        """`lasting` is the variable that `dur` is the duration of, None for all of what is at this place."""
        super().__init__(findings)
        self._variables = variables
        self._readable = readable
        self._unreadable = unreadable
        self._place = place
        self._lasting = lasting

    def all_of(self, *nodes: expressions.Expression | None) -> tuple[algebra.Predicate, ...]:
        """The top-level conjuncts, those on the length excepted."""
        parts = [part for node in nodes for part in _conjuncts(node)]
        return tuple(self.condition(part) for part in parts if not self._is_bound(part))

    def lengths(self, node: syntax.Repeat) -> Lengths:
        """What the count and the top-level conjuncts of an iteration say on the length of a run."""
        count, most_told = node.count, MOST_LENGTH_OF_ANY if node.each else MOST_LENGTH
        low, high = (1, None) if count is None else bounds_of(count, self.findings)
        excluded: set[int] = set()
        for part in _conjuncts(node.condition):
            bound = _length_bound(part) if self._is_bound(part) else None
            if bound is None:
                continue
            operator, length = bound
            least, most = _interval(operator, length)
            low = max(low, least)
            high = most if high is None else high if most is None else min(high, most)
            if operator == "<>":
                excluded.add(length)
        if max(low, high or 0, *excluded) > most_told:
            message = f"greater lengths than {most_told:,}, which is the limit, are not told apart here"
            self.findings.error("too-large", message, node.span, "compare len with a smaller number, or use + for +?")
            return Lengths()
        within = frozenset(length for length in excluded if length >= low and (high is None or length <= high))
        return Lengths(low, high, within)

    # ------------------------------------------------------------ values

    def field(self, node: expressions.Field) -> Typed:
        """A field of an event that this place can see."""
        if node.variable.text not in self._readable:
            projected = self._place == "projection"
            self._variables.report_unreadable(node.variable, self._unreadable, projected, self.findings)
            return UNKNOWN
        families = self._variables.families(node, self.findings)
        return Typed(algebra.Attribute(node.attribute.text, node.variable.text), families)

    def own_value(self, node: expressions.Expression) -> Typed | None:
        """prev, dur and len."""
        match node:
            case syntax.Previous():
                return self._previous(node)
            case syntax.Duration():
                return Typed(terms.Elapsed(self._lasting, self._lasting), NUMBER)
            case syntax.Length():
                self._refuse_length(node)
                return UNKNOWN
        return None

    def _previous(self, node: syntax.Previous) -> Typed:
        if self._place != "iteration":
            message = "prev(…) is the member before, so it can stand in the condition of an iteration only"
            self.findings.error("misplaced-prev", message, node.span, "iterations are written + […] and +? […]")
            return UNKNOWN
        if not isinstance(node.argument, expressions.Field):
            hint = "write prev(A.price), and calculate outside"
            self.findings.error("not-a-field", "prev takes a field", node.argument.span, hint)
            return UNKNOWN
        value, families = self.field(node.argument)
        return Typed(terms.Previous(value), families) if isinstance(value, algebra.Attribute) else UNKNOWN

    # ------------------------------------------------------------ lengths

    def _is_bound(self, node: expressions.Expression) -> bool:
        """Whether a top-level conjunct bounds the length, as it may in an iteration."""
        return self._place == "iteration" and _length_bound(node) is not None

    def _refuse_length(self, node: syntax.Length) -> None:
        if self._place != "iteration":
            message = "len is the length of a run, so it can stand in the condition of an iteration only"
            self.findings.error("misplaced-len", message, node.span, "iterations are written + […] and +? […]")
        else:
            message = "len is compared with a whole number, as a condition of its own"
            self.findings.error("misplaced-len", message, node.span, "write … && len > 2, not under || or !")

    # ------------------------------------------------------------ conditions that are compared

    def comparison(self, node: expressions.Comparison) -> algebra.Predicate:
        """A comparison of values, or `=` and `!=` between conditions."""
        sides = (node.left, node.right)
        if not any(isinstance(side, _CONDITION) for side in sides):
            return super().comparison(node)
        if node.operator not in ("=", "<>"):
            message = "conditions are compared with = and != only"
            hint = "'!' binds tightest: write !(A.x > 3)" if isinstance(node.left, expressions.Not) else None
            self.findings.error("type-mismatch", message, node.span, hint)
            return algebra.Always()
        (left_true, left_false), (right_true, right_false) = (self._truths(side) for side in sides)
        if node.operator == "<>":
            right_true, right_false = right_false, right_true
        return algebra.Or((algebra.And((left_true, right_true)), algebra.And((left_false, right_false))))

    def _truths(self, node: expressions.Expression) -> tuple[algebra.Predicate, algebra.Predicate]:
        """When a side of a comparison is true, and when it is false: neither, for a field that is missing."""
        if isinstance(node, _CONDITION):
            condition = self.condition(node)
            return condition, algebra.Not(condition)
        value = self.expected(node, BOOLEAN, "a condition is compared with a boolean").value
        true, false = (algebra.Comparison("=", value, algebra.Literal(truth)) for truth in (True, False))
        return true, false


def _conjuncts(node: expressions.Expression | None) -> list[expressions.Expression]:
    return [] if node is None else list(expressions.parts_of(node, expressions.And))


def _length_bound(node: expressions.Expression) -> tuple[str, int] | None:
    """`len operator whole number`, either way round."""
    match node:
        case expressions.Comparison(operator, syntax.Length(), right):
            number = _whole(right)
        case expressions.Comparison(operator, left, syntax.Length()):
            operator, number = _TURNED[operator], _whole(left)  # type: ignore[assignment]
        case _:
            return None
    return None if number is None else (operator, number)


def _whole(node: expressions.Expression) -> int | None:
    match node:
        case expressions.Literal(int(value)) if not isinstance(value, bool):
            return value
        case expressions.Negative(operand):
            inner = _whole(operand)
            return None if inner is None else -inner
    return None


def _interval(operator: str, length: int) -> tuple[int, int | None]:
    """The least and greatest length for which the comparison holds."""
    return {
        "<": (1, length - 1),
        "<=": (1, length),
        ">": (length + 1, None),
        ">=": (length, None),
        "=": (length, length),
        "<>": (1, None),
    }[operator]
