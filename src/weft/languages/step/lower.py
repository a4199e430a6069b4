"""From Step syntax to the algebra: every query checked, its pattern turned into operators."""

from __future__ import annotations

from weft.algebra import composites
from weft.algebra.query import Program
from weft.errors import Diagnostic
from weft.languages import syntax as expressions
from weft.languages.bounds import warn_of_no_bound
from weft.languages.ceql.declarations import Schema
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.findings import Findings
from weft.languages.output_fields import output_fields
from weft.languages.step import syntax
from weft.languages.step.conditions import Place, StepConditions
from weft.languages.step.declarations import declared_catalog, inputs_of, outputs_of
from weft.languages.step.negation import Negations, negations_of, own_and_shared
from weft.languages.step.scope import LoweredPattern, Variables, beside, variables_of
from weft.source import SourceText, Span
from weft.tree import Node

LANGUAGE = "step"
_NOTHING = LoweredPattern(composites.CompositeEvent("", ""), frozenset(), {})  # stands for what has been reported


def lower(
    program: syntax.Program,
    source: SourceText,
    *,
    schema: Schema | None = None,
    time_unit: str = "ms",
    defined: Defined = NOTHING_DEFINED,
) -> tuple[Program, tuple[Diagnostic, ...]]:
    """The program in the algebra, with warnings; raises ProgramError with all errors that were found.

    A Step program declares all its types itself, so a schema given beside it says nothing new.
    """
    findings = Findings(source)
    catalog = declared_catalog(program, findings)
    types = {type_.name: type_ for type_ in catalog.types}
    inputs, outputs = inputs_of(program, findings), outputs_of(program, findings)
    queries = []
    for node in program.queries:
        query = _QueryLowering(node, variables_of(node, types, defined, findings), findings).lower()
        queries += [query] if query is not None else []
    warnings = findings.conclude()
    return Program(LANGUAGE, tuple(queries), catalog, source.text, time_unit, inputs, outputs), warnings


def _bound_of(pattern: composites.Composite) -> str:
    """How to bound the time that matches of a pattern take: at its outermost operator."""
    match pattern:
        case composites.Without(inner):
            return _bound_of(inner)
        case composites.CompositeUnion():
            return "say how long a match takes at most, in each branch of the union: A ;[dur < 3600000] B"
        case composites.CompositeRepeat():
            return "an iteration cannot be bounded itself: make it part of a sequence with one: X ;[dur < 3600000] Y"
        case composites.Overlap():
            written = ","
        case composites.CompositeSequence(pick="each"):
            written = ";?"
        case _:
            written = ";"
    return f"say how long a match takes at most, at the outermost operator: {written}[dur < 3600000]"


