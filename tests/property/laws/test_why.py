"""What `why` names as failed is exactly what would have to be true, for all languages."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests import strategies, strategies_epn, strategies_tesla
from tests.harness import some
from tests.relaxing import almost, can_relax, found_without, marked
from tests.strategies_composite import EventDict, composite_streams, eql_programs, step_programs
from tests.strategies_mixed import Mixed, mixed_examples

from weft.algebra.meaning import placed
from weft.algebra.meaning.program import ProgramEvaluation
from weft.algebra.meaning.stream import Happening
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.why import Failure, explained
from weft.errors import WeftError
from weft.languages import compile_text

SOME = some(6)
SETS = 14  # sets of events asked about, besides those that match


def compiled(text: str, language: str) -> Program | None:
    try:
        return replace(compile_text(text, language=language)[0], inputs=())
    except WeftError:
        return None


def programs_of(texts: st.SearchStrategy[str], language: str) -> st.SearchStrategy[Program]:
    return texts.map(lambda text: compiled(text, language)).filter(lambda program: program is not None)


def sets_of_events(
    count: int, matched: set[frozenset[int]], loose: list[frozenset[int]], seed: int
) -> list[frozenset[int]]:
    """The sets that match, some that almost do, and as many others as we can afford."""
    chance = Random(seed)
    others = [frozenset(chosen) for size in (1, 2, 3, 4) for chosen in combinations(range(count), size)]
    almost_matched = chance.sample(loose, min(SETS, len(loose)))
    near = [one - {p} for one in matched for p in one] + [one ^ {chance.randrange(count)} for one in matched]
    drawn = chance.sample(others, min(SETS, len(others)))
    return [
        one
        for one in dict.fromkeys([*sorted(matched, key=sorted)[:20], *near[:10], *almost_matched, *drawn])
        if 0 < len(one) < 7
    ]


def check(program: Program, events: list[EventDict], seed: int) -> None:
    """Nothing fails for exactly those sets of events that are a match."""
    stream = placed(program, events, time="ts", type="type")
    evaluation = ProgramEvaluation(program.queries, stream)
    for number, query in enumerate(program.queries):
        matched = {frozenset(match.positions) for match in evaluation.found[number] if match.positions}
        seen = evaluation.seen_by(number)
        for chosen in sets_of_events(len(stream), matched, almost(query, seen), seed) if stream else ():
            told = explained(query, seen, chosen)
            if not told.unclear:
                assert (not told.failures) == (chosen in matched), (query, sorted(chosen), told)
                check_exact(query, marked(seen, chosen), chosen, told.failures)


def check_exact(query: AnyQuery, seen: list[Happening], chosen: frozenset[int], failures: tuple[Failure, ...]) -> None:
    """Without all that failed the events are a match; while one of it is asked, they are none."""
    if failures and can_relax(query, failures):
        assert found_without(query, seen, chosen, failures), (query, sorted(chosen), failures)
        for one in failures:
            others = [failure for failure in failures if failure is not one]
            assert not found_without(query, seen, chosen, others), (query, sorted(chosen), failures, one)


seeds = st.integers(0, 2**32)


@SOME
@given(strategies.examples(), seeds)
def test_ceql_fails_nothing_for_exactly_the_matches(example: strategies.Example, seed: int) -> None:
    shown = tuple(
        replace(query, selected=None) if isinstance(query, Query) else query for query in example.program.queries
    )
    check(replace(example.program, queries=shown), example.events, seed)


@SOME
@given(programs_of(eql_programs(), "eql"), composite_streams(), seeds)
def test_eql_fails_nothing_for_exactly_the_matches(program: Program, events: list[EventDict], seed: int) -> None:
    check(program, events, seed)


@SOME
@given(programs_of(step_programs(), "step"), composite_streams(), seeds)
def test_step_fails_nothing_for_exactly_the_matches(program: Program, events: list[EventDict], seed: int) -> None:
    check(program, events, seed)


@SOME
@given(
    programs_of(strategies_tesla.texts(strategies_tesla.rule_sets()), "tesla"), strategies_tesla.rule_streams(), seeds
)
def test_tesla_fails_nothing_for_exactly_the_firings(program: Program, events: list[EventDict], seed: int) -> None:
    check(program, events, seed)


@SOME
@given(strategies_epn.examples(), seeds)
def test_epn_fails_nothing_for_exactly_the_matching_sets(example: strategies_epn.Example, seed: int) -> None:
    program = compiled(example.text, "epn")
    if program is not None:
        check(program, example.events, seed)


@SOME
@given(mixed_examples(), seeds)
def test_programs_of_several_languages_fail_nothing_for_exactly_the_matches(example: Mixed, seed: int) -> None:
    check(replace(example.program, inputs=()), example.events, seed)
