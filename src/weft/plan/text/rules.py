"""Descriptions of the rules of a plan: which differ only in constants, and which feed each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.algebra.analysis.rule_shapes import shape_of
from weft.algebra.rules import Rule
from weft.algebra.text.network import quoted
from weft.algebra.text.program import to_text
from weft.algebra.text.rules import rule_lines
from weft.errors import plural
from weft.tree import Node


def shapes_of(rules: Sequence[Rule]) -> list[tuple[Rule, list[int]]]:
    """The different shapes, and the rules of each by number."""
    groups: dict[str, tuple[Rule, list[int]]] = {}
    for number, rule in enumerate(rules):
        shape, _ = shape_of(rule)
        groups.setdefault(repr(shape), (rule, []))[1].append(number)
    return list(groups.values())


def rule_set_lines(rules: Sequence[Rule]) -> Iterator[str]:
    """Rules of a plan for people: shape by shape, with one rule of each in full; and who feeds whom."""
    shapes = shapes_of(rules)
    yield f"{plural(len(rules), 'rule')} of {plural(len(shapes), 'shape')}, from one table"
    for number, (example, members) in enumerate(shapes):
        names = sorted({rules[member].name for member in members})
        more = f" … ({len(names)} types)" if len(names) > 4 else ""
        yield f"  shape {number}: {len(members)} × {', '.join(names[:4])}{more}"
        yield from (f"    {line}" for line in rule_lines(example, _show))
    for maker, reader in feeds(rules):
        yield f"  {maker} feeds {reader}"


def feeds(rules: Sequence[Rule]) -> list[tuple[str, str]]:
    """Which defined types are looked at by the rules of which type."""
    defined = {rule.name for rule in rules}
    return sorted({(type_, rule.name) for rule in rules for type_ in rule.types if type_ in defined})


def rule_set_dot(rules: Sequence[Rule]) -> Iterator[str]:
    """Types as nodes of a drawing, with an edge from each type to those made of it; terminators are bold."""
    defined = dict.fromkeys(rule.name for rule in rules)
    for name in dict.fromkeys((*(type_ for rule in rules for type_ in rule.types), *defined)):
        made = sum(rule.name == name for rule in rules)
        label = f"{name} ({made} rules)" if made > 1 else name
        yield f"  {quoted('type ' + name)} [label={quoted(label)}{'' if name in defined else ', shape=ellipse'}]"
    edges = dict.fromkeys(
        (type_, rule.name, type_ == rule.terminator.events.type) for rule in rules for type_ in rule.types
    )
    for source, target, fires in edges:
        style = " [style=bold]" if fires else ""
        yield f"  {quoted('type ' + source)} -> {quoted('type ' + target)}{style}"


def _show(node: Node) -> str:
    return to_text(node).strip()
