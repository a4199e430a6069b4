"""Rules, automata and situations go on in other forms with what they keep, at any boundary of batches, restarts among
them; they find what is meant. Forms are forced here; `test_adapting.py` lets statistics choose them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches, keep
from tests.harness import some
from tests.property.engines.test_prefixes import alike as patterns_alike
from tests.property.engines.test_rules_equal_meaning import row
from tests.property.forms.test_rewriting import look_backs
from tests.strategies import EventDict, conditions, names_in, patterns, queries, streams
from tests.strategies_blocks import block_patterns, block_streams
from tests.strategies_tesla import alike, rule_sets, rule_streams, texts

from weft.algebra.meaning import matches
from weft.algebra.patterns import Correlate, Pattern
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.languages import compile_text
from weft.optimizer.rules.order_conditions import order_conditions
from weft.optimizer.rules.order_lookbacks import order_lookbacks
from weft.optimizer.rules.share_prefix import prefixes_of, share_prefix
from weft.optimizer.rules.split_sequence import split_sequence, splits_of
from weft.plan import layers
from weft.plan.planner import plan
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.writing.match_rows import to_matches

Seen = Counter[str]
Form = Callable[[AnyQuery, Program, Random], AnyQuery]


def check(program: Program, events: list[EventDict], seed: int, form: Form, seen: Seen) -> None:
    """Push events in pieces; between these some queries take other forms, and the matcher is made again."""
    dice = Random(seed)
    cuts = sorted(dice.sample(range(len(events) + 1), min(len(events), dice.randint(1, 8))))
    parts = [events[a:b] for a, b in pairwise([0, *cuts, len(events)]) if a < b]
    chosen = plan(program)
    matcher, pages, found = Matcher(chosen), dict[str, bytes](), list[MatchBatch]()
    changes = 0
    for batch in event_batches(parts, chosen):
        changes += replace_queries(matcher, program, form, dice)
        found += matcher.push(batch)
        keep(pages, matcher.snapshot())
        if dice.random() < 0.4:
            matcher = Matcher.rebuilt(json.loads(json.dumps(matcher.structure())), dict(pages))
    found += matcher.finish()
    expected = Counter(map(row, matches(program, events)))
    assert Counter(map(row, to_matches(found))) == expected
    seen.update(streams=1, changes=changes, changed=bool(changes))
    seen["changed with matches"] += bool(changes and expected)


def replace_queries(matcher: Matcher, program: Program, form: Form, dice: Random) -> int:
    """Give some queries another form; how many."""
    wanted = {n: form(query, program, dice) for n, query in enumerate(program.queries) if dice.random() < 0.6}
    running = matcher.queries(wanted)
    changed = {number: query for number, query in wanted.items() if query != running[number]}
    matcher.replace_queries(changed)
    return len(changed)


def report(seen: Seen, changed: int, found: int) -> None:
    """Say how often forms changed, and refuse a run in which that was rare."""
    print(f"\n{dict(seen)}")
    assert seen["changed"] >= seen["streams"] * changed // 100, seen
    assert seen["changed with matches"] >= seen["changed"] * found // 100, seen


# ---------------------------------------------------------------- TESLA: the order of look-backs


def turned(query: AnyQuery, program: Program, dice: Random) -> AnyQuery:
    """A rule with its look-backs in some order that is allowed, or as it is."""
    assert isinstance(query, Rule)
    free = not any(query.defines in other.reads for other in program.queries)
    names = [step.variable for step in query.lookbacks]
    after = order_lookbacks(query, dice.sample(names, len(names)), free)
    assert isinstance(after, Rule)
    return after


def test_rules_take_their_look_backs_in_other_orders() -> None:
    seen: Seen = Counter()
    programs = st.one_of(look_backs(), look_backs(), texts(rule_sets(3)), alike(3))

    @some(120)
    @given(programs, rule_streams(max_size=16), st.integers(0, 1 << 30))
    def each(text: str, events: list[EventDict], seed: int) -> None:
        check(compile_text(text, language="tesla")[0], events, seed, turned, seen)

    each()
    report(seen, 15, 20)


# ---------------------------------------------------------------- CEQL: the order of conditions


@st.composite
def conditioned(draw: st.DrawFn) -> Program:
    """A query with several conditions on one pattern, some on parts of it."""
    pattern: Pattern = draw(patterns())
    names = names_in(pattern)
    for _ in range(draw(st.integers(2, 4)) if names else 0):
        pattern = Correlate(pattern, draw(conditions(names)))
    return Program("CEQL", (replace(draw(queries()), pattern=pattern, selected=None),))


def shuffled(query: AnyQuery, program: Program, dice: Random) -> AnyQuery:
    """A query with conditions on one and the same pattern in some order."""
    assert isinstance(query, Query)
    ranks: dict[object, float] = {}
    after = query.pattern.transform(
        lambda node: order_conditions(node, lambda condition: ranks.setdefault(condition, dice.random())), Pattern
    )
    assert isinstance(after, Pattern)
    return replace(query, pattern=after)


def test_conditions_are_tested_in_other_orders() -> None:
    seen: Seen = Counter()

    @some(150)
    @given(conditioned(), streams(max_size=12), st.integers(0, 1 << 30))
    def each(program: Program, events: list[EventDict], seed: int) -> None:
        check(program, events, seed, shuffled, seen)

    each()
    report(seen, 15, 10)


# ---------------------------------------------------------------- EPN: what is worked out early, and found once


def split(query: AnyQuery, program: Program, dice: Random) -> AnyQuery:
    """A pattern with some of its blocks worked out early."""
    assert isinstance(query, SituationQuery)
    return replace(query, situation=split_sequence(query.situation, dice.choice(splits_of(query.situation))))


def shared(query: AnyQuery, program: Program, dice: Random) -> AnyQuery:
    """The same that finds, or does not find, its first slots with others, where partitions have a bound of time."""
    query = split(query, program, dice)
    assert isinstance(query, SituationQuery)
    counts = (0, *prefixes_of(query.situation)) if query.situation.context.bound is not None else (0,)
    return replace(query, situation=share_prefix(query.situation, dice.choice(counts)))


@pytest.mark.parametrize("by_key", [False, True])
def test_sequences_are_split_in_other_ways(monkeypatch: pytest.MonkeyPatch, by_key: bool) -> None:
    if not by_key:
        monkeypatch.setattr(layers, "keyed_sequence", lambda situation: None)
    seen: Seen = Counter()

    @some(80)
    @given(block_patterns(("sequence",)), block_streams(20), st.integers(0, 1 << 30))
    def each(text: str, events: list[EventDict], seed: int) -> None:
        check(compile_text(text, language="epn")[0], events, seed, split, seen)

    each()
    report(seen, 50, 10)


@pytest.mark.parametrize("by_key", [False, True])
def test_beginnings_are_shared_and_not_any_more(monkeypatch: pytest.MonkeyPatch, by_key: bool) -> None:
    if not by_key:
        monkeypatch.setattr(layers, "keyed_sequence", lambda situation: None)
    seen: Seen = Counter()

    @some(100)
    @given(patterns_alike(), block_streams(40), st.integers(0, 1 << 30))
    def each(text: str, events: list[EventDict], seed: int) -> None:
        check(compile_text(text, language="epn")[0], events, seed, shared, seen)

    each()
    report(seen, 50, 10)


def test_a_beginning_knows_nothing_of_partitions_that_were_open_before_it() -> None:
    """Were it asked at once, B after the change would be thought to end nothing, as A before it was not seen."""
    text = "\n".join(
        f"pattern P{number} sequence(A a, B b, {last} c) where a.k = b.k context fixed 100"
        for number, last in enumerate("CD")
    )
    program, _ = compile_text(text, language="epn")
    forms = {number: with_beginning(query) for number, query in enumerate(program.queries)}
    events: list[EventDict] = [{"type": type_, "ts": n, "k": 1} for n, type_ in enumerate("AABCDBC")]
    later = [{**event, "ts": 200 + n} for n, event in enumerate(events)]
    chosen = plan(program)
    matcher = Matcher(chosen)
    found: list[MatchBatch] = []
    for number, batch in enumerate(event_batches([events[:2], events[2:], later[:2], later[2:]], chosen)):
        if number == 1:
            matcher.replace_queries(forms)
        found += matcher.push(batch)
    found += matcher.finish()
    assert counted(found) == counted_meant(program, [*events, *later])
    assert counted(found).total() > 4


def with_beginning(query: AnyQuery) -> AnyQuery:
    assert isinstance(query, SituationQuery)
    return replace(query, situation=share_prefix(query.situation, 2))


def counted(found: Iterable[MatchBatch]) -> Counter[object]:
    return Counter(map(row, to_matches(found)))


def counted_meant(program: Program, events: list[EventDict]) -> Counter[object]:
    return Counter(map(row, matches(program, events)))
