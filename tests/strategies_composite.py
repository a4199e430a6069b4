"""Random programs of EQL and Step, as syntax and as text, and random streams of points and intervals for them.

Conditions are weak more often than strong, and there are few types, so that most programs match something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from hypothesis import strategies as st
from tests.strategies import enlarged, large, with_some_extremes

from weft.languages import syntax as e
from weft.languages.counts import Count
from weft.languages.eql import syntax as eql
from weft.languages.eql.printer import to_source as print_eql
from weft.languages.step import syntax as step
from weft.languages.step.printer import to_source as print_step

TYPES = ("A", "B", "A", "B", "C")
NUMBERS = ("x", "y", "k")
TEXTS = ("a", "ab", "b", "")
OPERATORS = ("<=", ">=", "<=", ">=", "<>", "=", "<", ">")
EventDict = dict[str, object]
Make = Callable[[], str]  # a fresh variable


def fresh_names() -> Make:
    """Names that were not given before."""
    numbers = count(1)
    return lambda: f"v{next(numbers)}"


def name(text: str) -> e.Name:
    return e.Name(text)


# ---------------------------------------------------------------- conditions


@st.composite
def numbers_of(draw: st.DrawFn, variables: Sequence[str], earlier: Sequence[e.Expression] = ()) -> e.Expression:
    """A number made of one field, now and then of an earlier one."""
    field: e.Expression = e.Field(name(draw(st.sampled_from(variables))), name(draw(st.sampled_from(NUMBERS))))
    if earlier and draw(st.booleans()):
        field = draw(st.sampled_from(earlier))
    shape = draw(st.integers(0, 7))
    if shape == 5:
        return e.Negative(field)
    if shape == 6:
        return e.Arithmetic(draw(st.sampled_from(["+", "-", "*", "/"])), field, e.Literal(draw(st.integers(0, 2))))
    return field


@st.composite
def simple_conditions(draw: st.DrawFn, variables: Sequence[str], earlier: Sequence[e.Expression] = ()) -> e.Expression:
    """A comparison of two fields or of a field with a constant, a flag, or a test of a text."""
    shape = draw(st.integers(0, 9))
    operator = draw(st.sampled_from(OPERATORS))
    if shape <= 2:
        return e.Comparison(
            operator, draw(numbers_of(variables, earlier)), e.Literal(draw(st.sampled_from([0, 1, 2.5])))
        )
    if shape <= 6:
        return e.Comparison(operator, draw(numbers_of(variables, earlier)), draw(numbers_of(variables)))
    variable = name(draw(st.sampled_from(variables)))
    if shape == 7:
        return e.Field(variable, name("f"))
    if shape == 8:
        return e.Contains(e.Field(variable, name("s")), e.Literal(draw(st.sampled_from(TEXTS))))
    other = name(draw(st.sampled_from(variables)))
    return e.Comparison(operator, e.Field(variable, name("s")), e.Field(other, name("s")))


def conditions(variables: Sequence[str], earlier: Sequence[e.Expression] = ()) -> st.SearchStrategy[e.Expression]:
    """A condition over some of the variables."""
    simple = simple_conditions(variables, earlier)
    return st.one_of(simple, simple, simple, st.builds(e.Or, simple, simple), st.builds(e.Not, simple))


@st.composite
def counts(draw: st.DrawFn) -> Count:
    """`{n}`, `{n,m}` or `{n,}`."""
    least = draw(st.integers(1, 3))
    return Count(least, draw(st.sampled_from([least, least + 1, None])))


@st.composite
def selected_fields(draw: st.DrawFn, variables: Sequence[str]) -> tuple[e.Expression, ...]:
    """One or two fields, and sometimes a computed one."""
    fields = st.builds(e.Field, st.sampled_from(variables).map(name), st.sampled_from(["x", "s"]).map(name))
    found: list[e.Expression] = draw(st.lists(fields, min_size=1, max_size=2))
    if draw(st.integers(0, 2)) == 2:
        operator = draw(st.sampled_from(["+", "-", "*", "/"]))
        value = e.Arithmetic(operator, draw(numbers_of(variables)), draw(numbers_of(variables)))
        found.append(e.Computed(value, name("total")))
    return tuple(found)


# ---------------------------------------------------------------- EQL


@st.composite
def eql_patterns(draw: st.DrawFn, depth: int = 3, fresh: Make | None = None) -> eql.Pattern:
    """Patterns with all operators, every leaf with its own alias."""
    make = fresh or fresh_names()
    shape = (
        draw(st.sampled_from(["leaf", "next", "next", "next", "plus", "without", "union", "timed"])) if depth else ""
    )
    if shape in ("next", "without", "union"):
        node = {"next": eql.Next, "without": eql.Without, "union": eql.Union}[shape]
        return node(draw(eql_patterns(depth - 1, make)), draw(eql_patterns(depth - 1, make)))
    if shape == "plus":
        pattern = draw(eql_patterns(depth - 1, make))
        of_runs = any(isinstance(node, eql.Repeated) for node in pattern.walk())
        return eql.Repeated(pattern, None if of_runs else draw(st.none() | counts()))
    if shape == "timed":
        unit = draw(st.sampled_from([None, name("msec")]))
        return eql.Timed(draw(eql_patterns(depth - 1, make)), eql.Duration(draw(st.integers(0, 4)), unit))
    return eql.Leaf(name(draw(st.sampled_from(TYPES))), name(make()))


def visible(pattern: eql.Pattern) -> list[str]:
    """The variables that can be read of a pattern's matches."""
    if isinstance(pattern, eql.Leaf):
        return [pattern.variable.text]
    parts = [pattern.pattern] if isinstance(pattern, eql.Without) else list(pattern.children())
    return [variable for part in parts if isinstance(part, eql.Pattern) for variable in visible(part)]


