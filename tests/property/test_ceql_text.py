"""A query written in CEQL and compiled means what it meant in the algebra."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from tests.ceql_text import query_text
from tests.strategies import Example, examples

from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.languages import compile_text


@settings(max_examples=100, deadline=None)
@given(examples())
def test_text_means_what_it_was_written_for(example: Example) -> None:
    program = Program("ceql", tuple(replace(query, universe=None) for query in example.program.queries))
    text = "\n\n".join(query_text(query) for query in program.queries)
    compiled, _ = compile_text(text)
    assert [query.name for query in compiled.queries] == [query.name for query in program.queries]
    assert matches(compiled, example.events) == matches(program, example.events), text
