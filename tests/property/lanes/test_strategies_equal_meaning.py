"""However the work is shared out, the matches are those that are meant, with their ids and in their order: programs of
all languages, every strategy, one to nine lanes, in rounds of any size. What is not sound is refused.

Each test counts: a strategy that no random program allows, or that never has a match to find, would prove nothing.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests import strategies_chain, strategies_epn, strategies_tesla
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs as composite_programs
from tests.strategies import EventDict, examples
from tests.strategies_composite import composite_streams
from tests.strategies_mixed import mixed_examples

from weft import api, engines
from weft.algebra.composites import CompositeFilter, CompositeQuery
from weft.algebra.contexts import FromUntil, Whole, Windows
from weft.algebra.meaning import matches
from weft.algebra.predicates import Comparison, Literal
from weft.algebra.query import Consume, Program, Query, Window
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.algebra.terms import Elapsed
from weft.errors import UsageError
from weft.languages import compile_text
from weft.runtime import local
from weft.runtime.execution import threaded_matcher as crew
from weft.runtime.operators.automaton import assignment as dealt
from weft.runtime.writing import match_rows

Case = tuple[Program, list[EventDict]]
Row = tuple[object, ...]
SOME = some(30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
STRATEGIES = ("key", "slice", "replicate", "query", "rank", "match")
DEALT = ("match:potc", "match:es", "match:mcee")
REFUSED = "is not possible for"


def row(m: Any) -> Row:
    bound = tuple(sorted((name, tuple(places)) for name, places in m.bindings.items() if places))
    return (m.query, m.id, m.start, m.end, tuple(m.positions), bound, json.dumps(dict(m.event), sort_keys=True))


def found(program: Program, events: list[EventDict], **sharing: Any) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = list(map(row, api.detect(events, program, rejects=[], **sharing)))
        counts = api.count(events, program, rejects=[], **sharing)
    assert counts == {name: sum(r[0] == name for r in rows) for name in program.names}
    return rows


def agree(rows: Iterable[Row], meant: Iterable[Row]) -> None:
    """The same matches in the same order; of one query with one interval and positions, ids decide."""
    listed, expected = list(rows), list(meant)
    assert sorted(listed, key=repr) == sorted(expected, key=repr)
    assert [(r[3], r[2], r[4], r[0]) for r in listed] == [(r[3], r[2], r[4], r[0]) for r in expected]


def in_order(program: Program, rows: Iterable[Row]) -> list[Row]:
    """By end, start, positions and query; rules that define one name stand where the first of them does."""
    places = {name: place for place, name in reversed(list(enumerate(q.name for q in program.queries)))}
    return sorted(rows, key=lambda r: (r[3], r[2], r[4], places[str(r[0])]))


@contextmanager
def unasked(events_in_round: int, threads: int) -> Iterator[None]:
    """Work is shared out to so many threads though nobody asks for it, whether or not that pays."""
    with (
        patch.dict("os.environ", {"WEFT_THREADS": str(threads)}),
        patch.object(local, "MANY", 2),
        patch.object(local, "ROUND", events_in_round),
        patch.object(engines, "GAIN", 0.0),
        patch.object(engines, "may_gain", return_value=True),
    ):
        yield


def check(cases: st.SearchStrategy[Case], strategies: Iterable[str] = STRATEGIES) -> Counter[str]:
    """Compare, for random cases; how often each strategy was allowed, refused, and had matches to find."""
    counted: Counter[str] = Counter()

    @SOME
    @given(cases, st.integers(1, 9), st.sampled_from([2, 5, 1 << 20]), st.sampled_from([1, 2]))
    def compare(case: Case, lanes: int, events_in_round: int, threads: int) -> None:
        program, events = case
        meant = in_order(program, map(row, matches(program, events)))
        for strategy in strategies:
            try:
                with patch.object(local, "ROUND", events_in_round), patch.object(dealt, "BLOCK", events_in_round % 7):
                    rows = found(program, events, strategy=strategy, lanes=lanes, threads=threads)
            except UsageError as error:
                if REFUSED not in str(error):
                    raise
                counted[f"{strategy} refused"] += 1
                continue
            agree(rows, meant)
            counted[f"{strategy} allowed"] += 1
            counted[f"{strategy} matches"] += len(meant)
        with unasked(events_in_round, lanes), patch.object(crew, "WAVE", 2), patch.object(crew, "AHEAD", 3):
            agree(found(program, events), meant)

    few = patch.multiple(match_rows, ROWS=2, SAMPLED=1), patch.multiple(crew, FEWEST=1, PUSHED=3)
    with few[0], few[1]:
        compare()
    return counted


def bounded(program: Program, ticks: int) -> Program:
    """Its composite queries with a bound on how long an occurrence lasts, its regular ones with a window."""
    limit = (Comparison("<=", Elapsed(), Literal(ticks)),)

    def change(query: Any) -> Any:
        match query:
            case CompositeQuery(pattern=pattern):
                return replace(query, pattern=CompositeFilter(pattern, limit))
            case Query(window=None):
                return replace(query, window=Window("time", ticks))
        return query

    return replace(program, queries=tuple(map(change, program.queries)))


def eased_program(program: Program) -> Program:
    """The program without what makes a match depend on those before it, and with bounds."""

    def change(query: Any) -> Any:
        match query:
            case Query():
                return replace(query, window=Window("time", 4), consume=Consume.NONE)
            case Rule():
                return replace(query, consumes=())
            case SituationQuery(situation=situation) if isinstance(situation.context, Whole | FromUntil):
                context = Windows(8, 4, by=situation.context.by)
                return replace(query, situation=replace(situation, context=context))
        return query

    return bounded(replace(program, queries=tuple(map(change, program.queries))), 4)


def cases_of(programs: Any, streams: Any) -> Any:
    """Programs as they are, and bounded."""
    return st.tuples(programs, streams, st.sampled_from([None, 2, 5])).map(
        lambda drawn: (drawn[0] if drawn[2] is None else bounded(drawn[0], drawn[2]), drawn[1])
    )


def compiled(text: str, language: str) -> Program:
    """The program without an order of sources, since the streams here come in their own."""
    return replace(compile_text(text, language=language)[0], inputs=())


def test_regular_queries() -> None:
    drawn = st.tuples(examples(), st.sampled_from([None, 2, 5]), st.booleans())

    def case(drawn: Any) -> Case:
        example, ticks, keyed = drawn
        program = example.program if ticks is None else bounded(example.program, ticks)
        if keyed:
            program = replace(program, queries=tuple(replace(q, partition=(("x",),)) for q in program.queries))
        return program, example.events

    counted = check(drawn.map(case), (*STRATEGIES, *DEALT))
    assert min(counted["key matches"], counted["slice matches"]) > 0
    assert min(counted["key refused"], counted["slice refused"]) > 0


def tied_queries() -> st.SearchStrategy[Program]:
    """CEQL queries whose variables are tied by equalities, without PARTITION BY."""
    two = ("A AS a; B AS b", "A AS a; B+ AS b", "A+ AS a; (B OR C) AS b")
    three = ("A AS a; B AS b; C AS c", "(A; B+) AS a; C AS b; A AS c")
    bodies = st.one_of(
        st.sampled_from(two).map(lambda text: f"{text} FILTER a[x] = b[x]"),
        st.sampled_from(three).map(lambda text: f"{text} FILTER a[x] = b[x] AND b[x] = c[x]"),
        st.sampled_from(three).map(lambda text: f"{text} FILTER a[x] = b[x]"),  # c is not tied
    )
    selections = st.sampled_from(["*", "a", "MAX *", "NEXT *", "LAST *", "ANY *", "STRICT *"])
    windows = st.sampled_from(["", "WITHIN 3 MILLISECONDS", "WITHIN 4 EVENTS"])
    texts = st.tuples(selections, bodies, windows).map(lambda t: f"SELECT {t[0]} FROM S WHERE {t[1]} {t[2]}")
    return texts.map(lambda text: compiled(text, "ceql"))


def test_regular_queries_with_tied_variables() -> None:
    values = st.sampled_from([1, 1, 1.0, 0, None, "1", True])
    kinds = st.tuples(st.sampled_from("ABC"), st.integers(0, 1), values)

    def stream(drawn: list[tuple[str, int, Any]]) -> list[EventDict]:
        now = 0
        events: list[EventDict] = []
        for kind, step, value in drawn:
            now += step
            events.append({"type": kind, "ts": now} | ({} if value is None else {"x": value}))
        return events

    counted = check(st.tuples(tied_queries(), st.lists(kinds, min_size=6, max_size=14).map(stream)))
    assert min(counted["key matches"], counted["key allowed"], counted["key refused"]) > 0


def test_composite_queries() -> None:
    counted = check(cases_of(composite_programs, composite_streams()))
    assert min(counted["slice matches"], counted["replicate matches"]) > 0
    assert min(counted["slice refused"], counted["replicate refused"]) > 0


def test_situations() -> None:
    whole = strategies_epn.examples().map(lambda e: (compiled(e.text, "epn"), e.events))
    counted = check(st.one_of(whole, whole.map(lambda case: (eased_program(case[0]), case[1]))))
    assert counted["slice matches"] > 0
    assert counted["slice refused"] > 0


def test_rules() -> None:
    texts = strategies_tesla.texts(strategies_tesla.rule_sets())
    programs = texts.map(lambda text: compiled(text, "tesla"))
    counted = check(st.tuples(programs, strategies_tesla.rule_streams()))
    assert counted["slice matches"] > 0
    assert counted["slice refused"] > 0


def test_chains() -> None:
    patterns = strategies_chain.patterns().map(lambda pattern: pattern.program())
    eased = patterns.map(
        lambda program: replace(program, queries=tuple(replace(q, skip=None) for q in program.queries))
    )
    counted = check(cases_of(st.one_of(patterns, eased), strategies_chain.streams()))
    assert counted["slice matches"] > 0


def test_mixed_programs() -> None:
    whole = mixed_examples().map(lambda e: (e.program, e.events))
    eased = whole.map(lambda case: (eased_program(case[0]), case[1]))
    counted = check(st.one_of(whole, eased, eased))
    assert counted["slice matches"] > 0
    assert counted["slice refused"] > 0