class _QueryLowering:
    """One query on its way to the algebra."""

    def __init__(self, node: syntax.Query, variables: Variables, findings: Findings) -> None:
        self._node = node
        self._variables = variables
        self._findings = findings
        self._spans: list[tuple[Node, Span]] = []  # of events

    def lower(self) -> composites.CompositeQuery | None:
        """The query in the algebra, None when a variable is used twice: then nothing more can be said."""
        if len(self._variables.leaves) < sum(isinstance(part, syntax.Leaf) for part in self._node.pattern.walk()):
            return None
        whole = self._pattern(self._node.pattern)
        if whole is _NOTHING:
            return None
        warn_of_no_bound(whole.pattern, self._node.name.span, _bound_of(whole.pattern), self._findings)
        fields, spans = self._fields(whole), tuple(self._spans)
        name, everything = self._node.name.text, self._node.projection is None
        return composites.CompositeQuery(name, whole.pattern, fields, spans=spans, all_fields=everything)

    def _fields(self, whole: LoweredPattern) -> tuple[composites.Field, ...]:
        conditions = self._conditions(whole, "projection")
        return tuple(field for _, field in output_fields(self._node.projection or (), conditions, self._findings))

    def _conditions(self, part: LoweredPattern, place: Place, lasting: str | None = None) -> StepConditions:
        return StepConditions(self._variables, part.readable, part.unreadable, place, self._findings, lasting)

    # ------------------------------------------------------------ patterns

    def _pattern(self, node: syntax.Pattern) -> LoweredPattern:
        """The operators of a pattern and what can be read of it; `_NOTHING` after an error of shape."""
        match node:
            case syntax.Leaf():
                return self._leaf(node, node.condition)
            case syntax.Either():
                return self._either(node)
            case syntax.Overlap():
                return self._overlap(node)
            case syntax.Repeat():
                return self._repeat(node)
            case syntax.Follow():
                negations = negations_of(node, self._findings)
                return _NOTHING if negations is None else self._follow(negations)
            case syntax.Negated():
                message = "'!' cannot stand here"
                hint = "it says what must not happen in a sequence: !A ; B (not before), or A ; !B ; C (not between)"
                self._findings.error("misplaced-negation", message, node.span, hint)
        return _NOTHING

    def _leaf(self, node: syntax.Leaf, *conditions: expressions.Expression | None) -> LoweredPattern:
        name = node.variable.text
        alone = LoweredPattern(composites.CompositeEvent(node.type.text, name), frozenset({name}), {})
        where = self._conditions(alone, "event").all_of(*conditions)
        source = composites.CompositeEvent(node.type.text, name, where)
        self._spans.append((source, node.span))
        return alone.with_pattern(source)

    def _either(self, node: syntax.Either) -> LoweredPattern:
        left, right = self._pattern(node.left), self._pattern(node.right)
        if _NOTHING in (left, right):
            return _NOTHING
        union = composites.CompositeUnion(left.pattern, right.pattern)
        return LoweredPattern(union, frozenset(), {**left.hidden("union"), **right.hidden("union")})

    def _overlap(self, node: syntax.Overlap) -> LoweredPattern:
        left, right = self._pattern(node.left), self._pattern(node.right)
        if _NOTHING in (left, right):
            return _NOTHING
        both = beside(composites.Overlap(left.pattern, right.pattern), left, right)
        where = self._conditions(both, "pair").all_of(node.condition)
        return both.with_pattern(composites.Overlap(left.pattern, right.pattern, where))

    def _repeat(self, node: syntax.Repeat) -> LoweredPattern:
        inner = self._pattern(node.pattern)
        if inner is _NOTHING:
            return _NOTHING
        conditions = self._conditions(inner, "iteration")
        where, lengths = conditions.all_of(node.condition), conditions.lengths(node)
        pick: composites.RepeatPick = "each" if node.each else "longest"
        return inner.with_pattern(composites.CompositeRepeat(inner.pattern, pick, where, lengths=lengths))

    def _follow(self, negations: Negations) -> LoweredPattern:
        """`left ; right` without what must not happen before or during it."""
        right = self._pattern(negations.right)
        left = None if negations.left is None else self._pattern(negations.left)
        unwanted = [self._unwanted(node.pattern) for node in negations.unwanted]
        if _NOTHING in (right, left, *unwanted):
            return _NOTHING
        found = right if left is None else self._joined(left, right, negations)
        for node, other in zip(negations.unwanted, unwanted, strict=True):
            found = self._without(found, other, node, "before" if left is None else "during")
        return found

    def _unwanted(self, node: syntax.Pattern) -> LoweredPattern:
        """What must not happen; what the conditions on an event say of other events is left to `_without`."""
        return self._leaf(node, *own_and_shared(node)[0]) if isinstance(node, syntax.Leaf) else self._pattern(node)

    def _without(
        self, found: LoweredPattern, other: LoweredPattern, node: syntax.Negated, when: composites.When
    ) -> LoweredPattern:
        both = beside(found.pattern, found, other)
        where = self._conditions(both, "pair").all_of(node.condition)
        if isinstance(node.pattern, syntax.Leaf):
            conditions = self._conditions(both, "event", lasting=node.pattern.variable.text)
            where += conditions.all_of(*own_and_shared(node.pattern)[1])
        pattern = composites.Without(found.pattern, other.pattern, when, where)
        return LoweredPattern(pattern, found.readable, {**found.unreadable, **other.hidden("negation")})

    def _joined(self, left: LoweredPattern, right: LoweredPattern, negations: Negations) -> LoweredPattern:
        pick: composites.SequencePick = "each" if negations.each else "first"
        both = beside(composites.CompositeSequence(left.pattern, right.pattern, pick), left, right)
        unreadable = dict(both.unreadable)
        for negated in negations.unwanted:
            names = [leaf.variable.text for leaf in negated.walk() if isinstance(leaf, syntax.Leaf)]
            unreadable |= dict.fromkeys(names, "negation")
        conditions = self._conditions(LoweredPattern(both.pattern, both.readable, unreadable), "pair")
        where = conditions.all_of(*negations.conditions)
        return both.with_pattern(composites.CompositeSequence(left.pattern, right.pattern, pick, where))
