"""A query written in CEQL and compiled means what it meant in the algebra."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from tests.ceql_text import query_text
from tests.strategies import Example, examples

from weft.algebra.meaning import matches
from weft.algebra.patterns import Event
from weft.algebra.query import Program, Query
from weft.languages import compile_text


@settings(max_examples=50, deadline=None)
@given(examples())
def test_text_means_what_it_was_written_for(example: Example) -> None:
    program = Program("ceql", tuple(replace(query, universe=None) for query in example.program.queries))
    assume(not any(_says_one_type_with_and_without_stream(query) for query in program.queries))
    text = "\n\n".join(query_text(query) for query in program.queries)
    compiled, _ = compile_text(text)
    assert [query.name for query in compiled.queries] == [query.name for query in program.queries]
    assert matches(compiled, example.events) == matches(program, example.events), text


def _says_one_type_with_and_without_stream(query: Query) -> bool:
    """In the text, `S>A` may then mean an event that the pattern calls `A`; in the algebra it does not."""
    named = {(node.type, node.stream is None) for node in query.pattern.walk() if isinstance(node, Event)}
    return len(named) > len({type_name for type_name, _ in named})
