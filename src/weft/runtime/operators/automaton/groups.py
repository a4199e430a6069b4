"""Count matches with conditions without enumerating them, by grouping the partial matches of a node.

Partial matches that end in the same node and do not differ in anything a condition can still read (the number of
events of a variable, their sum, least or greatest value, the last one) form one group with a number. An event extends
whole groups. This is exact, and polynomial where enumeration is exponential; with too many groups it is abandoned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.algebra.numbers import Number
from weft.algebra.predicates import MIRRORED, Aggregate, Attribute, Literal
from weft.kernels.automaton import tecs
from weft.kernels.automaton.conditions import AGAINST_NEXT, OF_ALL, TEST
from weft.kernels.machine.tagged import MISSING, VALUE
from weft.plan.automaton.conditions import CompiledCondition, CompiledConditions
from weft.runtime.machine.code import OPERATORS
from weft.runtime.operators.automaton.conditions import ConditionTables
from weft.runtime.operators.automaton.folds import NONE, Fold, Known, Last, Tagged, Tracker, holds

MOST_GROUPS = 1 << 15  # at one node; with more, matches are enumerated
_QUICK = ("pair", "rising", "same")

Group = tuple[object, ...]  # the value of each tracker
Groups = dict[Group, int]


@dataclass(frozen=True)
class _Test:
    """A comparison of an event, marked with some label, with a tracker's summary of earlier events."""

    operator: int
    column: int  # of the event
    tracker: int
    against_next: bool


@dataclass(frozen=True)
class _Whole:
    """A comparison of an aggregate over a whole match with another one, a constant, or every event of a variable.

    A side is the number of a tracker, or a constant; with `each`, the second tracker has the values of those events.
    """

    operator: int
    sides: tuple[int | Tagged, ...]
    each: bool
    vacuous: tuple[int, ...]  # if one of these trackers has no event, the condition holds


class TooManyGroups(Exception):
    """Raised when a node has too many groups, so that enumeration is cheaper."""


