"""Laws that the definition of EQL's and Step's meaning obeys, on random programs and streams."""

from __future__ import annotations

from collections import Counter
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies_composite import (
    EventDict,
    composite_streams,
    eql_programs,
    eql_queries,
    step_programs,
    step_queries,
)

from weft.algebra.analysis.renaming import canonical, rename
from weft.algebra.composites import (
    After,
    CompositeEvent,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Lengths,
    Overlap,
    Without,
)
from weft.algebra.composites import Composite as Pattern
from weft.algebra.meaning import Match, matches, placed
from weft.algebra.meaning.composites import occurrences
from weft.algebra.meaning.match import bindings_of
from weft.algebra.meaning.occurrences import Occurrence, history_key, joined
from weft.algebra.meaning.stream import place
from weft.algebra.query import Program
from weft.languages import compile_text, parse_syntax
from weft.languages.eql import syntax as eql
from weft.languages.eql.printer import to_source as print_eql
from weft.languages.step import syntax as step
from weft.languages.step.printer import to_source as print_step
from weft.schema import Catalog

SOME = settings(max_examples=30, deadline=None)


def compiled(text: str, language: str) -> CompositeQuery:
    (query,) = compile_text(text, language=language)[0].queries
    assert isinstance(query, CompositeQuery)
    return query


eql_patterns = eql_programs(2, 2).map(lambda text: compiled(text, "eql").pattern)
step_patterns = step_programs(2).map(lambda text: compiled(text, "step").pattern)
either_patterns = st.one_of(eql_patterns, step_patterns)


def run(pattern: Pattern, events: list[EventDict]) -> list[Match]:
    return matches(Program("eql", (CompositeQuery("q", pattern),)), events)


def found(pattern: Pattern, events: list[EventDict]) -> set[tuple[object, ...]]:
    return {(m.start, m.end, tuple(sorted(m.bindings.items()))) for m in run(pattern, events)}


def apart(left: Pattern, right: Pattern) -> tuple[Pattern, Pattern]:
    """The two with no variable in common."""
    names = {node.variable: f"r_{node.variable}" for node in right.walk() if isinstance(node, CompositeEvent)}
    return left, rename(right, names)


# ---------------------------------------------------------------- text


@SOME
@given(eql_queries())
def test_eql_prints_what_it_parses(query: eql.Query) -> None:
    program = eql.Program((), (query,))
    assert parse_syntax(print_eql(program), language="eql") == program


@SOME
@given(step_queries())
def test_step_prints_what_it_parses(query: step.Query) -> None:
    program = step.Program("T", (), (query,))
    assert parse_syntax(print_step(program), language="step") == program


# ---------------------------------------------------------------- matches of whole programs


@SOME
@given(
    st.one_of(eql_programs().map(lambda t: (t, "eql")), step_programs().map(lambda t: (t, "step"))), composite_streams()
)
def test_matches_are_a_set_in_match_order(program: tuple[str, str], events: list[EventDict]) -> None:
    text, language = program
    compiled_program, _ = compile_text(text, language=language)
    result = matches(compiled_program, events)
    stream = placed(compiled_program, events, time="ts", type="type")
    keys = [(m.end, m.start, m.positions) for m in result]
    assert keys == sorted(keys)
    assert max(Counter(tuple(sorted(m.bindings.items())) for m in result).values(), default=1) == 1
    for m in result:
        assert m.positions == tuple(sorted({p for bound in m.bindings.values() for p in bound}))
        query = compiled_program.queries[0]
        named = {field.name for field in query.fields}  # type: ignore[union-attr]
        if query.all_fields:  # type: ignore[union-attr]
            bound = ((variable, stream[p]) for variable, positions in m.bindings.items() for p in positions)
            named |= {
                f"{variable}.{name}"
                for variable, one in bound
                for name in one.shown
                if one.attributes[name] is not None
            }
        assert set(m.event) == named


@SOME
@given(either_patterns, composite_streams())
def test_names_of_variables_do_not_matter(pattern: Pattern, events: list[EventDict]) -> None:
    shared, names = canonical(pattern)
    assert canonical(rename(pattern, {name: f"other_{name}" for name in names}))[0] == shared
    renamed = {
        (start, end, tuple(sorted((names[int(variable)], bound) for variable, bound in bindings)))
        for start, end, bindings in found(shared, events)
    }
    assert renamed == found(pattern, events)


# ---------------------------------------------------------------- operators


