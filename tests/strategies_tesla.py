"""Random TESLA rules, as syntax and as text, and random streams for them.

There are few types and small values, and conditions are weak more often than strong, so that most rules fire.
Defined types have the attributes of the given ones, so that rules can be stacked on each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st
from tests.strategies import enlarged, large, with_some_extremes

from weft.languages import syntax as e
from weft.languages.tesla import syntax
from weft.languages.tesla.printer import to_source

GIVEN = ("A", "B", "C", "A", "B")
TOGETHER = ("XY", "XYZ", "XXY", "X", "XYY", "XX")  # the types that rules of one program define
NUMBERS = ("v", "k")
KINDS = {"v": "int", "k": "int", "s": "string", "w": "double"}
OPERATORS = ("<=", ">=", "<=", ">=", "<>", "=", "<", ">")
TEXTS = ("p", "q")
EventDict = dict[str, object]
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def name(text: str) -> e.Name:
    return e.Name(text)


@dataclass
class Draft:
    """A rule that is being drawn: the events bound so far, and the parameters with what they are bound to."""

    types: Sequence[str]
    events: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)

    def parameters_of(self, kind: str) -> list[str]:
        return [known for known, attribute in self.parameters.items() if (attribute == "s") == (kind == "s")]


# ---------------------------------------------------------------- constraints


@st.composite
def constraints(draw: st.DrawFn, draft: Draft, binds: bool) -> e.Expression:
    """A condition on the current event; some bind a parameter, if they may."""
    attribute = draw(st.sampled_from(["v", "k", "k", "s"]))
    own = e.Bare(name(attribute))
    known = draft.parameters_of(attribute)
    shape = draw(st.sampled_from(["bind", "constant", "parameter", "bind", "constant", "parameter", "event"]))
    if shape == "bind" and binds:
        fresh = f"p{len(draft.parameters)}"
        draft.parameters[fresh] = attribute
        if draw(st.booleans()):
            return syntax.Binding(name(attribute), name(fresh))
        return syntax.Comparisons((own, syntax.Parameter(name(fresh))), ("=",))
    operator = "=" if attribute == "s" else draw(st.sampled_from(OPERATORS))
    if shape == "parameter" and known:
        parameter: e.Expression = syntax.Parameter(name(draw(st.sampled_from(known))))
        if attribute != "s" and draw(st.booleans()):
            parameter = e.Arithmetic(draw(st.sampled_from(["+", "-", "*", "/"])), parameter, e.Literal(1))
        return syntax.Comparisons((own, parameter), (operator,))
    if shape == "event" and draft.events:
        other = e.Field(name(draw(st.sampled_from(draft.events))), name(attribute))
        sides: tuple[e.Expression, e.Expression] = (other, own) if draw(st.booleans()) else (own, other)
        return syntax.Comparisons(sides, (operator,))
    constant: object = draw(st.sampled_from(TEXTS)) if attribute == "s" else draw(st.sampled_from([0, 1, 2, 2.5]))
    if attribute == "k":
        operator = draw(st.sampled_from(["<=", ">=", "<>"]))
    return syntax.Comparisons((own, e.Literal(constant)), (operator,))  # type: ignore[arg-type]


@st.composite
def constraint_lists(draw: st.DrawFn, draft: Draft, binds: bool = False) -> tuple[e.Expression, ...]:
    return tuple(draw(constraints(draft, binds)) for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))))


@st.composite
def predicates(draw: st.DrawFn, draft: Draft, types: Sequence[str]) -> syntax.Predicate:
    """An event that is bound, under a name of its own if its type is bound already."""
    type_ = draw(st.sampled_from(types))
    alias = f"E{len(draft.events)}" if type_ in draft.events or draw(st.integers(0, 3)) == 0 else None
    found = draw(constraint_lists(draft, binds=True))
    draft.events.append(alias or type_)
    return syntax.Predicate(name(type_), found, alias and name(alias))


# ---------------------------------------------------------------- clauses


@st.composite
def withins(draw: st.DrawFn, draft: Draft) -> syntax.Within:
    unit = draw(st.sampled_from([None, None, name("ms")]))
    return syntax.Within(
        syntax.Duration(draw(st.sampled_from([9, 5, 12, 3, 1])), unit), name(draw(st.sampled_from(draft.events)))
    )


@st.composite
def extents(draw: st.DrawFn, draft: Draft) -> syntax.Extent:
    if len(draft.events) > 1 and draw(st.booleans()):
        first, second = draw(st.permutations(draft.events))[:2]
        return syntax.Between(name(first), name(second))
    return draw(withins(draft))


@st.composite
def selections(draw: st.DrawFn, draft: Draft) -> syntax.Selected:
    within = draw(withins(draft))
    predicate = draw(predicates(draft, draft.types))
    selection = draw(st.sampled_from(["each", "each", "first", "last"]))
    count = None if selection == "each" else draw(st.sampled_from([None, None, 1, 2]))
    return syntax.Selected(predicate, selection, count, within)  # type: ignore[arg-type]


@st.composite
def negations(draw: st.DrawFn, draft: Draft) -> syntax.Negated:
    predicate = syntax.Predicate(name(draw(st.sampled_from(draft.types))), draw(constraint_lists(draft)))
    return syntax.Negated(predicate, draw(extents(draft)))


@st.composite
def aggregates(draw: st.DrawFn, draft: Draft) -> syntax.Aggregate:
    function = draw(st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX"]))
    attribute = None if function == "COUNT" and draw(st.booleans()) else name(draw(st.sampled_from(["v", "k", "w"])))
    found = draw(constraint_lists(draft))
    return syntax.Aggregate(function, name(draw(st.sampled_from(draft.types))), found, attribute, draw(extents(draft)))  # type: ignore[arg-type]


@st.composite
def aggregate_conditions(draw: st.DrawFn, draft: Draft) -> syntax.Condition:
    """A condition on an aggregate; some bind it to a parameter."""
    aggregate = draw(aggregates(draft))
    operator = draw(st.sampled_from(["<=", ">=", "<>"]))
    bound = e.Literal(draw(st.integers(0, 2)))
    if draw(st.booleans()):
        return syntax.Condition(syntax.Comparisons((aggregate, bound), (operator,)))  # type: ignore[arg-type]
    fresh = syntax.Parameter(name(f"t{len(draft.parameters)}"))
    return syntax.Condition(syntax.Comparisons((bound, fresh, aggregate), (operator, "=")))  # type: ignore[arg-type]


# ---------------------------------------------------------------- rules


@st.composite
def values(draw: st.DrawFn, draft: Draft, kind: str) -> e.Expression:
    if kind == "string":
        return e.Field(name(draw(st.sampled_from(draft.events))), name("s"))
    if draw(st.integers(0, 4)) == 0:
        return draw(aggregates(draft))
    number: e.Expression = e.Field(name(draw(st.sampled_from(draft.events))), name(draw(st.sampled_from(NUMBERS))))
    if draw(st.integers(0, 2)) == 0:
        operator = draw(st.sampled_from(["+", "-", "*", "/"]))
        number = e.Arithmetic(operator, e.Negative(number), e.Literal(draw(st.integers(0, 3))))
    return number


@st.composite
def rules(draw: st.DrawFn, defined: str, starts: Sequence[str], types: Sequence[str], size: int = 3) -> syntax.Rule:
    """A rule that defines a type, starts at an event of some types and looks back at others."""
    draft = Draft(types)
    clauses: list[syntax.Clause] = [syntax.Selected(draw(predicates(draft, starts)))]
    for _ in range(draw(st.sampled_from([1, size, 2, 0]))):
        kind = draw(st.sampled_from([selections, selections, selections, selections, negations, aggregate_conditions]))
        clauses.append(draw(kind(draft)))
    fields = tuple(syntax.Declared(name(known), name(kind)) for known, kind in KINDS.items())
    set_ = [known for known in KINDS if draw(st.integers(0, 4))]
    assignments = tuple(syntax.Assignment(name(known), draw(values(draft, KINDS[known]))) for known in set_)
    consumed = [event for event in draft.events[1:] if draw(st.integers(0, 3)) == 0]
    return syntax.Rule(name(defined), fields, tuple(clauses), assignments, tuple(map(name, consumed)))


@st.composite
def rule_sets(draw: st.DrawFn, size: int = 3) -> syntax.Program:
    """Rules on top of each other: each starts at given events or those of earlier rules; some see all types."""
    names = draw(st.sampled_from(TOGETHER))
    drawn: list[syntax.Rule] = []
    for defined in names:
        earlier = sorted({other for other in names if other < defined})
        seen = [*GIVEN, *earlier * 3, *(names if draw(st.integers(0, 4)) == 4 else [])]
        drawn.append(draw(rules(defined, [*earlier * 2, *GIVEN], seen, size)))
    return syntax.Program(tuple(draw(st.permutations(drawn))))


@st.composite
def flat_rules(draw: st.DrawFn, size: int = 3, name: str = "X", types: Sequence[str] = GIVEN) -> syntax.Program:
    """One rule over events of the types."""
    return syntax.Program((draw(rules(name, types, types, size)),))


@st.composite
def alike(draw: st.DrawFn, size: int = 3) -> str:
    """Rules, as text, that differ in names and constants only; and some other rule between them."""
    text = draw(texts(flat_rules(size)))
    chance = Random(draw(st.integers(0, 2**32)))

    def other(found: re.Match[str]) -> str:
        return str(chance.choice([1, 2, 3, 5, 9, int(found[0])]))

    names = draw(st.sampled_from(["XXXX", "XYXY", "XXXYYYX", "XX"]))
    drawn = [_NUMBER.sub(other, text.replace("X(", f"{defined}(", 1)) for defined in names]
    if draw(st.booleans()):
        drawn.insert(draw(st.integers(0, len(drawn))), draw(texts(flat_rules(size, "Y"))))
    return "\n".join(drawn)


def texts(programs: st.SearchStrategy[syntax.Program]) -> st.SearchStrategy[str]:
    """The programs as text."""
    return programs.map(to_source)


# ---------------------------------------------------------------- streams


VALUES: dict[str, tuple[object, ...]] = {
    "v": (0, 1, 2, 3, 1, 2, 0.5, None),
    "k": (0, 1, 0, 1, 2, None),
    "s": ("p", "q", "p", None),
    "w": (1.5, 0, None),
}


@st.composite
def rule_streams(draw: st.DrawFn, max_size: int = 11, ties: bool = True) -> list[EventDict]:
    """Events in stream order, some of one instant unless there are no ties.

    They are drawn by a generator of their own: drawn one by one they would be too much alike for rules to fire.
    """
    size = draw(st.sampled_from([max_size, max_size - 2, max_size - 3, max_size, max_size // 2, 0]))
    chance = Random(draw(st.integers(0, 2**32)))
    now = 0
    events: list[EventDict] = []
    for _ in range(size):
        now += chance.choice([0, 1, 1, 2, 4] if ties else [1, 1, 2, 4])
        drawn = {attribute: chance.choice(known) for attribute, known in VALUES.items()}
        events.append({"type": chance.choice([*GIVEN, *GIVEN, "D"]), "ts": now, **drawn})
    return draw(with_some_extremes(enlarged(events, "v", draw(large)), NUMBERS))
