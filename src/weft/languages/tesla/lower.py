"""From TESLA syntax to the algebra: every rule checked on its own, then all of them together."""

from __future__ import annotations

from collections.abc import Sequence

from weft.algebra.analysis.rule_graph import behind, numbered
from weft.algebra.query import AnyQuery, Program
from weft.algebra.rules import Rule
from weft.errors import Diagnostic
from weft.languages.ceql.declarations import Schema, given_catalog
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.findings import Findings
from weft.languages.tesla import syntax
from weft.languages.tesla.check import check_cycles
from weft.languages.tesla.rule import RuleLowering
from weft.languages.tesla.scope import TeslaTypes, scope_of
from weft.source import SourceText

LANGUAGE = "tesla"


def lower(
    program: syntax.Program,
    source: SourceText,
    *,
    schema: Schema | None = None,
    time_unit: str = "ms",
    running: Sequence[AnyQuery] = (),
    defined: Defined = NOTHING_DEFINED,
) -> tuple[Program, tuple[Diagnostic, ...]]:
    """The program in the algebra, with warnings; raises ProgramError with all errors that were found.

    `running` are queries that it will be deployed beside: their rules may close cycles.
    """
    findings = Findings(source)
    others = _behind(program, running)
    types = TeslaTypes(program.rules, given_catalog(schema), defined)
    if not program.rules:
        hint = "a rule looks like this: define Fire(area: string) from Smoke(value > 3) where area = Smoke.area"
        findings.error("no-rule", "there is no rule in this text", program.span, hint)
    _check_labels(program, findings)
    _check_numbers(program, findings)
    lowered: list[tuple[syntax.Rule, Rule]] = []
    for node in program.rules:
        _check_types(node, types, findings)
        scope = scope_of(node, findings)
        rule = RuleLowering(node, scope, types, time_unit, findings).lower() if scope is not None else None
        if rule is not None:
            lowered.append((node, rule))
    check_cycles(lowered, findings, others)
    warnings = findings.conclude()
    rules = numbered([rule for _, rule in lowered])
    return Program(LANGUAGE, tuple(rules), text=source.text, time_unit=time_unit), warnings


def _behind(program: syntax.Program, running: Sequence[AnyQuery]) -> list[Rule]:
    """The running rules that define what the program speaks of, and what these are made of."""
    if not running:
        return []
    named = (node.type.text for node in program.walk() if isinstance(node, syntax.Predicate | syntax.Aggregate))
    types = (*named, *(rule.type.text for rule in program.rules))
    return behind(types, (query for query in running if isinstance(query, Rule)))


def _check_types(node: syntax.Rule, types: TeslaTypes, findings: Findings) -> None:
    """Report types that do not exist, in predicates and aggregates alike."""
    assigned = frozenset(number.type.text for number in node.assigned) or None
    for part in (*node.clauses, *node.assignments):
        for found in part.walk():
            if isinstance(found, syntax.Predicate | syntax.Aggregate):
                types.require(found.type, assigned, findings)
    if assigned is not None:
        types.require(node.type, assigned, findings)


def _check_labels(program: syntax.Program, findings: Findings) -> None:
    seen: dict[str, syntax.Rule] = {}
    for node in program.rules:
        if node.label is None:
            continue
        if node.label.text in seen:
            line = findings.source.location(seen[node.label.text].span.start)[0]
            message = f"a second rule {node.label.text!r} (the first is in line {line})"
            findings.error("duplicate-rule", message, node.label.span, "rename one of the two, or leave the name out")
        seen.setdefault(node.label.text, node)


def _check_numbers(program: syntax.Program, findings: Findings) -> None:
    """T-Rex goes by the numbers of types: they must say the same as the names."""
    numbers: dict[str, int | float] = {}
    names: dict[int | float, str] = {}
    for assigned in (assigned for node in program.rules for assigned in node.assigned):
        type_, number = assigned.type.text, assigned.number
        if not isinstance(number, int):
            findings.error("assigned-twice", f"{number} is no number of a type", assigned.span, "use a whole number")
        if numbers.setdefault(type_, number) != number:
            message = f"{type_!r} has the number {numbers[type_]} already"
            findings.error("assigned-twice", message, assigned.span, "give a type the same number in all rules")
        if names.setdefault(number, type_) != type_:
            message = f"{number} is the number of {names[number]!r} already"
            findings.error("assigned-twice", message, assigned.span, "give each type a unique number")
