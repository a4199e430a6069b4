"""Which splits of a pattern there are, which is chosen by rates, and why those of the document are not used.

The document splits a pattern into one that makes derived events and one that reads them. Written so, both run, and on
each of these streams they find something else than the whole does: such splits are not offered.
"""

from __future__ import annotations

import pytest

import weft
from weft.algebra.meaning import matches
from weft.algebra.situations import Situation, SituationQuery
from weft.errors import ProgramError
from weft.languages import compile_text
from weft.optimizer.rules.split_sequence import split_sequence, splits_of
from weft.optimizer.splits import early_work, late_work, quick_split
from weft.statistics import Statistics

EQUAL = "where a.k = b.k"
WHOLE = "pattern P {kind}(E1 a, E2 b, E3 c) {where} policies {policies}"
PARTS = "pattern D {kind}(E1 a, E2 b) {where} policies {first}\npattern P {kind}(D d, E3 c) policies {second}"
SINGLE = "cardinality single, repeated {0}"
CONSUME = "repeated {0}, consumption consume"
CROSSED = "E1@1(0) E1@2(1) E2@3(1) E2@4(0) E3@5"


def events_of(text: str) -> list[dict[str, object]]:
    """Events written as `type@time(k)`."""
    found = []
    for word in text.split():
        type_, _, rest = word.partition("@")
        time, _, key = rest.rstrip(")").partition("(")
        found.append({"type": type_, "ts": int(time), **({"k": int(key)} if key else {})})
    return found


def found(text: str, stream: str) -> list[tuple[int, ...]]:
    program, _ = compile_text(text, language="epn")
    return [m.positions for m in matches(program, events_of(stream)) if m.query == "P"]


@pytest.mark.parametrize(
    ("kind", "where", "policies", "first", "second", "stream", "whole"),
    [
        # Proposition 1: what was complete first wins, not what began first.
        ("sequence", EQUAL, SINGLE.format("first"), SINGLE.format("first"), SINGLE.format("first"), CROSSED, (0, 3, 4)),
        # Table 2: the derived event that ended last wins, not the one that began last.
        ("sequence", EQUAL, SINGLE.format("last"), "repeated last", SINGLE.format("last"), CROSSED, (1, 2, 4)),
        # Table 3: a member was replaced after the derived event was made.
        ("sequence", "", CONSUME.format("override"), "repeated override", CONSUME.format("override"),
         "E1@1 E2@2 E1@3 E3@4", None),
        # Tables 4 and 5.
        ("sequence", EQUAL, CONSUME.format("last"), "repeated every", CONSUME.format("last"), CROSSED, (1, 2, 4)),
        ("sequence", EQUAL, CONSUME.format("first"), "repeated every", CONSUME.format("first"), CROSSED, (0, 3, 4)),
        # Partitions: a derived event is placed by its own time.
        ("sequence", "", "repeated every context sliding 10 every 5", "repeated every context sliding 10 every 5",
         "repeated every context sliding 10 every 5", "E1@4 E2@8 E3@12", None),
    ],
)  # fmt: skip
def test_splits_of_the_document_find_something_else(
    kind: str, where: str, policies: str, first: str, second: str, stream: str, whole: tuple[int, ...] | None
) -> None:
    one = found(WHOLE.format(kind=kind, where=where, policies=policies), stream)
    other = found(PARTS.format(kind=kind, where=where, first=first, second=second), stream)
    assert one == ([] if whole is None else [whole])
    if "sliding" not in policies:  # a derived event that starts before a partition is not in it here
        assert other != one
    (query,) = compile_text(WHOLE.format(kind=kind, where=where, policies=policies), language="epn")[0].queries
    assert isinstance(query, SituationQuery)
    splits = splits_of(query.situation)
    for early in splits:  # ours finds the same
        chosen = f"split {early}:{len(splits) - early}, {policies}" if len(splits) > 1 else policies
        text = WHOLE.format(kind=kind, where=where, policies=chosen)
        shown = [m.positions for m in weft.detect(events_of(stream), weft.compile(text, language="epn"))]
        assert shown == one


def situation_of(text: str) -> Situation:
    (query,) = compile_text(f"pattern P {text}", language="epn")[0].queries
    assert isinstance(query, SituationQuery)
    return query.situation


PAIRS = "sequence(A a, B b, C c, D d, E e, F f) where a.k = b.k and c.k = d.k and e.k = f.k"


def test_which_splits_there_are() -> None:
    assert [*splits_of(situation_of(PAIRS))] == [0, 1, 2]
    assert [*splits_of(situation_of("sequence(A a, B b, C c) where a.k = c.k"))] == [0]
    assert [*splits_of(situation_of("all(A a, B b, C c) where a.k = c.k"))] == [0, 1]
    assert [*splits_of(situation_of("all(A a, B b) policies evaluation deferred"))] == [0]
    assert [*splits_of(situation_of("any(A a, B b)"))] == [0]
    whole = situation_of("any(A a, B b)")
    assert split_sequence(whole, 1) is whole


@pytest.mark.parametrize(
    ("text", "early"),
    [("split 0:3", 0), ("split 1:2", 1), ("split 2:1", 2), ("split 1:1:1", 2), ("repeated last, SPLIT 2:1", 2)],
)
def test_splits_as_they_are_written(text: str, early: int) -> None:
    assert situation_of(f"{PAIRS} policies {text}").split == early


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{PAIRS} policies split 2:2", "does not divide the 3 blocks of this pattern: a b | c d | e f"),
        (f"{PAIRS} policies split 3:0", "does not divide the 3 blocks"),
        (f"{PAIRS} policies split early", "does not divide the 3 blocks"),
        (f"{PAIRS} policies split 1:2, split 2:1", "split a second time"),
        (f"{PAIRS} policies repeated first; a: split 1:2", "the whole pattern"),
        ("any(A a, B b) policies split 1:1", "only sequences and all are split, and this is any"),
        ("all(A a, B b) policies split 1:1, evaluation deferred", "searched once for each partition"),
        ("all(A a, A b) policies split 1:1", "tie all participants"),
        ("sequence(A a, B b) where a.k = b.k policies split 1:1", "tie all participants"),
    ],
)
def test_splits_that_there_are_not(text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=r"no-such-split|policy-") as caught:
        situation_of(text)
    assert message in str(caught.value)


def test_rates_choose_a_split() -> None:
    whole = situation_of(PAIRS)
    slow, fast = (Statistics(rates=dict.fromkeys("ABCDEF", rate)) for rate in (50.0, 1e7))
    uneven = Statistics(rates={**dict.fromkeys("ABCDEF", 50.0), "D": 1e7})
    assert quick_split(whole, slow).split == 2
    assert quick_split(whole, uneven).split == 1
    assert quick_split(whole, fast).split == 0
    assert quick_split(situation_of(f"{PAIRS} policies split 1:2"), fast).split == 1
    assert "not known" in str(quick_split(whole, Statistics()).reason)
    assert early_work(whole, 1, slow) == 100.0
    assert late_work(whole, 0, slow) == 300.0
    assert late_work(whole, 2, slow) == 100.0
    assert late_work(whole, 2, Statistics(rates={"F": 50.0}, selectivity={"e.k = f.k": 0.01})) == 1000.0