class Grouping:
    """The trackers of what the conditions of a query distinguish, and how an event changes them."""

    def __init__(self, tables: ConditionTables) -> None:
        self._tables = tables
        compiled = tables.compiled
        self._trackers: dict[Tracker, int] = {}
        self._bounds: list[tuple[int, int]] = []  # counts that no match may reach, by tracker
        self._tests = [list(self._quick_tests(label)) for label in range(len(compiled.label_slots))]
        self._wholes = [self._whole(compiled, item) for item in compiled.conditions if item.kind == "whole"]
        self._fills = [
            [place for tracker, place in self._trackers.items() if tracker.slot in slots]
            for slots in compiled.label_slots
        ]
        self._made = list(self._trackers)
        self.nothing: Group = tuple(tracker.nothing for tracker in self._made)

    @staticmethod
    def suits(compiled: CompiledConditions) -> bool:
        """Whether groups can represent all conditions."""
        return all(not item.scoped and (item.kind in _QUICK or _is_plain(item)) for item in compiled.conditions)

    def _quick_tests(self, label: int) -> Iterator[_Test]:
        tables = self._tables.tables
        at = tables.label_tests_at
        for t in range(TEST * int(at[label]), TEST * int(at[label + 1]), TEST):
            operator, slot, column, other, theirs, which = tables.label_tests[t : t + TEST].tolist()
            assert which in (OF_ALL, AGAINST_NEXT)
            against_next = which == AGAINST_NEXT
            tracker = Last(slot, column) if against_next else Known(other, theirs, operator)
            yield _Test(operator, column, self._place(tracker), against_next)

    def _whole(self, compiled: CompiledConditions, item: CompiledCondition) -> _Whole:
        sides: list[int | Tagged] = []
        vacuous = []
        turns = isinstance(item.left, Attribute)  # the side that is compared with each event comes first
        operator = OPERATORS[MIRRORED[item.operator] if turns else item.operator]
        for side in item.sides[::-1] if turns else item.sides:
            if isinstance(side, Literal):
                sides.append(self._tables.tagged(side.value))
                continue
            if isinstance(side, Attribute):
                sides.append(self._place(Known(compiled.slot(item, side), compiled.column(side), operator)))
                continue
            assert isinstance(side, Aggregate)
            slot = compiled.slot(item, side.attribute)
            most = _most(item) if side.function == "COUNT" else None
            sides.append(self._place(Fold(slot, compiled.column(side.attribute), side.function, most)))
            if most is not None and _is_bound(item):
                self._bounds.append((self._place(Fold(slot, compiled.column(side.attribute), "COUNT", most)), most))
            if slot in item.wholes:
                vacuous.append(sides[-1])
        each = any(isinstance(side, Attribute) for side in item.sides)
        return _Whole(operator, tuple(sides), each, tuple(at for at in vacuous if isinstance(at, int)))

    def _place(self, tracker: Tracker) -> int:
        return self._trackers.setdefault(tracker, len(self._trackers))

    def after(self, group: Group, label: int, values: Sequence[int]) -> Group | None:
        """Extend the group by an event, or return None if the conditions then fail."""
        texts = self._tables.texts
        for test in self._tests[label]:
            if test.against_next:
                before: Any = group[test.tracker]
                mine = _value(values, test.column)
                if mine == NONE or (before and not holds(texts, test.operator, before, mine)):
                    return None
        known: list[Any] = list(group)
        for place in self._fills[label]:
            tracker = self._made[place]
            known[place] = tracker.after(known[place], _value(values, tracker.column), texts)
        if any(known[place] and known[place][0] >= most for place, most in self._bounds):
            return None
        for test in self._tests[label]:
            if not test.against_next:
                mine = _value(values, test.column)
                if not all(holds(texts, test.operator, mine, other) for other in known[test.tracker]):
                    return None
        return tuple(known)

    def accepts(self, group: Group) -> bool:
        """Whether the matches of a group satisfy the conditions on whole matches."""
        return all(self._holds(whole, group) for whole in self._wholes)

    def _holds(self, whole: _Whole, group: Group) -> bool:
        if any(group[place] == self._made[place].nothing for place in whole.vacuous):
            return True
        one, other = whole.sides
        result = self._result(one, group)
        if whole.each:
            assert isinstance(other, int)
            others: Any = group[other]
        else:
            others = (self._result(other, group),)
        return all(holds(self._tables.texts, whole.operator, result, known) for known in others)

    def _result(self, side: int | Tagged, group: Group) -> Tagged:
        if isinstance(side, tuple):
            return side
        fold = self._made[side]
        assert isinstance(fold, Fold)
        return fold.result(group[side])


def _is_plain(item: CompiledCondition) -> bool:
    """Whether a condition compares aggregates with each other, a constant, or each event of a variable."""
    return item.kind == "whole" and all(isinstance(side, Aggregate | Literal | Attribute) for side in item.sides)


def _constant(item: CompiledCondition) -> Number | None:
    """Return the number that a condition compares with, or None."""
    for side in item.sides:
        if isinstance(side, Literal) and not isinstance(side.value, bool | str):
            return side.value
    return None


def _most(item: CompiledCondition) -> int | None:
    """Return the count above which the result of a comparison with a constant does not change, or None."""
    constant = _constant(item)
    return None if constant is None or not -MOST_GROUPS < constant < MOST_GROUPS else max(0, math.floor(constant) + 1)


def _is_bound(item: CompiledCondition) -> bool:
    """Whether the condition fails for good once a count exceeds the constant."""
    operator = item.operator if isinstance(item.right, Literal) else MIRRORED[item.operator]
    return operator in ("<", "<=", "=")


def _value(values: Sequence[int], column: int) -> Tagged:
    """Return a column of an event's values, or one for the event itself."""
    if column < 0:
        return Fold.EVENT
    kind = values[VALUE * column]
    return (kind, values[VALUE * column + 1]) if kind != MISSING else NONE


