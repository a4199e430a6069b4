"""Conditions and derived values of a pattern, lowered and checked."""

from __future__ import annotations

from weft.algebra import predicates as algebra
from weft.algebra.functions import UserFunction, declared
from weft.algebra.terms import conjuncts
from weft.errors import did_you_mean
from weft.languages import syntax as expressions
from weft.languages.conditions import BOOLEAN, NUMBER, TEXT, UNKNOWN, ConditionLowering, Families, Typed, say
from weft.languages.epn import syntax
from weft.languages.epn.functions import FUNCTIONS, unfolded
from weft.languages.epn.scope import EpnScope
from weft.languages.findings import Findings
from weft.languages.syntax import Name
from weft.source import Span

_FAMILIES = {"number": NUMBER, "integer": NUMBER, "text": TEXT, "boolean": BOOLEAN}


class EpnConditions(ConditionLowering):
    """Lower the conditions of a `where` clause, which may refer to all participants.

    Functions of several are tested on whole sets, where every set is found.
    """

    def __init__(self, scope: EpnScope, findings: Findings, *, finds_all: bool = False) -> None:
        super().__init__(findings)
        self._scope = scope
        self._finds_all = finds_all  # sets can be tested when they are found: none is chosen among others

    def conditions(self, node: expressions.Expression | None) -> tuple[algebra.Predicate, ...]:
        """What must hold, one by one; a part that is about no event is reported."""
        found = []
        for part in expressions.parts_of(node, expressions.And) if node is not None else ():
            if any(isinstance(leaf, expressions.Field | expressions.Bare) for leaf in part.walk()):
                found.append(self.condition(part))
            else:
                hint = "compare an attribute, as in b.price > 3"
                self.findings.error("no-variable", "this condition is about no event", part.span, hint)
        return conjuncts(found)

    def field(self, node: expressions.Field) -> Typed:
        """An attribute of a participant."""
        if not self.is_readable(node.variable):
            return UNKNOWN
        families = self._scope.families(node.variable.text, node.attribute, self.findings)
        return Typed(algebra.Attribute(node.attribute.text, node.variable.text), families)

    def comparison(self, node: expressions.Comparison) -> algebra.Predicate:
        """`left operator right`, where a function of several events stands alone on one side."""
        found = super().comparison(node)
        assert isinstance(found, algebra.Comparison)
        plain = unfolded(found)
        self._check_calls(plain, node.span)
        return plain

    def flag(self, node: expressions.Expression) -> algebra.Predicate:
        """A boolean value as a condition, which reads one event."""
        found = super().flag(node)
        self._check_calls(found, node.span)
        return found

    def _check_calls(self, condition: algebra.Predicate, span: Span) -> None:
        """Report functions of several events that are left in a condition."""
        for call in [] if self._finds_all else algebra.calls_of_several(condition)[:1]:
            hint = (
                "sequence and all with the policies cardinality unrestricted, repeated every and consumption reuse "
                f"can; else derive value = {_spelling(call)}(…), and test it in another pattern: any(P p[p.value > 3])"
            )
            message = f"{_spelling(call)} reads several events, which is not possible with these policies"
            self.findings.error("function-of-several", message, span, hint)

    def own_value(self, node: expressions.Expression) -> Typed | None:
        """A function of values."""
        if not isinstance(node, syntax.Call):
            return None
        name = node.function
        signature = FUNCTIONS.get(name.text.lower())
        if signature is None and name.text in declared():
            return self._user_call(node, declared()[name.text])
        if signature is None:
            near = did_you_mean(name.text, declared()) or ""
            hint = near if near.startswith("did") else did_you_mean(name.text.lower(), [*FUNCTIONS, *declared()])
            self.findings.error("unknown-function", f"there is no function {name.text!r}", name.span, hint)
            return UNKNOWN
        count = len(node.operands)
        if count < signature.least or (signature.most is not None and count > signature.most):
            wanted = "one value" if signature.most == 1 else f"{signature.least} values or more"
            message = f"{name.text} takes {wanted}, not {count}"
            self.findings.error(
                "wrong-operands", message, node.span, f"write {name.text}(a.x{', b.x' * (signature.least - 1)})"
            )
            return UNKNOWN
        needed = f"{name.text} needs {say(signature.takes)}s" if signature.takes else ""
        operands = [self.expected(operand, signature.takes, needed) for operand in node.operands]
        gives = signature.gives
        if gives is None and all(operand.families is not None for operand in operands):
            gives = frozenset().union(*(operand.families or () for operand in operands))
        values = tuple(operand.value for operand in operands)
        return Typed(algebra.Call(signature.function, values, self._scope.tick), gives)

    def _user_call(self, node: syntax.Call, function: UserFunction) -> Typed:
        """A function that the user declared, with operands of its kinds."""
        count, wanted = len(node.operands), len(function.takes)
        if count != wanted:
            needed = "one value" if wanted == 1 else f"{wanted} values"
            hint = f"write {function}({', '.join(f'a.{kind}' for kind in function.takes)})"
            self.findings.error("wrong-operands", f"{function} takes {needed}, not {count}", node.span, hint)
            return UNKNOWN
        operands = [
            self.expected(operand, _FAMILIES[kind], f"{function} needs a {kind} here")
            for operand, kind in zip(node.operands, function.takes, strict=True)
        ]
        return Typed(algebra.Call(function, tuple(operand.value for operand in operands)), _FAMILIES[function.gives])

    def is_readable(self, variable: Name) -> bool:
        """Whether a variable can be read here; reports one that cannot."""
        known = self._scope.participants
        if variable.text in known:
            return True
        own = [name for name, participant in known.items() if participant.type.text == variable.text]
        hint = f"its variable here is {own[0]!r}" if own else did_you_mean(variable.text, known)
        self.findings.error("unknown-variable", f"nothing is called {variable.text!r} here", variable.span, hint)
        return False


