"""Spans of row patterns equal those of Python's regular expressions, whatever the pattern."""

from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.algebra.row_patterns import (
    Alternation,
    At,
    Concatenation,
    Constant,
    Define,
    EmptyRows,
    OrderKey,
    Quantifier,
    RowCall,
    RowField,
    RowMeasure,
    RowPattern,
    RowRegex,
    RowVariable,
)
from weft.algebra.row_patterns import RowAggregate as Aggregate
from weft.runtime.operators.row_patterns.engine import match_rows

LETTERS = "abc"
BOUNDS = [(0, None), (1, None), (0, 1), (2, None), (1, 3), (0, 2), (2, 2)]


def regexes() -> st.SearchStrategy[RowRegex]:
    leaves = st.one_of(st.sampled_from(LETTERS).map(lambda c: RowVariable(c.upper())), st.just(EmptyRows()))

    def bigger(inner: st.SearchStrategy[RowRegex]) -> st.SearchStrategy[RowRegex]:
        parts = st.lists(inner, min_size=1, max_size=3).map(tuple)
        quantified = st.builds(
            lambda part, bounds, greedy: Quantifier(part, *bounds, greedy),
            inner,
            st.sampled_from(BOUNDS),
            st.booleans(),
        )
        return st.one_of(parts.map(Concatenation), parts.map(Alternation), quantified)

    return st.recursive(leaves, bigger, max_leaves=8)


def as_text(regex: RowRegex) -> str:
    match regex:
        case RowVariable(name):
            return name.lower()
        case EmptyRows():
            return "(?:)"
        case Concatenation(parts):
            return "(?:" + "".join(map(as_text, parts)) + ")"
        case Alternation(parts):
            return "(?:" + "|".join(map(as_text, parts)) + ")"
        case Quantifier(part, least, most, greedy):
            return f"(?:{as_text(part)}){{{least},{'' if most is None else most}}}{'' if greedy else '?'}"
    raise TypeError(regex)


def spans_of(pattern: str, text: str) -> list[tuple[int, int]]:
    compiled, at, found = re.compile(pattern), 0, []
    while at < len(text):
        match = compiled.match(text, at)
        if match is not None:
            found.append(match.span())
        at = match.end() if match is not None and match.end() > at else at + 1
    return found


def query_of(regex: RowRegex, *, depends: bool) -> RowPattern:
    """The pattern over letters; if it `depends` on the match, by conditions that are always true."""

    def condition(letter: str) -> RowCall:
        is_letter = RowCall("=", (At(RowField("letter")), Constant(letter)))
        if not depends:
            return is_letter
        some = RowCall(">", (Aggregate("count"), Constant(0)))
        return RowCall("and", (is_letter, some))

    names = {node.name for node in regex.walk() if isinstance(node, RowVariable)}
    return RowPattern(
        "q",
        regex,
        tuple(Define(name, condition(name.lower())) for name in sorted(names)),
        (
            RowMeasure("begin", At(RowField("at"), first=True)),
            RowMeasure("size", Aggregate("count")),
        ),
        order=(OrderKey("at"),),
    )


@settings(deadline=None, max_examples=60)
@given(regexes(), st.text(LETTERS, min_size=1, max_size=12), st.booleans())
def test_spans_are_those_of_python(regex: RowRegex, text: str, depends: bool) -> None:
    if not any(isinstance(node, RowVariable) for node in regex.walk()):
        return
    table = pa.table({"at": list(range(len(text))), "letter": list(text)})
    found = match_rows(table, query_of(regex, depends=depends)).to_pylist()
    wanted = spans_of(as_text(regex), text)
    assert [row["size"] for row in found] == [end - begin for begin, end in wanted]
    here = [(row["begin"], row["begin"] + row["size"]) for row in found if row["size"]]
    assert here == [span for span in wanted if span[1] > span[0]]
