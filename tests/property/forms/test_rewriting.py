"""Rewriting by cost changes no match: any program of any language, rates and stream; and it really happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.strategies import Example, examples
from tests.strategies_blocks import block_patterns, block_streams
from tests.strategies_chains import RATES, chain_streams, chain_texts, union_texts
from tests.strategies_composite import composite_streams, eql_programs, step_programs
from tests.strategies_mixed import Mixed, mixed_examples
from tests.strategies_tesla import rule_sets, rule_streams, texts

from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.api import detect
from weft.errors import ProgramError
from weft.languages import compile_text
from weft.optimizer.pipeline import trace
from weft.statistics import Statistics

pytestmark = [pytest.mark.filterwarnings("ignore::weft.DataWarning")]
OFTEN = st.fixed_dictionaries({type_: st.sampled_from([1.0, 100.0, 1e4, 1e6]) for type_ in "ABC"})
ENGINES = ("local", "meaning")
RAN: set[str] = set()
TOGETHER = "what was seen is counted over all tests"
SEEN: Counter[str] = Counter()  # rewrites by rule, and streams with matches of rewritten programs
RULES = (
    *("rebracket_next", "lift_plain_conditions", "spread_key", "reorder_union", "rebracket_each", "order_overlap"),
    *("order_lookbacks", "order_conditions", "push_where_into_events", "split_sequence"),
)


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """Say how often rewrites fired, and refuse a run in which one never did."""
    yield
    print(f"\nrewrites: {dict(SEEN)}")
    for name in () if len(RAN) < 8 else RULES:
        assert SEEN[name] > 0, f"{name} never happened in {dict(SEEN)}"
        # Chains with plain conditions that are lifted seldom match; `test_forbidden_rewrites` has such streams.
        some_found = SEEN[f"{name}, with matches"] > 0 or name == "lift_plain_conditions"
        assert some_found, f"{name} had no match to change in {dict(SEEN)}"


def compiled(text: str, language: str) -> Program | None:
    try:
        return replace(compile_text(text, language=language)[0], inputs=())
    except ProgramError:
        return None


def rows(found: Iterable[Any]) -> list[tuple[object, ...]]:
    """Matches in match order, as all engines give them."""
    in_order = sorted(found, key=lambda m: (m.end, m.start, m.positions, m.id))
    return [(m.id, m.query, m.start, m.end, m.positions, m.bindings, m.event) for m in in_order]


def check(program: Program, rates: Mapping[str, float], events: list[dict[str, object]]) -> None:
    found = trace(program, Statistics(rates))
    written = rows(matches(program, events))
    rewrites = [rewrite.rule for rewrite in found.rewrites]
    SEEN.update(rewrites)
    SEEN.update(f"{rule}, with matches" for rule in set(rewrites) if written)
    SEEN["with fewer costs"] += any(one.cost_after < one.cost_before for one in found.queries)
    assert rows(matches(found.program, events)) == written
    if rewrites:
        engine, meant = (detect(events, program, e, statistics=Statistics(rates), rejects=[]) for e in ENGINES)
        assert [match.id for match in engine] == [match.id for match in meant]


@some(150)
@given(chain_texts(), RATES, st.lists(chain_streams(), min_size=2, max_size=2))
def test_chains(text: str, rates: dict[str, float], streams: list[list[dict[str, object]]]) -> None:
    RAN.add("chains")
    program = compiled(text, "eql")
    if program is not None:
        for events in streams:
            check(program, rates, events)


@some(40)
@given(union_texts(), RATES, chain_streams())
def test_unions(text: str, rates: dict[str, float], events: list[dict[str, object]]) -> None:
    RAN.add("unions")
    program = compiled(text, "eql")
    assert program is not None
    check(program, rates, events)


@some(60)
@given(st.one_of(eql_programs(), step_programs()), RATES, composite_streams())
def test_any_program(text: str, rates: dict[str, float], events: list[dict[str, object]]) -> None:
    RAN.add("any")
    program = compiled(text, "step" if text.startswith("topology") else "eql")
    if program is not None:
        check(program, rates, events)


JOINS = st.tuples(
    st.sampled_from(
        [
            *("({0} ;? {1}) ;?{3} {2}", "{0} ;?{3} ({1} ;? {2})", "({0} , {1}) ;?{3} {2}", "{0} ;?{3} ({1} , {2})"),
            *("({0} , {1}) , {2}", "{0} , ({1} ;? {2})", "{0} , {1}"),
        ]
    ),
    st.permutations([f"{type_}/{type_.lower()}" for type_ in "ABC"]),
    st.sampled_from(["", "[a.v <= 1]", "[b.v >= 1 && dur > 1]", "[c.v < 2 && a.k = b.k]", "[b.v <= c.v]"]),
)


@some(80)
@given(JOINS, RATES, rule_streams(max_size=16))
def test_joins(joins: tuple[str, list[str], str], rates: dict[str, float], events: list[dict[str, object]]) -> None:
    RAN.add("joins")
    shape, operands, condition = joins
    externals = "".join(f'external {type_}(v: int, k: int) < "{type_}.jsonl" [1.0]\n' for type_ in "ABC")
    program = compiled(f'topology "T"\n{externals}Q(*): {shape.format(*operands, condition)}', "step")
    assert program is not None
    check(program, rates, events)


@st.composite
def look_backs(draw: st.DrawFn) -> str:
    """A rule with several look-backs, some of which need others; now and then one that reads what it defines."""
    names = ["t"]
    text = "define X(v: int) from C() as t"
    for name, type_ in zip("abc", draw(st.permutations("ABAC")), strict=False):
        pick = draw(st.sampled_from(["each", "each", "last", "first", "2-last"]))
        other, anchor = draw(st.sampled_from(names)), draw(st.sampled_from([names[0], names[-1], names[0]]))
        condition = draw(st.sampled_from(["", "", "v >= 1", f"k = {other}.k", f"v <= {other}.v"]))
        text += f" and {pick} {type_}({condition}) as {name} within {draw(st.integers(3, 20))} from {anchor}"
        names.append(name)
    text += f" where v = {names[1]}.v" + draw(st.sampled_from(["", "", f" consuming {names[2]}"]))
    reader = "define Y(v: int) from A() as s and last X() as x within 9 from s where v = x.v"
    return "\n".join([text, *draw(st.sampled_from([[], [], [reader]]))])


@some(60)
@given(st.one_of(look_backs(), look_backs(), texts(rule_sets(3))), OFTEN, rule_streams(max_size=14))
def test_rules(text: str, rates: dict[str, float], events: list[dict[str, object]]) -> None:
    RAN.add("rules")
    program = compiled(text, "tesla")
    assert program is not None, text
    check(program, rates, events)


@some(40)
@given(examples())
def test_regular_patterns(example: Example) -> None:
    RAN.add("regular")
    check(example.program, {}, example.events)


def chain_rows() -> st.SearchStrategy[list[dict[str, object]]]:
    """Events in which some A, B and C have rising values and one key."""
    values = st.tuples(st.sampled_from("ABC"), st.integers(0, 3), st.integers(0, 1))
    return st.lists(values, min_size=6, max_size=14).map(
        lambda drawn: [{"type": type_, "ts": at, "v": v, "k": k} for at, (type_, v, k) in enumerate(drawn)]
    )


@some(30)
@given(st.permutations(["a[v] < b[v]", "a[k] = c[k]", "b[v] <= c[v]"]), chain_rows())
def test_conditions_over_several_events(conditions: list[str], events: list[dict[str, object]]) -> None:
    RAN.add("conditions")
    program = compiled(f"SELECT * FROM S WHERE A AS a ; B AS b ; C AS c FILTER {' AND '.join(conditions)}", "ceql")
    assert program is not None
    check(program, {}, events)


@some(25)
@given(block_patterns(), block_streams())
def test_patterns_with_policies(text: str, events: list[dict[str, object]]) -> None:
    RAN.add("policies")
    program = compiled(text, "epn")
    assert program is not None
    check(program, dict.fromkeys("ABCDE", 100.0), events)


@some(20)
@given(mixed_examples(), OFTEN)
def test_languages_together(example: Mixed, rates: dict[str, float]) -> None:
    check(example.program, rates, example.events)