class ParticipantFilters(EpnConditions):
    """Lowers the filter of a participant: it may speak of that one only."""

    def __init__(self, scope: EpnScope, variable: str, findings: Findings) -> None:
        super().__init__(scope, findings)
        self._variable = variable

    def is_readable(self, variable: Name) -> bool:
        """Only the participant's own variable."""
        if not super().is_readable(variable):
            return False
        if variable.text == self._variable:
            return True
        message = f"the filter of {self._variable!r} speaks of {variable.text!r}"
        hint = "conditions on several participants stand in the where clause"
        self.findings.error("foreign-variable", message, variable.span, hint)
        return False


class Derivations(EpnConditions):
    """Lowers derived values: they may also read what the partitions are divided by, as a name alone."""

    def __init__(self, scope: EpnScope, is_absence: bool, findings: Findings) -> None:
        super().__init__(scope, findings)
        self._is_absence = is_absence

    def value(self, node: expressions.Expression) -> Typed:
        """The value of an expression."""
        if isinstance(node, expressions.Bare) and node.name.text in self._scope.by:
            return Typed(algebra.Attribute(node.name.text), self._key_families(node.name.text))
        return super().value(node)

    def is_readable(self, variable: Name) -> bool:
        """A participant of a pattern that is no absence."""
        if not super().is_readable(variable):
            return False
        if not self._is_absence:
            return True
        message = f"an absence has no events, so {variable.text!r} has nothing to read"
        hint = "derive constants, or what the context is divided by: context fixed 10 by machine derive id = machine"
        self.findings.error("nothing-to-read", message, variable.span, hint)
        return False

    def _key_families(self, attribute: str) -> Families:
        quiet = Findings(self.findings.source)  # what is wrong with the key is reported at the context
        found: set[str] = set()
        for variable in self._scope.participants:
            families = self._scope.families(variable, self._scope.by[attribute], quiet)
            if families is None:
                return None
            found |= families
        return frozenset(found)


def _spelling(call: algebra.Call) -> str:
    if isinstance(call.function, UserFunction):
        return call.function.name
    return next(name for name, signature in FUNCTIONS.items() if signature.function == call.function)
