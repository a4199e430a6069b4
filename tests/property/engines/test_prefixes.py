"""Patterns with a common prefix equal the definition when the prefix is evaluated once, for all policies."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.property.engines.test_blocks import case_of
from tests.property.engines.test_engines_equal_meaning import event_batches, rows_of
from tests.property.engines.test_situations_equal_meaning import Case, check_lanes, meant, run
from tests.strategies_blocks import CONTEXTS, TIES, block_streams, policies
from tests.strategies_epn import EventDict

import weft
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.algebra.situations import SituationQuery
from weft.optimizer.pipeline import trace
from weft.optimizer.rules.share_prefix import prefixes_of, share_prefix
from weft.optimizer.rules.split_sequence import split_sequence, splits_of
from weft.plan import layers
from weft.plan.operators import SituationOp
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.statistics import Statistics

TAILS = (("C",), ("D",), ("C", "D"), ("D", "E"), ("A",), ("B", "E"))


@st.composite
def alike(draw: st.DrawFn) -> str:
    """Two or three sequences that begin with the same two or three slots, under other names and policies."""
    count = draw(st.integers(2, 3))
    ties = [draw(st.sampled_from(TIES)) if draw(st.integers(0, 3)) else "" for _ in range(count - 1)]
    single = draw(st.sampled_from(["", "", "{0}.x > 0"]))
    context = draw(st.sampled_from(CONTEXTS))
    texts = []
    for number in range(draw(st.integers(2, 3))):
        types = [*"ABC"[:count], *draw(st.sampled_from(TAILS))]
        names = [f"{letter}{number}" for letter in "abcdef"[: len(types)]]
        conditions = [tie.format(names[at], names[at + 1]) for at, tie in enumerate(ties) if tie]
        conditions += [single.format(names[1])] if single else []
        if len(types) > count + 1 and draw(st.booleans()):
            conditions.append(draw(st.sampled_from(TIES)).format(*names[-2:]))
        slots = ", ".join(f"{type_} {name}" for type_, name in zip(types, names, strict=True))
        where = f"where {' and '.join(conditions)}" if conditions else ""
        texts.append(f"pattern P{number} sequence({slots})\n{where}\n{draw(policies(names, types))}\n{context}")
    return "\n".join(texts)


def sharing(program: Program, early: int = 0) -> Program:
    """The program whose patterns share as much of their beginnings as each can, with so many blocks early."""
    shared = []
    for query in program.queries:
        assert isinstance(query, SituationQuery)
        situation = query.situation
        if counts := prefixes_of(situation):
            situation = share_prefix(situation, counts[0])
        if early in splits_of(situation):
            situation = split_sequence(situation, early)
        shared.append(replace(query, situation=situation))
    return replace(program, queries=tuple(shared))


def beginnings(program: Program) -> int:
    """How many operators of a program's plan share a beginning with another."""
    firsts = Counter(
        op.beginning.query for op in plan(program).operators if isinstance(op, SituationOp) and op.beginning is not None
    )
    return sum(count for count in firsts.values() if count > 1)


def test_shared_beginnings_find_what_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "keyed_sequence", lambda situation: None)
    seen: Counter[str] = Counter()

    @some(120)
    @given(alike(), block_streams(), st.integers(1, 20), st.integers(0, 1))
    def check(text: str, events: list[EventDict], size: int, early: int) -> None:
        case = case_of(text, events, size)
        program = sharing(case.program, early)
        expected = meant(case)
        chosen = plan(program)
        assert rows_of(run(chosen, event_batches(case.parts, chosen))) == expected
        if beginnings(program):
            seen.update(["shared", *(["with matches"] if expected else [])])

    check()
    assert seen["shared"] > 60, seen
    assert seen["with matches"] > seen["shared"] // 8, seen


def test_beginnings_by_key_find_what_is_meant() -> None:
    """A beginning may be a sequence by key, for which there is a kernel of its own."""

    @some(40)
    @given(alike(), block_streams(), st.integers(1, 20))
    def check(text: str, events: list[EventDict], size: int) -> None:
        case = case_of(text, events, size)
        chosen = plan(sharing(case.program))
        assert rows_of(run(chosen, event_batches(case.parts, chosen))) == meant(case)

    check()


def test_shared_beginnings_survive_restarts() -> None:
    @some(30)
    @given(alike(), block_streams())
    def check(text: str, events: list[EventDict]) -> None:
        case = case_of(text, events, 4)
        chosen = plan(sharing(case.program, 1))
        matcher, found, pages = Matcher(chosen), [], dict[str, bytes]()
        for batch in event_batches(case.parts, chosen):
            found += matcher.push(batch)
            pages = {name: page for name, page in {**pages, **matcher.snapshot()}.items() if page is not None}
            matcher = Matcher.restore(chosen, dict(pages))
        assert rows_of([*found, *matcher.finish()]) == meant(case)

    check()


@some(20)
@given(alike(), block_streams())
def test_shared_beginnings_in_lanes(text: str, events: list[EventDict]) -> None:
    case = case_of(text, events, 20)
    check_lanes(Case(sharing(case.program), case.events, case.parts), 2)


RATES = Statistics(rates=dict.fromkeys("ABCDE", 100.0), selectivity={"A.k = B.k": 0.01, "A.x <= B.x": 0.01})


def test_what_rates_choose_finds_what_is_meant() -> None:
    """Through the public functions, rewritten or not: the same matches with the same ids in the same order."""
    fired: Counter[str] = Counter()

    @some(60)
    @given(alike(), block_streams())
    def check(text: str, events: list[EventDict]) -> None:
        program = case_of(text, events, 6).program
        fired.update({rewrite.rule for rewrite in trace(program, RATES).rewrites})
        expected = [(m.query, m.start, m.end, m.positions) for m in matches(program, events)]
        found = [list(weft.detect(events, program, statistics=RATES, optimize=chosen)) for chosen in (True, False)]
        assert [(m.query, m.start, m.end, m.positions) for m in found[0]] == expected
        assert [m.id for m in found[0]] == [m.id for m in found[1]]
        fired.update(["with matches"] if expected else [])

    check()
    assert fired["share_prefix"] > 10, fired
    assert fired["with matches"] > 10, fired


@some(20)
@given(alike(), block_streams(), st.integers(1, 9))
def test_live_programs_find_what_is_meant(text: str, events: list[EventDict], size: int) -> None:
    program = case_of(text, events, 6).program
    live = weft.live(program, statistics=RATES)
    found = [m for at in range(0, len(events), size) for m in live.push(events[at : at + size])]
    found += live.finish()
    expected = [(m.query, m.start, m.end, m.positions) for m in matches(program, events)]
    assert sorted((m.query, m.start, m.end, m.positions) for m in found) == sorted(expected)
