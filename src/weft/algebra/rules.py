"""Rules that define events from events: joins that look back from the event that fires them (TESLA).

An event has one *time*: its instant, or the end of its interval. A rule is tried at every event that fits its
*terminator*. From there it looks back, predicate by predicate, at earlier events, and fires once for each
combination that is selected. A firing is a match of the rule and at the same time an event of the type that the
rule defines, at the terminator's time, which all rules see.

Conditions read the *current event* (an `Attribute` without a variable) and the events already bound to variables.
An attribute that is missing has no value, and a comparison with it is false.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar
from typing import Literal as OneOf

from weft.algebra.definition import Definition
from weft.algebra.predicates import Attribute, Comparison, Expression, Predicate, is_passed_on
from weft.algebra.terms import require_distinct, require_known
from weft.schema import Kind
from weft.tree import Node

Conditions = tuple[Predicate, ...]
Pick = OneOf["each", "first", "last"]
SummaryFunction = OneOf["COUNT", "SUM", "AVG", "MIN", "MAX"]


class Extent(Node):
    """A stretch of time that bound events mark out."""


@dataclass(frozen=True)
class Within(Extent):
    """The window before the anchor: `0 < anchor.time - x.time <= ticks`."""

    anchor: str
    ticks: int

    def __post_init__(self) -> None:
        if self.ticks < 0:
            raise ValueError(f"a window reaches back, so it is not negative: {self.ticks}")


@dataclass(frozen=True)
class Between(Extent):
    """Strictly between the times of two bound events, whichever of them is the earlier."""

    first: str
    second: str


@dataclass(frozen=True)
class Events(Node):
    """The events of a type, given or defined by rules, that satisfy all conditions.

    `static` conditions read the current event only: whether they hold is known when the event comes. `related`
    ones read bound events too.
    """

    type: str
    static: Conditions = ()
    related: Conditions = ()

    def __post_init__(self) -> None:
        _require(not any(mentioned(part) for part in self.static), "a static condition reads a bound event")
        _require(all(mentioned(part) for part in self.related), "a related condition reads no bound event")
        _require(not any(summaries(part) for part in (*self.static, *self.related)), "a summary selects no events")

    @property
    def equalities(self) -> tuple[tuple[str, Attribute], ...]:
        """The related conditions that join by a key: an attribute of the current event, and the bound attribute it must
        equal.
        """
        return tuple(
            (condition.left.name, condition.right)
            for condition in self.related
            if isinstance(condition, Comparison)
            and condition.operator == "="
            and isinstance(condition.left, Attribute)
            and condition.left.variable is None
            and isinstance(condition.right, Attribute)
        )


@dataclass(frozen=True)
class Absence(Node):
    """There is no such event in the extent. Events that were consumed, or that are bound, count as well."""

    events: Events
    extent: Extent


@dataclass(frozen=True)
class Summary(Expression):
    """A function over the events in the extent, consumed events included.

    COUNT without an attribute counts the events, with one those that have it. The others take the attribute's
    numbers and skip events without one; over no numbers there is no value. SUM is the exact sum, rounded
    once, so that it does not depend on the order of addition; AVG is that sum divided by the count.
    """

    function: SummaryFunction
    events: Events
    attribute: str | None
    extent: Extent

    def __post_init__(self) -> None:
        _require(self.attribute is not None or self.function == "COUNT", f"{self.function} of no attribute")


@dataclass(frozen=True)
class Terminator(Node):
    """The events at which a rule is tried. At one for which an absence does not hold, the rule does not fire."""

    variable: str
    events: Events
    absences: tuple[Absence, ...] = ()


@dataclass(frozen=True)
class LookBack(Node):
    """Select some of the earlier events, given those bound before.

    Its candidates are the events within the window that satisfy the conditions, for which every absence holds
    (the candidate being bound to the variable), and that this rule has not consumed from this variable, in
    order of arrival. `each` takes all of them, `first` the earliest `count`, `last` the latest `count`. Each
    event taken extends the combination separately; without any, the combination is dropped, and no other
    choice is tried for the variables before.
    """

    variable: str
    events: Events
    within: Within
    pick: Pick
    count: int | None = None
    absences: tuple[Absence, ...] = ()

    def __post_init__(self) -> None:
        if self.pick == "each":
            _require(self.count is None, "'each' takes all, whatever their number")
        else:
            _require(self.count is not None and self.count >= 1, f"{self.pick!r} takes at least one")


@dataclass(frozen=True)
class DefinedField(Node):
    """A field of the defined event. A value that is not of its kind, or undefined, is null.

    Numbers fit both kinds of numbers: an integer field cuts off the fraction (towards zero).
    """

    name: str
    kind: Kind
    value: Expression | None = None


@dataclass(frozen=True)
class Rule(Definition):
    """Defines events of the type `name`.

    The look-backs are taken in their order. A combination that binds all variables fires if all `conditions`
    hold; they are the ones about summaries, and choose nothing. When all firings of one terminator event are
    made, the events they bind to the variables in `consumes` are consumed from these variables of this rule.

    The defined event has its fields as attributes and, unless fields have these names, `ts` and `type`. It is seen
    after the event that fired the rule. Those that one event makes are seen in the order of rules, and those of
    one rule in the order of the events taken, look-back by look-back.
    """

    untied: ClassVar[str] = "no equality ties all events of a rule"
    shares_state: ClassVar[str | None] = "rules of a program share their events"
    is_rule: ClassVar[bool] = True
    terminator: Terminator
    lookbacks: tuple[LookBack, ...] = ()
    conditions: Conditions = ()
    fields: tuple[DefinedField, ...] = ()
    consumes: tuple[str, ...] = ()
    label: str | None = None
    number: int = 0  # among the rules of its type, as they came
    order: tuple[str, ...] = ()  # the variables as they were written, where look-backs change places

    def __post_init__(self) -> None:
        require_distinct(self.variables)
        require_distinct(tuple(field.name for field in self.fields))
        require_distinct(self.consumes)
        _require(set(self.consumes) <= {step.variable for step in self.lookbacks}, "consumes what no look-back takes")
        bound: set[str] = set()
        for step in self.steps:
            require_known(_needed_before(step), bound)
            for absence in step.absences:
                needed = mentioned(absence)
                require_known(needed, bound | {step.variable})
                _require(step is self.terminator or step.variable in needed, "an absence is decided as early as it can")
            bound.add(step.variable)
        require_known(frozenset().union(*map(mentioned, (*self.conditions, *self.fields))), bound)
        _require(not any(reads_at_hand(node) for node in (*self.conditions, *self.fields)), "no event is at hand here")

    @property
    def steps(self) -> tuple[Terminator | LookBack, ...]:
        """The terminator and the look-backs, in the order in which they bind."""
        return (self.terminator, *self.lookbacks)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables, in the order in which they are bound."""
        return tuple(step.variable for step in self.steps)

    @property
    def shown_variables(self) -> tuple[str, ...]:
        """The variables, in the order in which they were written."""
        return self.order or self.variables

    def passes_on(self, name: str) -> bool:
        """Whether a field is the attribute itself."""
        return is_passed_on(((field.name, field.value) for field in self.fields), name)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types of events it looks at, each once, the terminator's first."""
        return tuple(dict.fromkeys(node.type for node in self.walk() if isinstance(node, Events)))

    @property
    def origin(self) -> tuple[str | int, ...]:
        """Its type with its own name, or else with its number among those of the type, if it is not the first."""
        if self.label is not None:
            return (self.name, self.label)
        return (self.name, self.number) if self.number else (self.name,)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The types of events it looks at."""
        return self.types

    def mentions(self) -> set[str]:
        """The attributes that it reads."""
        return super().mentions() | {part.attribute for part in summaries(self) if part.attribute}

    @property
    def field_kinds(self) -> Mapping[str, Kind | None]:
        """The fields, with the kinds that the rule gives them."""
        return {field.name: field.kind for field in self.fields}


def mentioned(node: Node) -> frozenset[str]:
    """The variables that a condition, a value, an absence or an extent needs to be bound."""
    names: set[str] = set()
    for part in node.walk():
        match part:
            case Attribute(_, str(variable)):
                names.add(variable)
            case Within(anchor):
                names.add(anchor)
            case Between(first, second):
                names |= {first, second}
    return frozenset(names)


def summaries(node: Node) -> tuple[Summary, ...]:
    """The summaries in a condition or value."""
    return tuple(part for part in node.walk() if isinstance(part, Summary))


def _needed_before(step: Terminator | LookBack) -> frozenset[str]:
    anchors = mentioned(step.within) if isinstance(step, LookBack) else frozenset[str]()
    return anchors.union(*map(mentioned, step.events.related))


def reads_at_hand(node: Node) -> bool:
    """Return whether a node reads the current event; the events of a summary do not count."""
    if isinstance(node, Summary):
        return False
    if isinstance(node, Attribute) and node.variable is None:
        return True
    return any(reads_at_hand(child) for child in node.children())


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
