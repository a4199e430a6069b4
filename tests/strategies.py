"""Random programs of the algebra, random streams, and random ways to cut a stream into batches.

The parts are weighted so that most programs match something: filters are weak more often than strong,
windows wide more often than narrow, and a stream may hold a word of the pattern it is drawn for.
"""

from __future__ import annotations

from collections.abc import Sequence as Listing
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from weft.algebra.patterns import Bind, Correlate, Event, Filter, Other, Pattern, Repeat, Sequence, Union
from weft.algebra.predicates import (
    Aggregate,
    Always,
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    In,
    Like,
    Literal,
    Monotone,
    Negative,
    Not,
    Or,
    Predicate,
    RegexMatch,
)
from weft.algebra.query import Consume, Program, Query, Selected, Strategy, Window

TYPES = ("A", "B", "C")
FREQUENT_TYPES = ("A", "B", "A", "B", "C")  # unequal, so that some streams hold many of the same
UNKNOWN = "D"  # a type no pattern mentions
VARIABLES = ("u", "v", "w")
STREAMS = ("S", "T")
TEXTS = ("a", "ab", "b", "")
OPERATORS = ("<", "<=", ">", ">=", "=", "<>")
NUMBERS = ("x", "g", "y")
KEYS: tuple[tuple[tuple[str, ...], ...], ...] = ((("g",),), (("g", "x"),), (("g",), ("s",)), (("y",),), (("b",),))

EventDict = dict[str, object]


def often(usual: st.SearchStrategy[object], rare: st.SearchStrategy[object], times: int = 3) -> st.SearchStrategy:
    """The usual one `times` times as often as the rare one; shrinks to the usual one."""
    return st.integers(0, times).flatmap(lambda n: rare if n == times else usual)


# ---------------------------------------------------------------- predicates over the current event


def literals_for(name: str) -> st.SearchStrategy[Literal]:
    """A constant of the attribute's usual kind."""
    if name in ("s", "type"):
        return st.sampled_from(TEXTS if name == "s" else TYPES).map(Literal)
    if name == "b":
        return st.booleans().map(Literal)
    return often(st.integers(0, 3), st.sampled_from([-1, 0.5, 2.0])).map(Literal)


@st.composite
def expressions(draw: st.DrawFn, variable: str | None = None) -> Expression:
    """A number made of one attribute."""
    attribute = Attribute(draw(st.sampled_from(NUMBERS)), variable)
    shape = draw(st.integers(0, 6))
    if shape == 4:
        return Negative(attribute)
    if shape == 5:
        return Arithmetic(draw(st.sampled_from(["+", "-", "*", "/", "%"])), attribute, draw(literals_for("x")))
    if shape == 6:
        return Arithmetic("-", attribute, Attribute(draw(st.sampled_from(NUMBERS)), variable))
    return attribute


@st.composite
def comparisons(draw: st.DrawFn) -> Predicate:
    """A comparison, set membership or text test of the current event; true more often than not."""
    shape = draw(st.integers(0, 9))
    if shape <= 3:
        return Comparison(draw(st.sampled_from(["<=", ">=", "<>", "<", ">", "="])), draw(expressions()), Literal(1))
    if shape <= 5:
        return Comparison(draw(st.sampled_from(OPERATORS)), draw(expressions()), draw(literals_for("x")))
    if shape == 6:
        return In(
            Attribute("x"), tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3.0, "a", True]), min_size=1, max_size=3)))
        )
    if shape == 7:
        return Like(Attribute("s"), draw(st.sampled_from(["%", "a%", "_", "%b", "a_"])))
    if shape == 8:
        return RegexMatch(Attribute("s"), draw(st.sampled_from(["", "a", "b$", "^a?b"])))
    name = draw(st.sampled_from(["s", "b", "type", "ts"]))
    operator = draw(st.sampled_from(["=", "<>"] if name == "b" else OPERATORS))
    return Comparison(operator, Attribute(name), draw(literals_for(name)))


