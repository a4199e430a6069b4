"""Rules at work beyond what random examples reach: many firings, long streams, state that is given up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weft.algebra.rules import Rule
from weft.kernels.rules import tables as t
from weft.languages import compile_text
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.operators.rules.operator import RuleOperator
from weft.runtime.writing.match_rows import to_matches


def rules(text: str) -> list[Rule]:
    return [rule for rule in compile_text(text, language="tesla")[0].queries if isinstance(rule, Rule)]


def events(types: list[str], first: int = 0, **columns: list[int | str]) -> EventBatch:
    """One event per tick."""
    times = np.arange(first, first + len(types))
    values = {
        name: Column(texts=pa.array(own)) if isinstance(own[0], str) else Column(numbers=pa.array(own, pa.int64()))
        for name, own in columns.items()
    }
    return EventBatch(pa.array(types), times, times, times, values)


def test_more_firings_than_a_buffer_holds_come_in_pieces() -> None:
    run = RuleOperator(rules("define X(v: int) from B() and each A() within 5000 from B where v = A.v"))
    batch = events(["A"] * 300 + ["B"] * 300, v=list(range(600)))
    found = list(run.push(batch))
    assert len(found) > 1
    assert sum(map(len, found)) == 300 * 300
    assert all((np.diff(piece.ends) >= 0).all() for piece in found)
    assert sum(int(np.asarray(piece.fields["v"]).sum()) for piece in found) == 300 * sum(range(300))
    assert RuleOperator(rules("define X() from B() and each A() within 5000 from B")).count(batch) == {"X": 90_000}


def test_defined_events_and_consumed_ones_outgrow_their_first_room() -> None:
    text = "define X(v: int) from B() and each A() within 5000 from B where v = A.v consuming A "
    run = RuleOperator(
        rules(
            text + "define Y(n: int) from C() and last X() within 5000 from C where n = Count(X() within 5000 from C)"
        )
    )
    found = list(to_matches(list(run.push(events(["A"] * 700 + ["B", "B", "C"], v=[1] * 703)))))
    assert [match.query for match in found].count("X") == 700
    assert [(match.positions, match.event) for match in found if match.query == "Y"] == [((699, 700, 702), {"n": 700})]


def test_events_out_of_reach_are_given_up() -> None:
    run = RuleOperator(rules("define X() from B(k = $k) and each A(k = $k) within 10 from B"))
    total = 0
    for first in range(0, 40_000, 2_000):
        total += sum(map(len, run.push(events(["A", "B"] * 1_000, first, k=[n // 4 for n in range(2_000)]))))
    assert total == 20 * 500 * 3  # of each four events with one key A B A B
    assert run.memory.table[:, t.HELD].sum() <= 8_000
    assert len(run.memory.entries) <= 1 << 15


def test_events_that_later_ones_replace_are_given_up() -> None:
    """Of a type that rules look at for its last event only, earlier ones are not kept, however long windows are."""
    text = "define X(v: int) from B() and last A() within 1000000 from B where v = A.v "
    lasting, kept = (
        RuleOperator(rules(text)),
        RuleOperator(rules(text + "define Y() from C() and each A() within 1000000 from C")),
    )
    found: list[list[object]] = [[], []]
    for first in range(0, 40_000, 1_000):
        batch = events(["A", "A", "B", "D"] * 250, first, v=list(range(first, first + 1_000)))
        for run, own in zip((lasting, kept), found, strict=True):
            own += [value for piece in run.push(batch) for value in piece.fields["v"].to_pylist()]
    assert found[0] == found[1] == [first + 1 for first in range(0, 40_000, 4)]
    assert lasting.memory.table[:, t.HELD].sum() < 4_000
    assert kept.memory.table[:, t.HELD].sum() >= 20_000


def test_texts_out_of_reach_are_given_up() -> None:
    run = RuleOperator(
        rules("define X(k: string) from B(k = $k) and last A(k = $k and s <> 'x') within 10 from B where k = A.k")
    )
    found = 0
    for first in range(0, 40_000, 2_000):
        keys: list[int | str] = [f"key {(first + n) // 2}" for n in range(2_000)]
        for piece in run.push(events(["A", "B"] * 1_000, first, k=keys, s=["y"] * 2_000)):
            found += len(piece)
            assert piece.fields["k"].null_count == 0
        run.sweep()
    assert found == 20_000
    assert len(run.memory.texts) < 8_000


def test_what_was_consumed_stays_consumed_after_a_restart_and_a_sweep() -> None:
    text = "define X() from B() and last A() within 100 from B consuming A"
    run = RuleOperator(rules(text))
    assert sum(map(len, run.push(events(["A", "A", "B"])))) == 1
    run.forget_texts()
    again = RuleOperator(rules(text))
    again.load({name: page for name, page in run.snapshot().items() if page is not None})
    found = [match.positions for match in to_matches(list(again.push(events(["B", "B"], 3))))]
    assert found == [(0, 3)]


def test_rules_of_many_variables_have_names_for_all_of_them() -> None:
    steps = " and ".join(f"each A() as A{n} within 100 from B" for n in range(24))
    (match,) = to_matches(list(RuleOperator(rules(f"define X() from B() and {steps}")).push(events(["A", "B"]))))
    assert match.positions == (0, 1)
    assert sorted(match.bindings) == sorted(["B", *(f"A{n}" for n in range(24))])
