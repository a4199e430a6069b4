"""What the printer writes, the parser reads back: random syntax trees, and all programs of the golden files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.languages.golden import DASHES, golden_files

from weft.languages import compile_text
from weft.languages.ceql import syntax
from weft.languages.ceql.parser import parse
from weft.languages.ceql.printer import to_source
from weft.source import SourceText

WORDS = [
    "A",
    "b",
    "price",
    "last",
    "Max",
    "count",
    "odd name",
    "select",
    "not",
    "with`quote",
    "été",
    "Events",
    "all",
    "in",
]

names = st.sampled_from(WORDS).map(syntax.Name)
variables = st.builds(syntax.Variable, names, st.none() | names)
name_tuples = st.lists(names, min_size=1, max_size=3).map(tuple)
texts = st.text(alphabet="ab'\"`%_-[]{}; é", max_size=6)
numbers = st.integers(0, 10**6) | st.floats(0, 1e20, allow_nan=False)
constants = st.builds(syntax.Literal, st.booleans() | numbers | texts)
listed_constants = st.builds(syntax.Literal, st.booleans() | numbers | texts | st.integers(-9, -1))
flags = st.booleans()


def values(leaf: st.SearchStrategy[syntax.Expression]) -> st.SearchStrategy[syntax.Expression]:
    return st.recursive(
        leaf | constants,
        lambda inner: (
            st.builds(syntax.Negative, inner) | st.builds(syntax.Arithmetic, st.sampled_from("+-*/%"), inner, inner)
        ),
        max_leaves=4,
    )


def comparing(value: st.SearchStrategy[syntax.Expression]) -> st.SearchStrategy[syntax.Expression]:
    return (
        st.builds(syntax.Comparison, st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), value, value)
        | st.builds(syntax.Like, st.sampled_from(["LIKE", "MATCHES"]), value, texts, flags)
        | st.builds(syntax.In, value, st.lists(listed_constants, max_size=3).map(tuple), flags)
        | st.builds(syntax.InRange, value, value, value, flags)
    )


def connected(leaf: st.SearchStrategy[syntax.Expression]) -> st.SearchStrategy[syntax.Expression]:
    return st.recursive(
        leaf,
        lambda inner: (
            st.builds(syntax.And, inner, inner) | st.builds(syntax.Or, inner, inner) | st.builds(syntax.Not, inner)
        ),
        max_leaves=4,
    )


attributes = st.builds(syntax.Attribute, names)
predicates = connected(comparing(values(attributes)) | attributes)
calls = st.builds(syntax.Call, st.sampled_from(["COUNT", "SUM", "MIN", "LAST"]), variables, st.none() | names)
terms = st.builds(syntax.Of, variables, attributes) | calls
conditions = connected(st.builds(syntax.Of, variables, predicates) | comparing(values(terms)))

events = st.builds(syntax.Event, names, st.none() | names)
formulas = st.recursive(
    events,
    lambda inner: (
        st.builds(syntax.Sequence, inner, inner, flags)
        | st.builds(syntax.Either, inner, inner)
        | st.builds(syntax.Repeated, inner, flags)
        | st.builds(syntax.Named, inner, names)
        | st.builds(syntax.Negated, inner)
        | st.builds(syntax.Filtered, inner, conditions)
    ),
    max_leaves=6,
)

selected = st.builds(syntax.Selected, variables, st.just(()) | name_tuples)
amounts = st.builds(syntax.Amount, numbers, st.sampled_from(["EVENTS", "hour", "MINUTES"]).map(syntax.Name))
windows = st.builds(syntax.Within, st.lists(amounts, min_size=1, max_size=3).map(tuple)) | st.builds(
    syntax.Within, st.just(()), numbers, names
)
queries = st.builds(
    syntax.Query,
    formulas,
    st.none() | names,
    st.none() | st.sampled_from(["ALL", "ANY", "LAST", "MAX", "NEXT", "STRICT"]),
    st.none() | st.just(()) | st.lists(selected, min_size=1, max_size=3).map(tuple),
    st.just(()) | name_tuples,
    st.none() | st.builds(syntax.Partition, st.lists(name_tuples, min_size=1, max_size=2).map(tuple)),
    st.none() | windows,
    st.none() | st.builds(syntax.Consume, st.sampled_from(["ANY", "none"]).map(syntax.Name)),
    st.none() | st.builds(syntax.Limit, st.integers(-2, 9)),
)

declared_attributes = st.builds(
    syntax.AttributeDeclaration, names, st.sampled_from(["int", "string", "primary_time"]).map(syntax.Name)
)
declared_events = st.builds(syntax.EventDeclaration, names, st.lists(declared_attributes, max_size=3).map(tuple))
declarations = (
    declared_events
    | st.builds(syntax.CreateStream, names, st.lists(declared_events, max_size=3).map(tuple))
    | st.builds(syntax.DeclareStream, names, st.just(()) | name_tuples)
    | st.just(syntax.Quarantine("{ DIRECT {S} }"))
)
programs = st.builds(syntax.Program, st.lists(queries | declarations, max_size=3).map(tuple))


@settings(max_examples=50, deadline=None)
@given(programs)
def test_printed_program_parses_to_the_same_syntax(program: syntax.Program) -> None:
    assert parse(SourceText(to_source(program))) == program


@settings(max_examples=50, deadline=None)
@given(formulas)
def test_printed_formula_parses_to_the_same_syntax(formula: syntax.Formula) -> None:
    program = syntax.Program((syntax.Query(formula),))
    assert parse(SourceText(to_source(program))) == program


@pytest.mark.parametrize("path", golden_files("lowering/ceql"), ids=lambda path: path.stem)
def test_printed_program_means_the_same(path: Path) -> None:
    text = path.read_text(encoding="utf-8").partition(DASHES)[0]
    program, _ = compile_text(text, language="ceql")
    printed = to_source(parse(SourceText(text)))
    again, _ = compile_text(printed, language="ceql")
    assert again.queries == program.queries
    assert again.catalog == program.catalog
    assert to_source(parse(SourceText(printed))) == printed