def predicates() -> st.SearchStrategy[Predicate]:
    """A Boolean combination of comparisons."""
    return st.recursive(
        comparisons(),
        lambda inner: st.one_of(
            inner.map(Not),
            st.lists(inner, min_size=2, max_size=2).map(lambda p: Or(tuple(p))),
            st.lists(inner, min_size=2, max_size=2).map(lambda p: And(tuple(p))),
        ),
        max_leaves=3,
    )


# ---------------------------------------------------------------- conditions over variables


def aggregates(variable: str) -> st.SearchStrategy[Expression]:
    """A function of all events bound to a variable."""
    functions = st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST"])
    of_attribute = st.builds(Aggregate, functions, st.builds(Attribute, st.sampled_from(["x", "y"]), st.just(variable)))
    return often(of_attribute, st.just(Aggregate("COUNT", Attribute("*", variable))), 5)


@st.composite
def conditions(draw: st.DrawFn, names: Listing[str]) -> Predicate:
    """A condition over some of the variables, event by event or as wholes."""
    variable = draw(st.sampled_from(names))
    others = [name for name in names if name != variable]
    shape = draw(st.integers(0, 5))
    if others and shape <= 2:
        left, right = draw(expressions(variable)), draw(expressions(draw(st.sampled_from(others))))
        operator = draw(st.sampled_from(["<=", "=", "<>", "<", ">", ">="]))
        if shape == 2:
            return Comparison(operator, Arithmetic("+", left, right), draw(literals_for("x")))
        return Comparison(operator, left, right)
    if shape == 3 or not others:
        operator = draw(st.sampled_from([">=", "<=", ">", "<", "<>", "="]))
        return Comparison(operator, draw(aggregates(variable)), draw(literals_for("x")))
    if shape == 4:
        attribute = Attribute(draw(st.sampled_from(["x", "y", "s"])), variable)
        return Monotone(draw(st.sampled_from(["INCREASING", "DECREASING"])), attribute)
    other = draw(st.sampled_from(others))
    right = draw(st.one_of(expressions(other), aggregates(other)))
    return Comparison(draw(st.sampled_from(["<=", ">", "<>"])), draw(aggregates(variable)), right)


# ---------------------------------------------------------------- patterns


def names_in(pattern: Pattern) -> list[str]:
    """The variables a filter around the pattern may speak of."""
    found = {name for node in pattern.walk() if isinstance(node, Event) for name in node.names}
    return sorted(found | {node.name for node in pattern.walk() if isinstance(node, Bind)})


@st.composite
def leaves(draw: st.DrawFn) -> Pattern:
    """One event, usually bound to a variable; sometimes one that is not such an event."""
    type_name = draw(st.sampled_from(FREQUENT_TYPES))
    shape = draw(st.integers(0, 9))
    if shape == 9:
        return Other(type_name, where=draw(often(st.just(Always()), comparisons(), 1)))
    event = Event(type_name, draw(st.sampled_from(STREAMS))) if shape == 8 else Event(type_name)
    return event if shape <= 3 else Bind(event, draw(st.sampled_from(VARIABLES)))


SHAPES = ("leaf", "sequence", "sequence", "sequence", "repeat", "either", "bind", "filter", "filter")