def remembered(pattern: eql.Pattern, around: str = "") -> list[str]:
    """The variables of which PREV and ALL can speak: a run that repeats what must not happen is not known in there."""
    if isinstance(pattern, eql.Leaf):
        return [] if "+\\" in around else [pattern.variable.text]
    if isinstance(pattern, eql.Without):
        return [*remembered(pattern.pattern, around), *remembered(pattern.unwanted, around + "\\")]
    inside = "+" if isinstance(pattern, eql.Repeated) else around
    parts = [part for part in pattern.children() if isinstance(part, eql.Pattern)]
    return [variable for part in parts for variable in remembered(part, inside)]


@st.composite
def eql_conditions(draw: st.DrawFn, pattern: eql.Pattern) -> e.Expression:
    """A condition on some part of the pattern, in FILTER or not."""
    part = draw(st.sampled_from([node for node in pattern.walk() if isinstance(node, eql.Pattern)]))
    variables = visible(part)
    known = set(remembered(pattern))
    calls = [(v, f) for v in variables if v in known for f in ("PREV", "ALL")]
    fields = [eql.Call(f, e.Field(name(v), name("x"))) for v, f in calls]  # type: ignore[arg-type]
    if isinstance(part, eql.Without):
        variables, fields = [*variables, *visible(part.unwanted)], []
    if draw(st.integers(0, 5)) == 5:
        ends = [name(draw(st.sampled_from(variables))) for _ in range(2)]
        condition: e.Expression = eql.Occurs(*ends, eql.Duration(draw(st.integers(0, 9))))
    else:
        condition = draw(conditions(variables, fields))
    return eql.Call("FILTER", condition) if draw(st.booleans()) else condition


@st.composite
def eql_queries(draw: st.DrawFn, depth: int = 3, most: int = 3) -> eql.Query:
    """A query with up to so many conditions, and fields or not."""
    pattern = draw(st.integers(1, depth).flatmap(eql_patterns))
    found = tuple(draw(eql_conditions(pattern)) for _ in range(draw(st.integers(0, most))))
    selected = draw(st.none() | selected_fields(visible(pattern)))
    return eql.Query(pattern, selected, found)


def eql_programs(depth: int = 3, most: int = 3) -> st.SearchStrategy[str]:
    """Programs of one query, as text."""
    return eql_queries(depth, most).map(lambda query: print_eql(eql.Program((), (query,))))


# ---------------------------------------------------------------- Step


@st.composite
def step_conditions(draw: st.DrawFn, variables: Sequence[str], iterates: bool = False) -> e.Expression | None:
    """A condition that can stand behind an operator; none when nothing can be read there, and sometimes."""
    parts: list[e.Expression] = []
    if variables and draw(st.integers(0, 2)):
        earlier = [step.Previous(e.Field(name(v), name("x"))) for v in variables] if iterates else []
        parts.append(draw(conditions(variables, earlier)))
    if draw(st.integers(0, 3)) == 3:
        parts.append(
            e.Comparison(draw(st.sampled_from(OPERATORS)), step.Duration(), e.Literal(draw(st.integers(0, 9))))
        )
    if iterates and draw(st.booleans()):
        parts.append(e.Comparison(draw(st.sampled_from(OPERATORS)), step.Length(), e.Literal(draw(st.integers(1, 3)))))
    if not parts:
        return None
    whole = parts[0]
    for part in parts[1:]:
        whole = e.And(whole, part)
    return whole