class GroupedCounts:
    """Counts the matches that end at an event. Groups of nodes are cached while no window cuts them."""

    def __init__(self, tables: ConditionTables) -> None:
        self._tables = tables
        self._texts = tables.texts
        self._grouping = Grouping(tables)
        self._known: dict[int, tuple[int, Groups]] = {}  # by node: the least start key, and the groups

    def forget(self) -> None:
        """Clear the cache, since the nodes have new ids."""
        self._known.clear()

    def count(self, state: tecs.State, control: tecs.Int64s, batch: tecs.Batch) -> int:
        """Return how many matches end at the current event, or raise TooManyGroups."""
        if self._texts is not self._tables.texts:  # texts have new ids
            self._texts, self._grouping = self._tables.texts, Grouping(self._tables)
            self.forget()
        event = int(control[tecs.EVENT]) - 1
        horizon, tail = int(batch.horizons[event]), int(control[tecs.TAIL])
        self._known = {node: known for node, known in self._known.items() if node >= tail}
        width = self._tables.width
        values = batch.payload[event * width : (event + 1) * width].tolist()
        graph = _Graph(state, tail, horizon, width, self._grouping)
        total = 0
        for final in range(int(control[tecs.FINALS])):
            label, node = state.finals[2 * final : 2 * final + 2].tolist()
            groups = {self._grouping.nothing: 1} if node < 0 else graph.groups(node, self._known)
            for group, number in groups.items():
                ended = group if label < 0 else self._grouping.after(group, label, values)
                if ended is not None and self._grouping.accepts(ended):
                    total += number
        return total


class _Graph:
    """The nodes of the match graph inside the window of one event."""

    def __init__(self, state: tecs.State, tail: int, horizon: int, width: int, grouping: Grouping) -> None:
        self._state, self._tail, self._horizon, self._width = state, tail, horizon, width
        self._grouping = grouping
        self._cut: dict[int, tuple[int, Groups]] = {}  # nodes with runs that began before the horizon, without these

    def groups(self, node: int, known: dict[int, tuple[int, Groups]]) -> Groups:
        """Return the groups of a node; those of all nodes reachable from it are cached."""
        todo, seen = [node], {node}
        order = []
        while todo:
            current = todo.pop()
            if current in self._cut or (current in known and known[current][0] >= self._horizon):
                continue
            order.append(current)
            for older in self._leads_to(current):
                if older not in seen:
                    seen.add(older)
                    todo.append(older)
        for current in sorted(order):
            found = self._made(current, known)
            (known if found[0] >= self._horizon else self._cut)[current] = found
        return (self._cut.get(node) or known[node])[1]

    def _words(self, node: int) -> list[int]:
        at = (node & (len(self._state.starts) - 1)) << 2
        words: list[int] = self._state.nodes[at : at + 4].tolist()
        return words

    def _leads_to(self, node: int) -> list[int]:
        """Return the successors of a node inside the window."""
        word, next_, branch, _ = self._words(node)
        older = [next_, branch] if word & tecs.LABEL_MASK != tecs.BARE else [branch]
        return [one for one in older if one >= self._tail and self._words(one)[3] >= self._horizon]

    def _made(self, node: int, known: Mapping[int, tuple[int, Groups]]) -> tuple[int, Groups]:
        """Return the least start key and the groups of a node, computed from its successors."""
        word, next_, branch, youngest = self._words(node)
        label = word & tecs.LABEL_MASK
        eldest, groups = youngest, {self._grouping.nothing: 1}
        if next_ != tecs.BOTTOM and label != tecs.BARE:
            eldest, groups = self._cut.get(next_) or known[next_]
        if label < tecs.BARE:
            place = node & (len(self._state.starts) - 1)
            values = self._state.payload[place * self._width : (place + 1) * self._width].tolist()
            groups = self._extended(groups, label, values)
        if branch < self._tail:
            return eldest, groups
        if self._words(branch)[3] < self._horizon:
            return tecs.NEVER, groups
        other_eldest, others = self._cut.get(branch) or known[branch]
        both = dict(groups)
        for group, number in others.items():
            both[group] = both.get(group, 0) + number
        if len(both) > MOST_GROUPS:
            raise TooManyGroups
        return min(eldest, other_eldest), both

    def _extended(self, groups: Groups, label: int, values: Sequence[int]) -> Groups:
        taken: Groups = {}
        for group, number in groups.items():
            after = self._grouping.after(group, label, values)
            if after is not None:
                taken[after] = taken.get(after, 0) + number
        return taken
