"""Ids are made of the events of a match: they do not depend on the input around it, its columns, other queries, or on
how the work is done. Programs of all five languages."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import strategies_epn, strategies_tesla
from tests.driving import event_batches, run_with_restarts
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs as composite_programs
from tests.spark.pipeline import cut, in_batch, matches_in
from tests.strategies import EventDict, examples
from tests.strategies_composite import composite_streams
from tests.strategies_mixed import mixed_examples

import weft
from weft.algebra.meaning import matches, words
from weft.algebra.meaning.values import attribute_of
from weft.algebra.query import Program
from weft.errors import UsageError
from weft.languages import compile_text
from weft.optimizer.pipeline import optimize
from weft.plan.planner import plan
from weft.runtime.identity.words import event_words
from weft.runtime.reading.order import Reading, read_events
from weft.runtime.spark.jobs.job import job_of
from weft.runtime.writing.match_rows import to_matches

SOME = some(20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
Case = tuple[Program, list[EventDict]]
Row = tuple[object, ...]


def compiled(text: str, language: str) -> Program:
    return replace(compile_text(text, language=language)[0], inputs=())


CASES: dict[str, st.SearchStrategy[Case]] = {
    "ceql": examples().map(lambda example: (example.program, example.events)),
    "eql and step": st.tuples(composite_programs, composite_streams()),
    "tesla": st.tuples(
        strategies_tesla.texts(strategies_tesla.rule_sets()).map(lambda text: compiled(text, "tesla")),
        strategies_tesla.rule_streams(),
    ),
    "epn": strategies_epn.examples().map(lambda example: (compiled(example.text, "epn"), example.events)),
    "mixed": mixed_examples().map(lambda example: (example.program, example.events)),
}
LANGUAGES = pytest.mark.parametrize("language", CASES)


def rows(found: Any, names: tuple[str, ...], shift: int = 0) -> Counter[Row]:
    """Matches of the queries with these names: what they are made of, and their ids."""
    return Counter(
        (m.query, m.start, m.end, tuple(p + shift for p in m.positions), bound(m.bindings, shift), m.id)
        for m in found
        if m.query in names
    )


def bound(bindings: Any, shift: int) -> Row:
    return tuple(sorted((name, tuple(p + shift for p in own)) for name, own in bindings.items() if own))


def detected(events: list[EventDict], program: Program, **options: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(weft.detect(events, program, rejects=[], **options))


@LANGUAGES
def test_engines_batches_and_restarts_agree(language: str) -> None:
    @SOME
    @given(CASES[language], st.lists(st.integers(0, 20), max_size=3))
    def compare(case: Case, cuts: list[int]) -> None:
        program, events = case
        meant = rows(matches(program, events), program.names)
        assert rows(detected(events, program), program.names) == meant
        assert rows(detected(events, program, optimize=False), program.names) == meant
        times = [event.get("end", event.get("ts")) for event in events]
        if all(a <= b for a, b in pairwise(times)) and all("ts" in event for event in events):
            bounds = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
            parts = [events[a:b] for a, b in pairwise(bounds)]
            chosen = plan(optimize(program))
            batches = event_batches(parts, chosen)
            if sum(map(len, batches)) == len(events):
                assert rows(to_matches(run_with_restarts(chosen, batches)), program.names) == meant

    compare()


@LANGUAGES
def test_more_columns_queries_and_lanes_change_nothing(language: str) -> None:
    text = "SELECT * WHERE A AS a ; B AS b FILTER a[more] = b[more]"
    more = compile_text(text, language="ceql")[0]
    more = replace(more, queries=tuple(replace(query, name="more") for query in more.queries))

    @SOME
    @given(CASES[language], st.integers(2, 5))
    def compare(case: Case, lanes: int) -> None:
        program, events = case
        meant = rows(detected(events, program), program.names)
        wider = [{**event, "more": number} for number, event in enumerate(events)]
        assert rows(detected(wider, program), program.names) == meant
        together = program.extended(replace(more, time_unit=program.time_unit))
        assert rows(detected(wider, together), program.names) == meant
        for strategy in ("key", "slice", "replicate", "rank"):
            try:
                shared = detected(events, program, lanes=lanes, strategy=strategy)
            except UsageError:  # not possible for this program
                continue
            assert rows(shared, program.names) == meant

    compare()


@LANGUAGES
def test_a_match_has_the_same_id_in_a_part_of_the_input(language: str) -> None:
    found = Counter[str]()

    @SOME
    @given(CASES[language], st.integers(0, 8), st.integers(0, 8))
    def compare(case: Case, begin: int, left: int) -> None:
        program, events = case
        ends = [event.get("end", event.get("ts")) for event in events]
        if any(not isinstance(end, int) for end in ends) or ends != sorted(ends):  # type: ignore[type-var]
            return
        cuts = [at for at in range(1, len(events)) if ends[at - 1] < ends[at]]  # type: ignore[operator]
        low, high = ([0, *cuts][min(begin, len(cuts))], [*cuts, len(events)][-1 - min(left, len(cuts))])
        if low >= high or len(matches(program, events)) > 500:
            return
        whole: dict[Row, set[object]] = {}
        for *what, id_ in rows(detected(events, program), program.names):
            whole.setdefault(tuple(what), set()).add(id_)
        for *what, id_ in rows(detected(events[low:high], program), program.names, shift=low):
            if what[3] and tuple(what) in whole:
                assert id_ in whole[tuple(what)]
                found["same"] += 1

    compare()
    assert found["same"]


@LANGUAGES
def test_lanes_on_spark_get_their_own_events_and_find_the_same(language: str) -> None:
    @SOME
    @given(CASES[language], st.integers(1, 5), st.lists(st.integers(0, 12), max_size=2))
    def compare(case: Case, lanes: int, cuts: list[int]) -> None:
        program, events = case
        meant = Counter((m.query, m.start, m.end, m.id) for m in matches(program, events))
        parts = cut(events, [at for at in cuts if at < len(events)])
        for strategy in ("auto", "slice", "replicate"):
            try:
                chosen = plan(optimize(program), strategy=strategy, lanes=lanes)
            except UsageError:  # not possible for this program
                continue
            job = job_of(chosen, Reading(time_unit=program.time_unit), lanes, positions=False)
            output = in_batch(parts, job)
            assert Counter((m.query, m.start, m.end, m.id) for m in matches_in(output)) == meant

    compare()


# ---------------------------------------------------------------- values

VALUES = st.one_of(
    st.integers(-2, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**53 + 1, 2**63, 2**70, 10**25, 0.1, -0.0, 1e300, float("inf"), float("nan")]),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**18), max_value=10**18),
    st.sampled_from([Decimal("1.00"), Decimal("0.1"), Decimal("12345678901234567890.125")]),
    st.text(max_size=70),
    st.booleans(),
    st.none(),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=6), st.sampled_from(["A", "größe", ""]))
def test_words_of_events_are_those_of_the_definition(values: list[tuple[Any, Any]], type_: str) -> None:
    events = [{"type": "t" + type_, "ts": at, "x": x, "y": y} for at, (x, y) in enumerate(values)]
    batches = list(read_events(events))
    made = np.concatenate([event_words(batch, ("x", "y")) for batch in batches]).tolist()
    meant = []
    for event in events:
        word = words.hash_bytes(("t" + type_).encode(), words.SEED)
        for name in ("x", "y"):
            word = words.hash_value(attribute_of(event, name), word)
        meant.append(word)
    assert made == meant


def test_equal_values_are_the_same_and_missing_is_a_value() -> None:
    hashes = [words.hash_value(value, 42) for value in (1, 1.0, Decimal("1.00"))]
    assert len(set(hashes)) == 1
    others = [words.hash_value(value, 42) for value in (None, True, "1", 0, 0.5, Decimal("0.50000000000000000001"), "")]
    assert len({hashes[0], *others}) == 8


def test_events_that_agree_are_told_apart_by_their_rank() -> None:
    program = weft.compile("SELECT * WHERE A AS a ; B AS b FILTER a[x] = b[x]")
    events: list[EventDict] = [{"type": "A", "ts": 1, "x": 1, "n": n} for n in (0, 1)]
    events += [{"type": "B", "ts": 2, "x": 1, "n": 2}]
    one, other = detected(events, program)
    assert one.id != other.id
    swapped = detected([events[1], events[0], events[2]], program)
    assert [m.id for m in swapped] == [one.id, other.id]  # the query cannot tell them apart
    by_key = detected(events, program, key=["n"])
    assert {m.id for m in by_key} == {m.id for m in detected([events[1], events[0], events[2]], program, key=["n"])}


def test_rules_of_one_type_have_ids_of_their_own() -> None:
    program = weft.compile("define X() from A();\ndefine X() from A();", language="tesla")
    found = detected([{"type": "A", "ts": 1}], program)
    assert len({m.id for m in found}) == len(found) == 2


def test_many_events_of_one_instant() -> None:
    program = weft.compile("SELECT * WHERE A AS a ; B AS b WITHIN 1 MILLISECONDS")
    events = [{"type": "A", "ts": 1, "x": n % 3} for n in range(200)] + [{"type": "B", "ts": 2}]
    local = detected(events, program)
    assert [m.id for m in local] == [m.id for m in matches(program, events)]
    assert len({m.id for m in local}) == 200
