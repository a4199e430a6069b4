"""What no rewriting may change: a rule that does so by mistake is found out where it is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import weft
from weft.algebra.composites import Composite, CompositeQuery, CompositeSequence
from weft.errors import InternalError
from weft.optimizer import rules
from weft.optimizer.invariants import check_unchanged
from weft.optimizer.pipeline import RULES

HEAD = 'topology "T" external A(x: int) < "A" [1.0] external B(x: int) < "B" [1.0] external C(x: int) < "C" [9.0] '


def pattern_of(text: str, language: str = "step") -> Composite:
    (query,) = weft.compile(text, language).queries
    assert isinstance(query, CompositeQuery)
    return query.pattern


def test_a_condition_that_is_lost_is_noticed() -> None:
    pattern = pattern_of(HEAD + "Q(*): A/a ;?[b.x <= 1] (B/b ;? C/c)")
    assert isinstance(pattern, CompositeSequence)
    check_unchanged(pattern, pattern, "nothing")
    with pytest.raises(InternalError, match="rule a_rule changed conditions"):
        check_unchanged(pattern, replace(pattern, where=()), "a_rule")


def test_a_key_may_tie_other_events() -> None:
    star, chain = (
        pattern_of(f"SELECT a.k FROM (A a ; B b) ; C c WHERE FILTER(a.k = b.k), FILTER({one}.k = c.k)", "eql")
        for one in "ab"
    )
    assert star != chain
    check_unchanged(star, chain, "spread_key")


def test_every_rule_has_a_file_and_a_place_in_the_pipeline() -> None:
    files = {path.stem for path in Path(rules.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == {rule.__name__ for own in RULES.values() for rule in own}