@SOME
@given(either_patterns, either_patterns, composite_streams())
def test_union_and_overlap_commute(p: Pattern, q: Pattern, events: list[EventDict]) -> None:
    left, right = apart(p, q)
    assert found(CompositeUnion(left, right), events) == found(CompositeUnion(right, left), events)
    assert found(CompositeUnion(left, right), events) == found(left, events) | found(right, events)
    assert found(Overlap(left, right), events) == found(Overlap(right, left), events)


@SOME
@given(either_patterns, either_patterns, composite_streams())
def test_every_pick_takes_some_of_each(p: Pattern, q: Pattern, events: list[EventDict]) -> None:
    left, right = apart(p, q)
    each = found(CompositeSequence(left, right, "each"), events)
    first = found(CompositeSequence(left, right, "first"), events)
    following = found(CompositeSequence(left, right, "next"), events)
    assert first <= each
    assert following <= each
    lefts = set(left.variables)
    left_parts = [{b for b in bindings if b[0] in lefts} for _, _, bindings in first]
    assert all(left_parts.count(part) == 1 for part in left_parts)


@SOME
@given(either_patterns, composite_streams())
def test_runs_of_length_one_are_the_members(p: Pattern, events: list[EventDict]) -> None:
    members = found(p, events)
    assert found(CompositeRepeat(p, "each", lengths=Lengths(1, 1)), events) == members
    assert found(CompositeRepeat(p, "longest", lengths=Lengths(1, 1)), events) == members
    assert members <= found(CompositeRepeat(p, "each"), events)
    assert members <= found(CompositeRepeat(p, "next"), events)
    assert found(CompositeRepeat(p, "longest"), events) <= found(CompositeRepeat(p, "each"), events)


@SOME
@given(either_patterns, either_patterns, composite_streams())
def test_without_takes_away(p: Pattern, q: Pattern, events: list[EventDict]) -> None:
    pattern, unwanted = apart(p, q)
    everything = found(pattern, events)
    for when in ("before", "between", "during"):
        kept = found(Without(pattern, unwanted, when), events)  # type: ignore[arg-type]
        assert kept <= everything
    if not found(unwanted, events):
        assert kept == everything


@SOME
@given(either_patterns, st.integers(0, 5), composite_streams())
def test_after_moves_the_end_only(p: Pattern, ticks: int, events: list[EventDict]) -> None:
    assert found(After(p, ticks), events) == {(s, e + ticks, b) for s, e, b in found(p, events)}


types = st.sampled_from(["A", "B", "C"])


@settings(max_examples=75, deadline=None)
@given(types, types, types, composite_streams())
def test_next_without_conditions_is_associative(a: str, b: str, c: str, events: list[EventDict]) -> None:
    first, second, third = CompositeEvent(a, "a"), CompositeEvent(b, "b"), CompositeEvent(c, "c")
    left = CompositeSequence(CompositeSequence(first, second, "next"), third, "next")
    right = CompositeSequence(first, CompositeSequence(second, third, "next"), "next")
    assert found(left, events) == found(right, events)


# ---------------------------------------------------------------- the order of complete histories


def is_smaller(one: list[int], other: list[int]) -> bool:
    """NEXT section 3.2, to the letter: the tie-breaking order of two lists of times."""
    lengths = len(one), len(other)
    for i in range(1, min(lengths) + 1):
        if one[-i] != other[-i]:
            return one[-i] < other[-i]
    return lengths[1] < lengths[0]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted).map(tuple), min_size=1, max_size=3),
        min_size=2,
        max_size=2,
    )
)
def test_history_key_sorts_as_the_document_says(histories: list[list[tuple[int, int]]]) -> None:
    one, other = (Occurrence(tuple(times), ()) for times in histories)
    flat = [[time for pair in times for time in pair] for times in histories]
    assert (history_key(one) < history_key(other)) == is_smaller(*flat)


@SOME
@given(eql_patterns, eql_patterns, composite_streams())
def test_next_takes_the_immediate_successors(p: Pattern, q: Pattern, events: list[EventDict]) -> None:
    left, right = apart(p, q)
    stream = place(events, Catalog(), "ts", "type")
    lefts, rights = occurrences(left, stream), occurrences(right, stream)

    def times(one: Occurrence) -> list[int]:
        return [time for pair in one.times for time in pair]

    def succeeds(one: Occurrence, other: Occurrence) -> bool:
        rivals = [r for r in rights if one.is_before(r)]
        return one.is_before(other) and not any(is_smaller(times(r), times(other)) for r in rivals)

    successors = [joined(one, other) for one, other in product(lefts, rights) if succeeds(one, other)]
    expected = {frozenset(bindings_of(dict(one.bound)).items()) for one in successors}
    assert {frozenset(m.bindings.items()) for m in run(CompositeSequence(left, right, "next"), events)} == expected
