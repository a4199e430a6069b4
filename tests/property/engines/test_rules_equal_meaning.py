"""Rules fire on the engine as they are meant to: for any rules and streams, any batches, any restart, any lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches
from tests.harness import some
from tests.strategies_tesla import EventDict, alike, flat_rules, rule_sets, rule_streams, texts

import weft
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.algebra.rules import Rule
from weft.languages import compile_text
from weft.plan.partitioning.splits import Lane
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.rules.operator import RuleOperator
from weft.runtime.writing.match_rows import to_matches

SOME = some(30)
Row = tuple[object, ...]


@dataclass(frozen=True)
class Case:
    """Rules, a stream, and the stream in parts."""

    program: Program
    events: list[EventDict]
    parts: list[list[EventDict]]

    @property
    def rules(self) -> list[Rule]:
        """The rules of the program."""
        return [rule for rule in self.program.queries if isinstance(rule, Rule)]


@st.composite
def cases(draw: st.DrawFn, size: int = 3) -> Case:
    """Rules on their own, alike, or on top of each other, and a stream that is cut anywhere."""
    text = draw(st.one_of(texts(rule_sets(size)), texts(flat_rules(size)), alike(size), texts(rule_sets(size))))
    events = draw(rule_streams(max_size=16))
    cuts = sorted(draw(st.sets(st.integers(0, len(events)), max_size=4)))
    parts = [events[a:b] for a, b in pairwise([0, *cuts, len(events)]) if a < b]
    return Case(compile_text(text, language="tesla")[0], events, parts)


def row(match: object) -> Row:
    """A match of either kind; numbers of fields with their kinds.

    A column with one float in it is one of floats, of which there are two zeros.
    """
    bindings = tuple(sorted((name, tuple(bound)) for name, bound in match.bindings.items()))  # type: ignore[attr-defined]
    return match.query, match.start, match.end, match.positions, bindings, shown(match.event)  # type: ignore[attr-defined]


def shown(event: dict[str, object]) -> str:
    return repr({name: value + 0.0 if isinstance(value, float) else value for name, value in event.items()})


def meant(case: Case) -> Counter[Row]:
    return Counter(map(row, matches(case.program, case.events)))


def rows(found: Iterable[MatchBatch]) -> Counter[Row]:
    return Counter(map(row, to_matches(found)))


def pushed(matcher: Matcher, batches: Iterable[EventBatch]) -> Iterator[MatchBatch]:
    for batch in batches:
        yield from matcher.push(batch)
    yield from matcher.finish()


@SOME
@given(cases())
def test_one_batch(case: Case) -> None:
    chosen = plan(case.program)
    assert rows(pushed(Matcher(chosen), event_batches([case.events], chosen))) == meant(case)


@SOME
@given(cases(size=5))
def test_longer_rules(case: Case) -> None:
    chosen = plan(case.program)
    assert rows(pushed(Matcher(chosen), event_batches([case.events], chosen))) == meant(case)


@SOME
@given(cases())
def test_any_batches(case: Case) -> None:
    chosen = plan(case.program)
    assert rows(pushed(Matcher(chosen), event_batches(case.parts, chosen))) == meant(case)


@SOME
@given(cases())
def test_restarts(case: Case) -> None:
    """After each batch a new matcher goes on from the pages of the state."""
    chosen = plan(case.program)
    matcher = Matcher(chosen)
    pages: dict[str, bytes] = {}
    found: list[MatchBatch] = []
    for batch in event_batches(case.parts, chosen):
        found += matcher.push(batch)
        changes = matcher.snapshot()
        pages = {name: page for name, page in {**pages, **changes}.items() if page is not None}
        matcher = Matcher.restore(chosen, dict(pages))
        assert all(page is None or pages[name] == page for name, page in matcher.snapshot().items())
    assert rows(found) == meant(case)


@SOME
@given(cases(), st.integers(2, 3))
def test_lanes(case: Case, lanes: int) -> None:
    """Rules that do not feed each other run apart, and by key where they have one."""
    chosen = plan(case.program)
    found: list[MatchBatch] = []
    for group in chosen.lanes:
        shares = lanes if group.key else 1
        keys = [tuple(event.get(part[0]) for part in group.key) for event in case.events]
        distinct = list(dict.fromkeys(keys))
        for share in range(shares):
            keep = np.flatnonzero([distinct.index(key) % shares == share for key in keys])
            mine = [blocks.take(batch, keep) for batch in event_batches([case.events], chosen)]
            lane = Lane(share, group.queries, group.split, share, shares)
            found += pushed(Matcher(chosen, lane), [batch for batch in mine if len(batch)])
    assert sorted(number for group in chosen.lanes for number in group.queries) == list(range(len(chosen.queries)))
    assert rows(found) == meant(case)


@SOME
@given(cases())
def test_public_functions(case: Case) -> None:
    expected = list(map(row, weft.detect(case.events, case.program, engine="meaning")))
    assert list(map(row, weft.detect(case.events, case.program, engine="local"))) == expected
    assert Counter(expected) == meant(case)
    counts = weft.count(case.events, case.program, engine="local")
    assert counts == {rule.name: sum(query == rule.name for query, *_ in expected) for rule in case.rules}


@SOME
@given(cases())
def test_texts_that_are_forgotten_change_nothing(case: Case) -> None:
    chosen = plan(case.program)
    run = RuleOperator(case.rules)
    found: list[MatchBatch] = []
    for batch in event_batches(case.parts, chosen):
        found += run.push(batch)
        run.forget_texts()
    assert rows(found) == meant(case)


@SOME
@given(cases(), cases(size=2), st.integers(0, 16))
def test_rules_that_come_later_see_later_events(case: Case, other: Case, at: int) -> None:
    """As if there had been no events before; and those that were there before, and those that go, change nothing."""
    others = [rule for rule in other.rules if rule.name == "X"][:1]
    others = [rule for rule in others if set(rule.types) <= {"A", "B", "C", "D"}]
    named = [Rule("Late", *[getattr(rule, name) for name in _PARTS]) for rule in others]
    chosen = plan(Program("tesla", (*case.rules, *named)))
    early, late = case.events[:at], case.events[at:]
    batches = event_batches([part for part in (early, late) if part], chosen)
    run = RuleOperator(case.rules)
    found: list[MatchBatch] = []
    if early:
        found += run.push(batches[0])
    numbers = run.extend(named)
    gone = run.extend([Rule("Gone", *[getattr(rule, name) for name in _PARTS]) for rule in others])
    run.remove(gone)
    if late:
        found += run.push(batches[-1])
    alone = matches(Program("tesla", tuple(named)), late)
    shifted = Counter((m.query, tuple(p + len(early) for p in m.positions), shown(m.event)) for m in alone)
    seen = list(to_matches(found))
    assert Counter((m.query, m.positions, shown(m.event)) for m in seen if m.query == "Late") == shifted
    assert Counter(row(m) for m in seen if m.query != "Late") == meant(case)
    assert len(numbers) == len(named)


_PARTS = ("terminator", "lookbacks", "conditions", "fields", "consumes", "label")
