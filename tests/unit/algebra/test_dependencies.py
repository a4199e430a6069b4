"""The graph of an assertion, and the blocks that a pattern falls into."""

from __future__ import annotations

import pytest

from weft.algebra.analysis.dependencies import Dependencies, dependencies
from weft.algebra.situations import SituationQuery
from weft.languages import compile_text


def of(text: str) -> Dependencies:
    (query,) = compile_text(f"pattern P {text}", language="epn")[0].queries
    assert isinstance(query, SituationQuery)
    return dependencies(query.situation)


def test_the_second_example_of_the_document() -> None:
    where = "a.key > b.key and d.key > e.key and not (e.key = f.key and c.key = 77)"
    found = of(f"sequence(A a, B b, C c, D d, E e, F f) where {where}")
    assert found.edges == ((0, 1), (2, 4), (2, 5), (3, 4), (4, 5))
    assert found.components == found.blocks == ((0, 1), (2, 3, 4, 5))
    assert found.to_text() == "a b | c d e f"


def test_components_that_interleave_are_one_block_of_a_sequence_but_two_of_all() -> None:
    slots, where = "(A a, B b, C c, D d, E e, F f)", "where a.k = f.k and b.k = c.k and c.k = d.k and d.k < e.k"
    assert of(f"sequence{slots} {where}").blocks == ((0, 1, 2, 3, 4, 5),)
    assert of(f"all{slots} {where}").blocks == ((0, 5), (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("sequence(A a, B b, C c)", ((0,), (1,), (2,))),
        ("sequence(A a, B b, C c) where a.x > 3 and b.x > 3", ((0,), (1,), (2,))),
        ("sequence(A a, B b, C c) where a.x > 3 or c.x > 3", ((0, 1, 2),)),
        ("sequence(A a, A b, B c, B d) where a.k = b.k and c.k = d.k", ((0, 1), (2, 3))),
        ("all(A a, B b, C c, A d) where a.k = b.k and c.k = d.k", ((0, 1, 2, 3),)),
        ("all(A a, B b, C c, A d) where a.k = b.k", ((0, 1, 3), (2,))),
    ],
)
def test_blocks(text: str, blocks: tuple[tuple[int, ...], ...]) -> None:
    assert of(text).blocks == blocks
