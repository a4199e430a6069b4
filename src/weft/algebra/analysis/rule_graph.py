"""Which rules depend on which: cycles that would fire for ever, and types whose events are made of their own kind."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from weft.algebra.rules import Rule

Edges = Mapping[str, Iterable[str]]


def instant_cycles(rules: Sequence[Rule]) -> list[tuple[str, ...]]:
    """Return the cycles of distance zero: types that are defined at one instant by events of the preceding type.

    A rule's type depends on its terminator's type at distance zero and on all other types at a positive distance.
    A cycle lists its types in order of dependency, without repeating the first one at the end.
    """
    return _cycles({rule.name: [] for rule in rules}, ((rule.name, rule.terminator.events.type) for rule in rules))


def histories_without_end(rules: Sequence[Rule]) -> list[tuple[str, ...]]:
    """Return cycles of any distance: chains of types whose events may depend on earlier events of the same type."""
    bound = ((rule.name, step.events.type) for rule in rules for step in rule.steps)
    return _cycles({rule.name: [] for rule in rules}, bound)


def behind(types: Iterable[str], rules: Iterable[Rule]) -> list[Rule]:
    """The rules that define events of these types, and those that define what these look at, and so on."""
    by_name: dict[str, list[Rule]] = {}
    for rule in rules:
        by_name.setdefault(rule.name, []).append(rule)
    waiting = [type_ for type_ in dict.fromkeys(types) if type_ in by_name]
    found: list[Rule] = []
    while waiting:
        for rule in by_name.pop(waiting.pop(), ()):
            found.append(rule)
            waiting += (type_ for type_ in rule.types if type_ in by_name)
    return found


def numbered(rules: Sequence[Rule], before: Iterable[Rule] = ()) -> list[Rule]:
    """The rules, each with its number among those of its type, after those before."""
    used: dict[str, int] = {}
    for rule in before:
        used[rule.name] = max(used.get(rule.name, 0), rule.number + 1)
    found: list[Rule] = []
    for rule in rules:
        number = used.get(rule.name, 0)
        used[rule.name] = number + 1
        found.append(rule if rule.number == number else replace(rule, number=number))
    return found


def _cycles(defined: dict[str, list[str]], dependencies: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """One shortest cycle for each group of types that depend on each other."""
    for name, other in dependencies:
        if other in defined:
            defined[name].append(other)
    left = _without_dead_ends(defined)
    found: list[tuple[str, ...]] = []
    for name in left:
        cycle = None if any(name in known for known in found) else shortest_cycle(name, left)
        if cycle is not None:
            found.append(cycle)
    return found


def _without_dead_ends(edges: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The graph without the nodes from which no cycle can be reached."""
    users: dict[str, list[str]] = {name: [] for name in edges}
    for name, others in edges.items():
        for other in others:
            users[other].append(name)
    remaining = {name: len(others) for name, others in edges.items()}
    ended = [name for name, count in remaining.items() if not count]
    while ended:
        for user in users[ended.pop()]:
            remaining[user] -= 1
            if not remaining[user]:
                ended.append(user)
    return {name: edges[name] for name, count in remaining.items() if count}


def shortest_cycle(start: str, edges: Edges) -> tuple[str, ...] | None:
    """The shortest way along edges from a type back to it, without its end, or None if there is no such way."""
    came_from: dict[str, str] = {}
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        for other in edges.get(name, ()):
            if other == start:
                path = [name]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return tuple(reversed(path))
            if other not in came_from:
                came_from[other] = name
                waiting.append(other)
    return None
