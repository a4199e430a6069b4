"""Programs of patterns with policies as a whole: how they are recognised, printed, checked and refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.languages.golden import DASHES, golden_files
from tests.strategies_epn import networks

from weft.algebra.contexts import Windows
from weft.algebra.query import Program
from weft.algebra.situations import SituationQuery
from weft.errors import ProgramError, UsageError
from weft.languages import compile_text, language_of, parse_syntax
from weft.languages.epn import syntax
from weft.languages.epn.printer import to_source
from weft.plan.planner import plan
from weft.plan.text.plans import plan_dot, plan_text

PROGRAMS = [
    path.read_text(encoding="utf-8").partition(DASHES)[0]
    for folder in ("lowering/epn", "errors/epn")
    for path in golden_files(folder)
]
WORD = re.compile(r"\s+|\w+|'[^'\n]*'|.", re.DOTALL)
WORDS = sorted({word for program in PROGRAMS for word in WORD.findall(program)} | {"'", '"', "`", "/*", "--", "§"})
INTERNAL = re.compile(r"lark|Token|Unexpected|[A-Z]+_[A-Z]+|LPAR|RPAR|LSQB|RBRACKET|SEMICOLON|EQUALS|COMPARE|\bDOT\b")
PRICES = {"Buy": {"price": "int", "stock": "string"}, "Sell": {"price": "int", "stock": "string"}}


def compiled(text: str, **options: object) -> Program:
    return compile_text(text, language="epn", **options)[0]  # type: ignore[arg-type]


def codes(text: str, **options: object) -> list[str]:
    with pytest.raises(ProgramError) as raised:
        compiled(text, **options)
    return [found.code for found in raised.value.diagnostics]


def test_programs_are_recognised_by_ending_and_by_their_first_word() -> None:
    assert language_of("x", name="broker.epn").name == "epn"
    assert language_of("-- a network\npattern P any(A a)").name == "epn"
    assert language_of("x", language="EPN").name == "epn"


def test_the_language_of_a_text_after_many_comments_is_told_at_once() -> None:
    assert language_of("-" * 10_000 + "\n{").name == "ceql"
    assert language_of("/**/" * 10_000 + " /* pattern */ -- more\nPATTERN P any(A a)").name == "epn"


def test_queries_are_called_like_their_patterns() -> None:
    program = compiled("pattern P any(A a)\npattern Q any(P p)", stem="file")
    assert [query.name for query in program.queries] == ["P", "Q"]


@pytest.mark.parametrize("path", golden_files("lowering/epn"), ids=lambda path: path.stem)
def test_printed_programs_parse_to_the_same(path: Path) -> None:
    tree = parse_syntax(path.read_text(encoding="utf-8").partition(DASHES)[0], language="epn")
    assert isinstance(tree, syntax.Program)
    assert parse_syntax(to_source(tree), language="epn") == tree


@settings(max_examples=50, deadline=None)
@given(networks(3))
def test_random_programs_survive_printing_and_compile(tree: syntax.Program) -> None:
    text = to_source(tree)
    assert parse_syntax(text, language="epn") == tree
    assert len(compiled(text).queries) == len(tree.patterns)


@pytest.mark.parametrize(("unit", "ticks"), [("ms", 90_000), ("s", 90), ("us", 90_000_000), ("min", 1)])
def test_durations_are_in_ticks_of_the_input(unit: str, ticks: int) -> None:
    program = compiled("pattern P any(A a) context fixed 1.5 min", time_unit=unit)
    query = program.queries[0]
    assert isinstance(query, SituationQuery)
    assert program.time_unit == unit
    assert query.situation.context == Windows(ticks, ticks)


def test_durations_need_a_known_time_unit() -> None:
    with pytest.raises(UsageError, match="no time unit 'weeks'"):
        compiled("pattern P any(A a) context fixed 10", time_unit="weeks")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pattern P sequence(Buy b, Sel s)", ["unknown-type"]),
        ("pattern P sequence(Buy b, Sell s) where b.prise < s.price", ["unknown-attribute"]),
        ("pattern P sequence(Buy b, Sell s) where b.stock < s.price", ["type-mismatch"]),
        ("pattern P any(Buy b) context from Opn until Sell", ["unknown-type"]),
        ("pattern P any(Buy b) context by broker", ["unknown-attribute"]),
        ("pattern Buy any(Sell s)", ["duplicate-pattern"]),
        ("pattern P any(Buy b) derive s = b.stock\npattern Q any(P p) where p.s > 3", ["type-mismatch"]),
        ("pattern P any(Buy b) context by stock derive s = stock + 1", ["type-mismatch"]),
    ],
)
def test_types_are_checked_against_a_schema_given_beside_the_program(text: str, found: list[str]) -> None:
    assert codes(text, schema=PRICES) == found


def test_what_a_schema_has_may_be_used() -> None:
    text = "pattern P sequence(Buy b, Sell s) where b.price < s.price and b.ts < s.ts context by stock derive s = stock"
    assert compiled(text + "\npattern Q any(P p) where p.s = 'ICO'", schema=PRICES).queries


def test_the_plan_shows_who_feeds_whom() -> None:
    program = compiled("pattern P sequence(A a, B b)\npattern Q any(P p)")
    assert "P from query P" in plan_text(plan(program))
    assert "s0 -> s1" in plan_dot(plan(program))


def test_deep_nesting_is_a_message() -> None:
    with pytest.raises(ProgramError, match=r"too-large.*nested"):
        compiled("pattern P any(A a) where " + "not " * 3000 + "a.x")


# ---------------------------------------------------------------- whatever is written, nothing else is raised


@st.composite
def damaged_programs(draw: st.DrawFn) -> str:
    """A program with a few words taken out, put in, doubled or exchanged."""
    words = WORD.findall(draw(st.sampled_from(PROGRAMS)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(words)))
        taken = draw(st.integers(0, 2))
        words[place : place + taken] = draw(st.lists(st.sampled_from(WORDS), max_size=2))
    return "".join(words)


def compile_or_refuse(text: str) -> None:
    try:
        compiled(text)
    except ProgramError as error:
        for found in error.diagnostics:
            assert 1 <= found.line <= text.count("\n") + 1
            assert found.column >= 1
            assert found.message
            assert not INTERNAL.search(re.sub(r"'.*'", "", found.message))


@settings(max_examples=50, deadline=None)
@given(damaged_programs())
def test_damaged_program_compiles_or_is_refused(text: str) -> None:
    compile_or_refuse(text)


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(["where ", "policies ", "context ", "derive "]), st.text("Aax[](){};:+,.<>='`*-/ 1\n", max_size=25)
)
def test_noise_after_a_beginning_compiles_or_is_refused(clause: str, noise: str) -> None:
    compile_or_refuse(f"pattern P sequence(A a, B b) {clause}{noise}")
