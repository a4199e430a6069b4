"""Laws that the definition of TESLA's meaning obeys, on random rules and streams."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.strategies_tesla import (
    GIVEN,
    Draft,
    EventDict,
    constraint_lists,
    flat_rules,
    name,
    rule_sets,
    rule_streams,
    texts,
)

from weft.algebra.analysis.rule_reach import reach_of
from weft.algebra.analysis.rule_shapes import rule_of, shape_of
from weft.algebra.meaning import Match, matches
from weft.algebra.predicates import Literal
from weft.algebra.query import Program
from weft.algebra.rules import LookBack, Rule, Within
from weft.errors import ProgramError
from weft.languages import compile_text, parse_syntax
from weft.languages.tesla import syntax
from weft.languages.tesla.printer import to_source
from weft.tree import Node

SOME = settings(max_examples=40, deadline=None)
FEW = settings(max_examples=25, deadline=None)


def compiled(text: str) -> Program:
    return compile_text(text, language="tesla")[0]


def rules_of(program: Program) -> list[Rule]:
    return [rule for rule in program.queries if isinstance(rule, Rule)]


def run(rules: list[Rule], events: list[EventDict]) -> list[Match]:
    return matches(Program("tesla", tuple(rules)), events)


def keys(found: list[Match]) -> Counter[tuple[object, ...]]:
    return Counter((m.query, m.start, m.end, tuple(sorted(m.bindings.items())), repr(m.event)) for m in found)


def bindings(found: list[Match]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(sorted(m.bindings.items())) for m in found)


def with_picks(rule: Rule, pick: str, count: int | None) -> Rule:
    return replace(rule, lookbacks=tuple(replace(step, pick=pick, count=count) for step in rule.lookbacks))


# ---------------------------------------------------------------- text


@SOME
@given(rule_sets())
def test_printed_rules_parse_to_the_same_syntax(program: syntax.Program) -> None:
    assert parse_syntax(to_source(program), language="tesla") == program


@SOME
@given(texts(rule_sets()))
def test_random_rules_compile(text: str) -> None:
    program, warnings = compile_text(text, language="tesla")
    assert len(program.queries) == text.count("define ")
    assert all(warning.severity == "warning" for warning in warnings)


@FEW
@given(texts(rule_sets()), st.randoms(use_true_random=False))
def test_damaged_rules_compile_or_are_refused_with_a_place(text: str, random: object) -> None:
    words = text.split(" ")
    assert hasattr(random, "randrange")
    at, other = random.randrange(len(words)), random.randrange(len(words))
    words[at], words[other] = words[other], words[at]
    damaged = " ".join([*words[:at], *words[at + random.randrange(3) :]])
    try:
        compile_text(damaged, language="tesla")
    except ProgramError as error:
        for diagnostic in error.diagnostics:
            assert 1 <= diagnostic.line <= damaged.count("\n") + 1
            assert diagnostic.message


# ---------------------------------------------------------------- streams


@SOME
@given(texts(rule_sets()), rule_streams())
def test_matches_are_what_rules_bind(text: str, events: list[EventDict]) -> None:
    program = compiled(text)
    variables = {(rule.name, rule.variables) for rule in rules_of(program)}
    for match in matches(program, events):
        assert (match.query, tuple(match.bindings)) in variables
        assert match.positions == tuple(sorted({p for bound in match.bindings.values() for p in bound}))
        assert match.end == max(events[p]["ts"] for p in match.positions)
        assert match.start == min(events[p]["ts"] for p in match.positions)
        assert list(match.event) == ["v", "k", "s", "w"]


@SOME
@given(texts(rule_sets()), rule_streams(), st.integers(0, 20))
def test_later_events_change_nothing(text: str, events: list[EventDict], cut: int) -> None:
    program = compiled(text)
    prefix = [event for event in events if event["ts"] <= cut]  # type: ignore[operator]
    assert matches(program, prefix) == [m for m in matches(program, events) if m.end <= cut]


@SOME
@given(texts(rule_sets()), rule_streams(), st.integers(-100, 100))
def test_only_differences_of_times_matter(text: str, events: list[EventDict], shift: int) -> None:
    program = compiled(text)
    later = [{**event, "ts": event["ts"] + shift} for event in events]  # type: ignore[operator]
    moved = [replace(m, start=m.start + shift, end=m.end + shift, id="") for m in matches(program, events)]
    assert [replace(m, id="") for m in matches(program, later)] == moved


@SOME
@given(texts(flat_rules()), rule_streams(), rule_streams())
def test_events_out_of_reach_change_nothing(text: str, events: list[EventDict], old: list[EventDict]) -> None:
    (rule,) = rules_of(compiled(text))
    reach = max(reach_of(rule).values(), default=0)
    before = max([0, *(event["ts"] for event in old)])  # type: ignore[type-var]
    later = [{**event, "ts": event["ts"] + before + reach + 1} for event in events]  # type: ignore[operator]
    assume(rule.consumes == ())
    found = [m for m in run([rule], [*old, *later]) if m.end > before]
    alone = run([rule], later)
    shifted = [tuple(p + len(old) for p in m.positions) for m in alone]
    assert [m.positions for m in found] == shifted
    assert [m.event for m in found] == [m.event for m in alone]


# ---------------------------------------------------------------- selection


@SOME
@given(texts(flat_rules(size=2)), rule_streams())
def test_first_and_last_take_of_what_each_takes(text: str, events: list[EventDict]) -> None:
    (rule,) = rules_of(compiled(text))
    assume(len(rule.lookbacks) == 1)
    plain = replace(rule, consumes=())
    each = bindings(run([with_picks(plain, "each", None)], events))
    for pick in ("first", "last"):
        one, two = (bindings(run([with_picks(plain, pick, count)], events)) for count in (1, 2))
        assert one <= two <= each
        assert bindings(run([with_picks(plain, pick, 99)], events)) == each


@SOME
@given(texts(flat_rules()), rule_streams())
def test_one_event_is_taken_per_terminator_when_each_step_takes_one(text: str, events: list[EventDict]) -> None:
    (rule,) = rules_of(compiled(text))
    for pick in ("first", "last"):
        found = run([with_picks(rule, pick, 1)], events)
        terminators = [m.bindings[rule.terminator.variable] for m in found]
        assert len(set(terminators)) == len(terminators)


@SOME
@given(texts(flat_rules()), rule_streams())
def test_absences_and_conditions_only_take_away_when_each_is_taken(text: str, events: list[EventDict]) -> None:
    (rule,) = rules_of(compiled(text))
    each = replace(with_picks(rule, "each", None), consumes=())
    free = replace(
        each,
        conditions=(),
        terminator=replace(each.terminator, absences=()),
        lookbacks=tuple(replace(step, absences=()) for step in each.lookbacks),
    )
    assert bindings(run([each], events)) <= bindings(run([free], events))


@SOME
@given(texts(flat_rules()), rule_streams())
def test_consuming_only_takes_away_when_each_is_taken(text: str, events: list[EventDict]) -> None:
    (rule,) = rules_of(compiled(text))
    each = with_picks(rule, "each", None)
    for step in each.lookbacks:
        greedy = run([replace(each, consumes=(step.variable,))], events)
        assert keys(greedy) <= keys(run([replace(each, consumes=())], events))
        firings = Counter((m.bindings[step.variable], m.end) for m in greedy)
        assert len({taken for taken, _ in firings}) <= len(events)


# ---------------------------------------------------------------- summaries and absences


@st.composite
def windows_on_b(draw: st.DrawFn) -> tuple[str, int]:
    """Constraints on an event beside one that binds $a, and a window."""
    draft = Draft(["A"], ["C"], {"a": "v"})
    found = draw(constraint_lists(draft))
    predicate = to_source(
        syntax.Program((syntax.Rule(name("Q"), (), (syntax.Selected(syntax.Predicate(name("B"), found)),)),))
    )
    return predicate.split("from ")[1].strip().rstrip(";"), draw(st.integers(1, 8))


@SOME
@given(windows_on_b(), rule_streams())
def test_a_summary_is_over_the_events_that_each_would_take(window: tuple[str, int], events: list[EventDict]) -> None:
    wanted, ticks = window
    extent = f"within {ticks} from C"
    each = compiled(f"define X(v: double) from C(v = $a) and each {wanted} as P {extent} where v = P.v")
    counts = compiled(
        f"define Y(n: int, m: int, s: double, lo: double) from C(v = $a) "
        f"where n = Count({wanted} {extent}), m = Count({wanted}.v {extent}), "
        f"s = Sum({wanted}.v {extent}), lo = Min({wanted}.v {extent})"
    )
    absent = compiled(f"define Z() from C(v = $a) and not {wanted} {extent}")
    taken = matches(each, events)
    absences = {m.positions for m in matches(absent, events)}
    for match in matches(counts, events):
        values = [m.event["v"] for m in taken if m.bindings["C"] == match.positions]
        numbers = [value for value in values if isinstance(value, float)]
        assert match.event["n"] == len(values)
        assert match.event["m"] == len(numbers)
        assert match.event["s"] == (sum(numbers) if numbers else None)
        assert match.event["lo"] == min(numbers, default=None)
        assert (match.positions in absences) == (not values)


# ---------------------------------------------------------------- rules together


@SOME
@given(texts(rule_sets()), texts(flat_rules()), rule_streams())
def test_a_rule_whose_events_nobody_uses_changes_nothing(text: str, extra: str, events: list[EventDict]) -> None:
    program = compiled(text)
    (rule,) = rules_of(compiled(extra))
    both = run([*rules_of(program), replace(rule, name="Unused")], events)
    assert [m for m in both if m.query != "Unused"] == matches(program, events)
    alone = run([replace(rule, name="Unused")], events)
    assert [replace(m, number=0) for m in both if m.query == "Unused"] == alone


@SOME
@given(texts(flat_rules(size=2)), texts(flat_rules(name="Y", types=[*GIVEN, "X", "X", "X"])), rule_streams(ties=False))
def test_defined_events_may_as_well_be_given(bottom: str, top: str, events: list[EventDict]) -> None:
    lower = with_picks(rules_of(compiled(bottom))[0], "last", 1)  # at most one event at one instant
    (upper,) = rules_of(compiled(top))
    made = [{**m.event, "type": "X", "ts": m.end} for m in run([lower], events)]
    given_too = sorted([*events, *made], key=lambda event: event["ts"])  # type: ignore[arg-type, return-value]
    expected = [m for m in run([lower, upper], events) if m.query == "Y"]
    found = run([upper], given_too)
    assert Counter((m.end, repr(m.event)) for m in found) == Counter((m.end, repr(m.event)) for m in expected)


# ---------------------------------------------------------------- shapes


@SOME
@given(texts(rule_sets()), st.integers(1, 5))
def test_shapes_lose_nothing_and_are_the_same_for_other_constants(text: str, more: int) -> None:
    def other(node: Node) -> Node:
        match node:
            case Literal(int() | float() as value) if not isinstance(value, bool):
                return Literal(value + more)
            case Literal(str() as value):
                return Literal(value + "x")
            case Within(anchor, ticks):
                return Within(anchor, ticks + more)
        return node

    for rule in rules_of(compiled(text)):
        shape, constants = shape_of(rule)
        assert rule_of(shape, constants) == rule
        assert shape_of(shape)[0] == shape
        changed = rule.transform(other)
        assert isinstance(changed, Rule)
        assert shape_of(replace(changed, name="Other"))[0] == shape


@SOME
@given(texts(rule_sets()))
def test_equalities_are_related_conditions(text: str) -> None:
    for rule in rules_of(compiled(text)):
        for step in rule.lookbacks:
            assert isinstance(step, LookBack)
            for attribute, bound in step.events.equalities:
                assert attribute in ("v", "k", "s")
                assert bound.variable in rule.variables