@st.composite
def patterns(draw: st.DrawFn, depth: int = 3, repeats: int = 2) -> Pattern:
    """Patterns with filters at any place; at most `repeats` repeats inside each other or in a row."""
    shape = draw(st.sampled_from(SHAPES)) if depth else "leaf"
    if shape == "leaf":
        return draw(leaves())
    contiguous = draw(st.integers(0, 3)) == 3 if shape in ("sequence", "repeat") else False
    if shape == "sequence":
        return Sequence(draw(patterns(depth - 1, repeats // 2)), draw(patterns(depth - 1, repeats // 2)), contiguous)
    if shape == "either":
        return Union(draw(patterns(depth - 1, repeats)), draw(patterns(depth - 1, repeats)))
    inner = draw(patterns(depth - 1, repeats - (shape == "repeat" and repeats > 0)))
    if shape == "repeat" and repeats:
        return Repeat(inner, contiguous)
    return Bind(inner, draw(st.sampled_from(VARIABLES))) if shape == "bind" else draw(filtered(inner))


@st.composite
def filtered(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """The pattern with a filter around it, if it binds anything the filter could speak of."""
    names = names_in(pattern)
    if not names:
        return pattern
    if draw(st.booleans()):
        return Filter(pattern, draw(st.sampled_from(names)), draw(predicates()))
    return Correlate(pattern, draw(conditions(names)))


# ---------------------------------------------------------------- queries


@st.composite
def select_lists(draw: st.DrawFn, pattern: Pattern) -> tuple[Selected, ...] | None:
    """Everything, usually; else some names, with or without attributes."""
    if draw(st.integers(0, 2)) < 2:
        return None
    names = draw(st.lists(st.sampled_from(names_in(pattern) or ["u"]), unique=True, max_size=3))
    attributes = st.lists(st.sampled_from(["x", "s", "b"]), unique=True, max_size=2).map(tuple)
    return tuple(Selected(name, draw(attributes)) for name in names if name in names_in(pattern))


def windows() -> st.SearchStrategy[Window | None]:
    """No window, or one of each kind; narrow ones too."""
    return often(
        st.none(),
        st.one_of(
            st.builds(Window, st.just("events"), st.sampled_from([7, 5, 3, 1, 0])),
            st.builds(Window, st.just("time"), st.sampled_from([12, 8, 5, 3, 1, 0])),
            st.builds(
                Window, st.just("attribute"), st.sampled_from([9, 5.5, 3, 1, 0]), st.sampled_from(["t", "t", "y"])
            ),
        ),
        1,
    )


@st.composite
def queries(draw: st.DrawFn, name: str = "q") -> Query:
    """A query with any of the clauses."""
    pattern = draw(patterns())
    return Query(
        name=name,
        pattern=pattern,
        strategy=draw(often(st.just(Strategy.ALL), st.sampled_from(list(Strategy)), 1)),
        selected=draw(select_lists(pattern)),
        universe=draw(often(st.none(), st.just(tuple(("S", type_name) for type_name in TYPES)), 5)),
        partition=draw(often(st.just(()), st.sampled_from(KEYS), 2)),
        window=draw(windows()),
        consume=draw(often(st.just(Consume.NONE), st.sampled_from(list(Consume)), 2)),
        limit=draw(often(st.none(), st.integers(0, 3), 4)),
    )


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """One query, sometimes two."""
    both = draw(st.integers(0, 3)) == 3
    return Program("CEQL", (draw(queries("q")), draw(queries("r"))) if both else (draw(queries("q")),))


# ---------------------------------------------------------------- streams


VALUES: dict[str, tuple[object, ...]] = {
    "x": (0, 1, 2, 3, 1, 2, None),
    "y": (0, 1, 2.5, 1, None),
    "g": (0, 1, 0, 1, 0, 1, None),
    "s": (*TEXTS, *TEXTS, None),
    "b": (True, False, True, False, None),
}
ODD = (None, "a", True, 1, 2.0, float("nan"))  # what a column of mixed kinds may hold as well
attributes = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()})
mixed_attributes = st.fixed_dictionaries({name: st.sampled_from(values + ODD) for name, values in VALUES.items()})
shifts = st.sampled_from([0] * 12 + [None, -3, 2])  # of the attribute t, which else is the time


# What is added to an attribute of a whole stream, so that integers are near where floats and 64 bits end.
large = st.sampled_from([0] * 9 + [2**53 - 1, -(2**53) - 2, 2**60, 2**63 - 4, -(2**63)])


def enlarged(events: list[EventDict], name: str, by: int) -> list[EventDict]:
    """The events with the integers of an attribute that much larger, as far as 64 bits go."""

    def larger(value: object) -> object:
        return min(value + by, 2**63 - 1) if type(value) is int else value

    return [{key: larger(value) if key == name else value for key, value in event.items()} for event in events]


@st.composite
def streams(draw: st.DrawFn, word: Listing[str] = (), max_size: int = 8) -> list[EventDict]:
    """Events in stream order with ties; `word` names the types of the first ones."""
    kinds = st.sampled_from([*FREQUENT_TYPES, *FREQUENT_TYPES, UNKNOWN])
    room = max(0, max_size - len(word))
    more = room // 2 if draw(st.booleans()) else 0
    types = [*word, *draw(st.lists(kinds, min_size=more, max_size=room))]
    mixed, spans, named = (draw(st.integers(0, 5)) == 5 for _ in range(3))
    end = 0
    events: list[EventDict] = []
    for type_name in types:
        end += draw(st.integers(0, 2))
        length = draw(st.integers(0, 4)) if spans else 0
        event: EventDict = {"type": type_name, **({"start": end - length, "end": end} if length else {"ts": end})}
        event |= draw(mixed_attributes if mixed else attributes)
        shift = draw(shifts)
        event |= {"t": None if shift is None else end + shift}
        event |= {"stream": draw(st.sampled_from([None, *STREAMS]))} if named else {}
        events.append(event if mixed else {name: value for name, value in event.items() if value is not None})
    events.sort(key=lambda e: (e.get("end", e.get("ts")), e.get("start", e.get("ts"))))
    events = enlarged(events, "x", draw(large))
    return draw(with_some_extremes(events, "xyt"))


EXTREMES = (-(2**63), -(2**53) - 1, 0, 2**53 + 1, 1700000000000000001, 1700000000000000101, 2**63 - 1, 2**63, 2**70 + 1)


@st.composite
def with_some_extremes(draw: st.DrawFn, events: list[EventDict], names: Listing[str]) -> list[EventDict]:
    """One time in ten the events with some of these attributes as large or as small as numbers come."""
    if draw(st.integers(0, 9)) < 9:
        return events
    one = st.tuples(st.integers(0, 7), st.sampled_from(names), st.sampled_from(EXTREMES))
    return with_extremes(events, draw(st.lists(one, max_size=4)))


def with_extremes(events: list[EventDict], chosen: Listing[tuple[int, str, int]]) -> list[EventDict]:
    """The events with some attributes of some of them as large or as small as numbers come."""
    changed = [dict(event) for event in events]
    for place, name, value in chosen:
        if place < len(changed):
            changed[place][name] = value
    return changed


@st.composite
def words(draw: st.DrawFn, pattern: Pattern) -> list[str]:
    """Types of events, one after the other, that the pattern without its filters matches."""
    match pattern:
        case Event(type_name):
            return [type_name]
        case Other(type_name):
            return [draw(st.sampled_from([name for name in TYPES if name != type_name]))]
        case Sequence(left, right):
            return draw(words(left)) + draw(words(right))
        case Repeat(inner):
            return [name for _ in range(draw(st.integers(1, 2))) for name in draw(words(inner))]
        case Union(left, right):
            return draw(words(draw(st.sampled_from([left, right]))))
    return draw(words(pattern.pattern))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Example:
    """A program and a stream for it, in stream order, with the places where it is cut into batches."""

    program: Program
    events: list[EventDict]
    cuts: list[int]

    @property
    def batches(self) -> list[list[EventDict]]:
        """The events, cut."""
        places = [0, *self.cuts, len(self.events)]
        return [self.events[start:end] for start, end in pairwise(places)]


@st.composite
def examples(draw: st.DrawFn) -> Example:
    """A program, a stream that often holds a word of its first pattern, and places to cut it."""
    program = draw(programs())
    planted = draw(often(words(program.queries[0].pattern), st.just([])))
    events = draw(streams(planted[:6]))
    cuts = draw(st.lists(st.integers(0, len(events)), max_size=3).map(sorted))
    return Example(program, events, cuts)
