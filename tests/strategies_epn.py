"""Random patterns with policies, as syntax and as text, random networks of them, and random streams.

There are few types, weak conditions and wide contexts, so that most programs match something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from tests.strategies import enlarged, large, with_some_extremes

from weft.languages import syntax as e
from weft.languages.epn import syntax as epn
from weft.languages.epn.printer import to_source

TYPES = ("A", "B", "C")
NUMBERS = ("x", "y", "k")
OPERATORS = ("<=", ">=", "<>", "=", "<", ">", "=")
KINDS = ("sequence", "sequence", "all", "any", "absence")
EVALUATIONS = ("immediate", "deferred")
CARDINALITIES = ("unrestricted", "single")
REPEATED = ("every", "first", "last", "override")
CONSUMPTIONS = ("reuse", "consume")
FIELD = "v"  # what every pattern derives, so that later ones can read it

EventDict = dict[str, object]


def name(text: str) -> e.Name:
    return e.Name(text)


# ---------------------------------------------------------------- conditions


@st.composite
def numbers_of(draw: st.DrawFn, fields: Sequence[e.Field]) -> e.Expression:
    """A number made of one field or two."""
    field = draw(st.sampled_from(fields))
    shape = draw(st.integers(0, 7))
    if shape == 5:
        return e.Negative(field)
    if shape == 6:
        return e.Arithmetic(draw(st.sampled_from(["+", "-", "*", "/"])), field, e.Literal(draw(st.integers(0, 2))))
    if shape == 7:
        return e.Arithmetic("-", field, draw(st.sampled_from(fields)))
    return field


@st.composite
def comparisons(draw: st.DrawFn, fields: Sequence[e.Field]) -> e.Expression:
    """A comparison of two numbers, or of one with a constant."""
    operator = draw(st.sampled_from(OPERATORS))
    left = draw(numbers_of(fields))
    if draw(st.booleans()):
        return e.Comparison(operator, left, e.Literal(draw(st.sampled_from([0, 1, 2.5]))))
    return e.Comparison(operator, left, draw(numbers_of(fields)))


@st.composite
def conditions(draw: st.DrawFn, fields: Sequence[e.Field]) -> e.Expression:
    """A Boolean combination of up to three comparisons."""
    found = draw(comparisons(fields))
    for _ in range(draw(st.integers(0, 2))):
        shape = draw(st.integers(0, 2))
        other = draw(comparisons(fields)) if shape else found
        found = (e.Not(found), e.Or(found, other), e.And(other, found))[shape]
    return found


# ---------------------------------------------------------------- clauses


def optional(strategy: st.SearchStrategy) -> st.SearchStrategy:
    """Something or nothing."""
    return st.one_of(st.none(), strategy)


@st.composite
def settings_of(draw: st.DrawFn, policies: dict[str, Sequence[str]]) -> tuple[epn.Setting, ...]:
    """Values for some of the policies, in any order."""
    names = draw(st.permutations(sorted(policies)))[: draw(st.integers(1, len(policies)))]
    return tuple(epn.Setting(name(policy), name(draw(st.sampled_from(policies[policy])))) for policy in names)


@st.composite
def policies(draw: st.DrawFn, participants: Sequence[epn.Participant]) -> epn.Policies:
    """Policies of the pattern, and of some participants; no two slots of one type are under override."""
    types = [participant.type.text for participant in participants]
    repeated = REPEATED if len(set(types)) == len(types) else REPEATED[:-1]
    whole = {
        "evaluation": EVALUATIONS,
        "cardinality": CARDINALITIES,
        "repeated": repeated,
        "consumption": CONSUMPTIONS,
    }
    groups = [epn.Group(draw(settings_of(whole)))]
    for participant in participants:
        if draw(st.integers(0, 3)) == 3:
            own = REPEATED if types.count(participant.type.text) == 1 else repeated
            chosen = draw(settings_of({"repeated": own, "consumption": CONSUMPTIONS}))
            groups.append(epn.Group(chosen, (participant.variable,)))
    return epn.Policies(tuple(groups))


DURATIONS = [epn.Duration(ticks, unit) for ticks in (20, 10, 5) for unit in (None, name("ms"))]
BOUNDS = [name(type_) for type_ in ("A", "C", "Open", "Close")]
INTERVALS = [
    *(epn.Fixed(length) for length in DURATIONS),
    *(epn.Sliding(length, epn.Duration(step)) for length in DURATIONS[:4] for step in (3, 5, 25)),
    *(epn.Until(opener, closer) for opener in BOUNDS for closer in BOUNDS),
    *(epn.Lasting(opener, length) for opener in BOUNDS for length in DURATIONS),
]
CONTEXTS = [epn.Context(interval, by) for interval in (*INTERVALS, None) for by in ((), (name("k"),)) if interval or by]


# ---------------------------------------------------------------- patterns


@st.composite
def patterns(
    draw: st.DrawFn, called: str = "P", derived: Sequence[str] = (), kinds: Sequence[str] = KINDS
) -> epn.Pattern:
    """A pattern over types of the input and over those that earlier patterns derive."""
    kind = draw(st.sampled_from(kinds))
    types = draw(st.lists(st.sampled_from([*TYPES, *derived, *derived]), min_size=1, max_size=3))
    variables = [f"v{number}" for number in range(1, len(types) + 1)]
    fields = {
        variable: [e.Field(name(variable), name(n)) for n in ((FIELD,) if type_ in derived else NUMBERS)]
        for variable, type_ in zip(variables, types, strict=True)
    }
    filters = draw(st.integers(0, 3)) == 3
    participants = tuple(
        epn.Participant(name(type_), name(variable), draw(comparisons(fields[variable])) if filters else None)
        for variable, type_ in zip(variables, types, strict=True)
    )
    context = draw(optional(st.sampled_from(CONTEXTS)))
    if context is not None and set(types) & set(derived):
        context = epn.Context(context.interval) if context.interval is not None else None
    if (
        kind == "absence"
        and context is not None
        and context.by
        and isinstance(context.interval, epn.Fixed | epn.Sliding)
    ):
        context = epn.Context(context.interval, context.by, draw(optional(st.sampled_from(DURATIONS))))
    everything = [field for own in fields.values() for field in own]
    clauses = [
        draw(optional(conditions(everything).map(epn.Where))),
        draw(optional(policies(participants))),
        context,
    ]
    value: e.Expression = e.Literal(1) if kind == "absence" else draw(numbers_of(everything))
    clauses.append(epn.Derive((epn.Derived(name(FIELD), value),)))
    return epn.Pattern(name(called), name(kind), participants, tuple(c for c in clauses if c is not None))


@st.composite
def networks(draw: st.DrawFn, most: int = 2) -> epn.Program:
    """One pattern, often with another that takes its events."""
    called = [f"P{number}" for number in range(1, draw(st.integers(1, most)) + 1)]
    return epn.Program(tuple(draw(patterns(one, called[:number])) for number, one in enumerate(called)))


# ---------------------------------------------------------------- streams


EVENTS = st.lists(
    st.tuples(
        st.sampled_from([*TYPES, *TYPES, *TYPES, "Open", "Close", "X"]),
        st.integers(0, 3),  # ticks since the event before
        st.integers(0, 3),  # its length, where events have one
        st.sampled_from([0, 1, 1, 2, None]),
        st.sampled_from([0, 1, 2, 2.5, None]),
        st.sampled_from([0, 1, 1, 1, None]),
    ),
    min_size=6,
    max_size=10,
)


@st.composite
def streams(draw: st.DrawFn) -> list[EventDict]:
    """Events in stream order with ties; sometimes with lengths."""
    spans = draw(st.integers(0, 4)) == 4
    end = draw(st.sampled_from([0, 0, -7]))
    events: list[EventDict] = []
    for type_, later, length, *values in draw(EVENTS):
        end += later
        event: EventDict = {"type": type_, "ts": end} if not spans or not length else {"type": type_, "end": end}
        event |= {} if "ts" in event else {"start": end - length}
        events.append(event | {n: value for n, value in zip(NUMBERS, values, strict=True) if value is not None})
    events.sort(key=lambda one: (one.get("end", one.get("ts")), one.get("start", one.get("ts"))))
    return draw(with_some_extremes(enlarged(events, NUMBERS[0], draw(large)), NUMBERS))


@dataclass(frozen=True)
class Example:
    """A program as text, and a stream for it."""

    text: str
    events: list[EventDict]


def examples(most: int = 2) -> st.SearchStrategy[Example]:
    """A network and a stream."""
    return st.builds(Example, networks(most).map(to_source), streams())
