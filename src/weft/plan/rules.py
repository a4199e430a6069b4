"""What rules read, which of them feed each other, which differ in constants only, and how their work can be split."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from weft.algebra.predicates import Attribute
from weft.algebra.query import Program
from weft.algebra.rule_shapes import shape_of
from weft.algebra.rule_text import rule_lines
from weft.algebra.rules import Absence, Events, Rule, Summary
from weft.algebra.text import to_text
from weft.plan.operators import Lanes
from weft.tree import Node


def rules_of(program: Program) -> list[Rule]:
    """The rules of a program, in order."""
    return [query for query in program.queries if isinstance(query, Rule)]


def rule_columns(rule: Rule) -> set[str]:
    """The attributes that a rule reads."""
    names = {node.name for node in rule.walk() if isinstance(node, Attribute)}
    return names | {node.attribute for node in rule.walk() if isinstance(node, Summary) and node.attribute is not None}


# ---------------------------------------------------------------- lanes


def rule_lanes(program: Program) -> list[Lanes]:
    """The rules by the key that they can be split by; rules that feed each other stay together."""
    numbers = [at for at, query in enumerate(program.queries) if isinstance(query, Rule)]
    rules = rules_of(program)
    groups: dict[tuple[str | None, str], list[int]] = {}
    for group in connected(rules):
        found = _lane_key([rules[at] for at in group])
        groups.setdefault(found, []).extend(numbers[at] for at in group)
    return [
        Lanes(() if name is None else ((name,),), tuple(sorted(own)), reason) for (name, reason), own in groups.items()
    ]


def connected(rules: Sequence[Rule]) -> list[list[int]]:
    """The rules that feed each other, directly or not, by number."""
    parents = list(range(len(rules)))

    def root(at: int) -> int:
        while parents[at] != at:
            parents[at] = parents[parents[at]]
            at = parents[at]
        return at

    makers: dict[str, list[int]] = {}
    for at, rule in enumerate(rules):
        makers.setdefault(rule.name, []).append(at)
    for at, rule in enumerate(rules):
        for maker in (maker for type_ in rule.types for maker in makers.get(type_, ())):
            parents[root(maker)] = root(at)
    groups: dict[int, list[int]] = {}
    for at in range(len(rules)):
        groups.setdefault(root(at), []).append(at)
    return list(groups.values())


def _lane_key(rules: Sequence[Rule]) -> tuple[str | None, str]:
    """An attribute that all events of a firing have in common, and those that decide about it; and why."""
    read = {type_ for rule in rules for type_ in rule.types}
    names = sorted(set.intersection(*(rule_columns(rule) for rule in rules)))
    for name in names:
        if all(_is_tied(rule, name) and (rule.name not in read or _hands_on(rule, name)) for rule in rules):
            return name, f"by key [{name}], which is equal in all events of a rule"
    if len(rules) > 1:
        return None, "one lane: rules that feed each other, and no equality ties all their events"
    return None, "one lane: no equality ties all events of a rule"


def _is_tied(rule: Rule, name: str) -> bool:
    """Whether every event a rule looks at must equal the terminator in the attribute, and there is one it binds.

    A terminator alone may lack the attribute and fire all the same.
    """
    tied: set[str | None] = {rule.terminator.variable}
    for step in rule.lookbacks:
        if not _equates(step.events, name, tied):
            return False
        tied.add(step.variable)
    others = (node.events for node in rule.walk() if isinstance(node, Absence | Summary))
    return bool(rule.lookbacks) and all(_equates(events, name, tied) for events in others)


def _equates(events: Events, name: str, tied: Container[str | None]) -> bool:
    return any(own == name == bound.name and bound.variable in tied for own, bound in events.equalities)


def _hands_on(rule: Rule, name: str) -> bool:
    """Whether the defined event has the attribute of the events it is made of."""
    return any(field.name == name and field.value in _copies(rule, name) for field in rule.fields)


def _copies(rule: Rule, name: str) -> list[Attribute]:
    return [Attribute(name, variable) for variable in rule.variables]


# ---------------------------------------------------------------- for people


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
    count = "1 rule" if len(rules) == 1 else f"{len(rules)} rules"
    yield f"{count} of {len(shapes)} shape{'s' if len(shapes) > 1 else ''}, from one table"
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
        yield f'  "type {_escaped(name)}" [label="{_escaped(label)}"{"" if name in defined else ", shape=ellipse"}]'
    edges = dict.fromkeys(
        (type_, rule.name, type_ == rule.terminator.events.type) for rule in rules for type_ in rule.types
    )
    for source, target, fires in edges:
        style = " [style=bold]" if fires else ""
        yield f'  "type {_escaped(source)}" -> "type {_escaped(target)}"{style}'


def _show(node: Node) -> str:
    return to_text(node).strip()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
