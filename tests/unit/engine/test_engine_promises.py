"""What the engine promises about its work and its memory, checked by counting, never by a clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import weft
from weft.algebra.query import Program
from weft.errors import UsageError
from weft.kernels.automaton import tecs
from weft.plan.planner import plan
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.automaton.operator import AutomatonOperator
from weft.runtime.reading.order import read_events

Events = list[dict[str, Any]]


def program(text: str) -> Program:
    return weft.compile(text)


def typed(types: Iterable[str], start: int = 0) -> Events:
    return [{"type": name, "ts": start + n} for n, name in enumerate(types)]


def regular(matcher: Matcher) -> AutomatonOperator:
    (run,) = matcher.operators
    assert isinstance(run, AutomatonOperator)
    return run


def push(matcher: Matcher, events: Events, *, position: int = 0) -> list[MatchBatch]:
    (batch,) = read_events(events, columns=matcher.plan.columns)
    batch.positions[:] += position
    return list(matcher.push(batch))


def run(text: str, events: Events) -> tuple[Matcher, list[MatchBatch]]:
    matcher = Matcher(plan(program(text)))
    return matcher, push(matcher, events)


def shown(batches: list[MatchBatch]) -> list[tuple[int, ...]]:
    return [
        tuple(batch.positions[low:high].tolist())
        for batch in batches
        for low, high in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)
    ]


def steps_per_event(text: str, types: str) -> float:
    matcher, _ = run(text, typed(types))
    return matcher.counters["steps"] / len(types)


# ---------------------------------------------------------------- work


def test_work_per_event_does_not_grow_with_the_stream() -> None:
    query = "SELECT * WHERE A ; B ; C ; D WITHIN 20 EVENTS"
    short, long = steps_per_event(query, "ABC" * 100), steps_per_event(query, "ABC" * 3000)
    assert long <= short * 1.01


def test_work_per_event_does_not_grow_with_partial_matches() -> None:
    one_way = steps_per_event("SELECT * WHERE A ; B ; D WITHIN 10000 EVENTS", "AB" * 1000)
    exponentially_many = steps_per_event("SELECT * WHERE A+ ; B+ ; D WITHIN 10000 EVENTS", "AB" * 1000)
    assert exponentially_many <= one_way * 4  # a constant: the states of the automaton


def test_nested_repetition_unites_sets_in_constant_work() -> None:
    query = "SELECT * WHERE ((A ; B)+ ; C)+ ; D WITHIN 10000 EVENTS"
    short, long = steps_per_event(query, "AABCB" * 50), steps_per_event(query, "AABCB" * 1000)
    assert long <= short * 1.1


def test_delay_is_linear_in_the_size_of_matches() -> None:
    matcher, found = run("SELECT * WHERE A+ ; B+ ; C WITHIN 10000 EVENTS", typed("A" * 8 + "B" * 8 + "C"))
    assert sum(map(len, found)) == 255 * 255
    assert matcher.counters["visits"] <= sum(len(batch.positions) for batch in found)


def test_a_failed_condition_ends_the_branch() -> None:
    events = [{**event, "id": n % 3} for n, event in enumerate(typed("A" * 10 + "B" * 10 + "C"))]
    everything, found = run("SELECT * WHERE A+ AS a ; B+ AS b ; C WITHIN 10000 EVENTS", events)
    pruned, kept = run("SELECT * WHERE A+ AS a ; B+ AS b ; C FILTER a[id] = b[id] WITHIN 10000 EVENTS", events)
    assert 0 < sum(map(len, kept)) < sum(map(len, found))
    assert pruned.counters["visits"] < everything.counters["visits"] / 100


@pytest.mark.parametrize("clause", ["NEXT *", "LAST *", "ANY *", "MAX *", "* LIMIT 2"])
def test_one_of_many_is_found_without_finding_all(clause: str) -> None:
    strategy, _, limit = clause.partition(" ")
    text = f"SELECT {strategy if limit == '*' else ''} * WHERE A+ ; B WITHIN 10000 EVENTS"
    text += f" {limit}" if limit != "*" else ""
    matcher, found = run(text, typed("A" * 200 + "B"))  # 2 ** 200 - 1 matches
    assert sum(map(len, found)) == (2 if limit != "*" else 1)
    assert matcher.counters["visits"] < 100_000


# ---------------------------------------------------------------- memory


def test_nodes_are_bounded_by_the_window() -> None:
    matcher = Matcher(plan(program("SELECT * WHERE A ; B ; C WITHIN 50 EVENTS")))
    sizes = []
    for part in range(40):
        push(matcher, typed("AB" * 500, part * 1000), position=part * 1000)
        sizes.append(len(regular(matcher)._runs[0].run.state.starts))
    assert sizes[-1] == sizes[1]


def test_partitions_that_can_no_longer_match_are_forgotten() -> None:
    matcher = Matcher(plan(program("SELECT * WHERE A ; B PARTITION BY [k] WITHIN 100 EVENTS")))
    for part in range(20):
        first = part * 3000
        push(matcher, [{"type": "A", "ts": n, "k": n} for n in range(first, first + 3000)], position=first)
    (key,) = matcher.layers[0]._keys._shared.values()
    assert key.capacity < 15_000


def test_texts_that_no_condition_reads_any_more_are_forgotten() -> None:
    query = "SELECT * WHERE A AS a ; B AS b FILTER a[s] < b[s] WITHIN 100 EVENTS"
    matcher = Matcher(plan(program(query)))
    for part in range(20):
        first = part * 1000
        push(matcher, [{"type": "A", "ts": n, "s": f"{n:09d}"} for n in range(first, first + 1000)], position=first)
    assert len(regular(matcher)._runs[0].run.conditions.texts) < 4000


def test_order_of_texts_survives_when_codes_run_out() -> None:
    query = "SELECT * WHERE A AS a ; A AS b FILTER a[s] > b[s] WITHIN 10000 EVENTS"
    texts = ["b", "a"]
    for _ in range(200):  # each between the last two: halves the room for codes every time
        texts.append(texts[-1] + "m" if texts[-1] < texts[-2] else texts[-2] + "m")
    texts = [text[:1] + f"{n:03d}" if n % 7 == 0 else text for n, text in enumerate(texts)]
    events = [{"type": "A", "ts": n, "s": text} for n, text in enumerate(texts)]
    _, found = run(query, events)
    expected = {(i, j) for i in range(len(texts)) for j in range(i + 1, len(texts)) if texts[i] > texts[j]}
    assert set(shown(found)) == expected


# ---------------------------------------------------------------- no limits


def test_more_than_64_states() -> None:
    names = [f"T{n}" for n in range(150)]
    text = f"SELECT * WHERE {' ; '.join(names)} WITHIN 1000 EVENTS"
    matcher, found = run(text, typed(["T0", *names]))
    assert len(regular(matcher)._runs[0].run.automaton.states) > 128
    assert sorted(shown(found)) == [(0, *range(2, 151)), tuple(range(1, 151))]


def test_numbers_beyond_32_bits() -> None:
    matcher = Matcher(plan(program("SELECT * WHERE A+ ; B WITHIN 3 EVENTS")))
    run_ = regular(matcher)._runs[0].run
    run_.control[[tecs.HEAD, tecs.TAIL]] = 2**33 - 2
    far = 2**40
    found = push(matcher, typed("AAAB" * 100), position=far)
    here = sorted(positions for positions in shown(found) if positions[-1] == far + 7)
    assert here == sorted(
        (*(far + p for p in chosen), far + 7) for chosen in [(4,), (5,), (6,), (4, 5), (4, 6), (5, 6), (4, 5, 6)]
    )
    assert run_.control[tecs.HEAD] > 2**33


def test_matches_longer_than_any_buffer() -> None:
    _, found = run("SELECT MAX * WHERE A+ ; B WITHIN 100000 EVENTS", typed("A" * 5000 + "B"))
    assert shown(found) == [tuple(range(5001))]
    _, found = run("SELECT * WHERE A:+ : B WITHIN 100000 EVENTS", typed("A" * 300 + "B"))
    assert sorted(map(len, shown(found))) == list(range(2, 302))


# ---------------------------------------------------------------- state


def test_a_snapshot_gives_only_what_changed() -> None:
    matcher = Matcher(plan(program("SELECT * WHERE A ; B ; C WITHIN 100000 EVENTS")))
    push(matcher, typed("AB" * 20_000))
    first = matcher.snapshot()
    assert matcher.snapshot() == {}
    push(matcher, typed("AB" * 10, 40_000), position=40_000)
    second = matcher.snapshot()
    size = {name: sum(len(page or b"") for page in pages.values()) for name, pages in (("1", first), ("2", second))}
    assert 0 < size["2"] < size["1"] / 20


def test_expired_pages_are_given_up() -> None:
    matcher = Matcher(plan(program("SELECT * WHERE A ; B ; C WITHIN 10 EVENTS")))
    push(matcher, typed("AB" * 5000))
    matcher.snapshot()
    push(matcher, typed("AB" * 5000, 10_000), position=10_000)
    assert None in matcher.snapshot().values()


def test_state_of_another_program_is_refused() -> None:
    matcher = Matcher(plan(program("SELECT * WHERE A ; B WITHIN 10 EVENTS")))
    pages = {name: page for name, page in matcher.snapshot().items() if page is not None}
    with pytest.raises(UsageError, match="another program"):
        Matcher.restore(plan(program("SELECT * WHERE A ; C WITHIN 10 EVENTS")), pages)


def test_counting_is_finding_without_making() -> None:
    text = "SELECT * WHERE A+ ; B WITHIN 100 EVENTS"
    (batch,) = read_events(typed("AAB" * 4))
    found = sum(map(len, Matcher(plan(program(text))).push(batch)))
    assert Matcher(plan(program(text))).count(batch) == {"q": found}
    assert np.all(batch.positions == np.arange(12))