@st.composite
def step_patterns(draw: st.DrawFn, depth: int = 3, fresh: Make | None = None) -> tuple[step.Pattern, tuple[str, ...]]:
    """Patterns with all operators, every leaf with its own alias, and the variables a condition may read."""
    make = fresh or fresh_names()
    shapes = ["leaf", "follow", "follow", "overlap", "repeat", "either", "before", "during"]
    shape = draw(st.sampled_from(shapes)) if depth else "leaf"
    if shape == "leaf":
        alias = make()
        condition = draw(step_conditions((alias,))) if draw(st.integers(0, 2)) == 2 else None
        return step.Leaf(name(draw(st.sampled_from(TYPES))), name(alias), condition), (alias,)
    left, of_left = draw(step_patterns(depth - 1, make))
    if shape == "repeat":
        condition, count = draw(step_conditions(of_left, True)), draw(st.none() | counts())
        return step.Repeat(left, condition, draw(st.booleans()), count), of_left
    right, of_right = draw(step_patterns(depth - 1, make))
    both = (*of_left, *of_right)
    if shape == "either":
        return step.Either(left, right), ()
    if shape == "overlap":
        return step.Overlap(left, right, draw(step_conditions(both))), both
    each = draw(st.booleans())
    if shape == "before":
        return step.Follow(draw(negated(left, both)), right, None, _each(right, each)), of_right
    if shape == "follow" or isinstance(right, step.Follow):
        return step.Follow(
            left, right, None if _negates(right) else draw(step_conditions(both)), _each(right, each)
        ), both
    unwanted, of_unwanted = draw(step_patterns(depth - 1, make))
    inner = step.Follow(draw(negated(unwanted, (*of_unwanted, *both))), right, draw(step_conditions(both)), each)
    return step.Follow(left, inner, draw(step_conditions(both)), each), both


@st.composite
def negated(draw: st.DrawFn, pattern: step.Pattern, variables: Sequence[str]) -> step.Negated:
    """What must not happen, often with a condition that reads the events about it too."""
    condition = draw(step_conditions(variables)) if draw(st.booleans()) else None
    if condition is not None and isinstance(pattern, step.Leaf) and draw(st.booleans()):
        own = pattern.condition
        return step.Negated(replace(pattern, condition=condition if own is None else e.And(own, condition)))
    return step.Negated(pattern, condition)


def _negates(node: step.Pattern) -> bool:
    return isinstance(node, step.Follow) and isinstance(node.left, step.Negated)


def _each(right: step.Pattern, each: bool) -> bool:
    """Around a '!' the same operator must stand on both sides, also where several '!' stand in a row."""
    return right.each if isinstance(right, step.Follow) and isinstance(right.left, step.Negated) else each


@st.composite
def step_queries(draw: st.DrawFn, depth: int = 3) -> step.Query:
    """A query, with fields or without."""
    pattern, readable = draw(st.integers(1, depth).flatmap(step_patterns))
    projection = None
    if readable and draw(st.booleans()):
        projection = draw(selected_fields(readable))
    return step.Query(name("Q"), pattern, projection, draw(st.sampled_from([None, "out.jsonl"])))


KINDS = {"x": "int", "y": "int", "k": "int", "s": "string", "f": "bool"}
EXTERNALS = tuple(
    step.External(
        name(type_name),
        tuple(step.Declared(name(field), name(kind)) for field, kind in KINDS.items()),
        f"{type_name}.jsonl",
        100.0,
    )
    for type_name in sorted(set(TYPES))
)


def step_programs(depth: int = 3) -> st.SearchStrategy[str]:
    """Programs of one query, as text."""
    return step_queries(depth).map(lambda query: print_step(step.Program("T", EXTERNALS, (query,))))


# ---------------------------------------------------------------- streams


VALUES: dict[str, tuple[object, ...]] = {
    "x": (0, 1, 2, 3, 1, 2, None),
    "y": (0, 1, 2, None),
    "k": (0, 1, 0, 1, None),
    "s": (*TEXTS, None),
    "f": (True, False, True, None),
}
attributes = st.fixed_dictionaries({attribute: st.sampled_from(values) for attribute, values in VALUES.items()})


@st.composite
def composite_streams(draw: st.DrawFn, max_size: int = 9, intervals: bool | None = None) -> list[EventDict]:
    """Events in stream order with ties: points, or points and intervals."""
    spans = draw(st.booleans()) if intervals is None else intervals
    end = 0
    events: list[EventDict] = []
    fewest = draw(st.sampled_from([max_size // 2, max_size // 2, 0]))
    for type_name in draw(st.lists(st.sampled_from([*TYPES, *TYPES, "D"]), min_size=fewest, max_size=max_size)):
        end += draw(st.integers(0, 3))
        length = draw(st.integers(0, 4)) if spans else 0
        times: EventDict = {"start": end - length, "end": end} if length else {"ts": end}
        events.append({"type": type_name, **times, **draw(attributes)})
    events.sort(key=lambda event: (event.get("end", event.get("ts")), event.get("start", event.get("ts"))))
    return draw(with_some_extremes(enlarged(events, "x", draw(large)), NUMBERS))
