"""DCORE's Algorithm 2 as it is printed, and what is wrong with it; how candidates are dealt; maximal complex events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some

import weft
from weft.algebra.query import Query
from weft.plan.partitioning.dealing import Dealer, Groups, configurations, groups_of, is_flat, variation

pytestmark = pytest.mark.filterwarnings("ignore::weft.ProgramWarning", "ignore:no event has the type")

# A node of the thesis: None is the bottom, ("output", position, next), ("union", left, right).
Node = tuple[object, ...] | None


def paths(node: Node) -> int:
    match node:
        case None:
            return 1
        case ("output", _, next_):
            return paths(next_)  # type: ignore[arg-type]
        case (_, left, right):
            return paths(left) + paths(right)  # type: ignore[arg-type]
    raise AssertionError(node)


def printed(node: Node, processes: int, index: int) -> list[tuple[int, ...]]:
    """Algorithm 2, all paths inside the window: those that a process enumerates. At the root sigma is not looked at."""
    delta = ceil(paths(node) / processes)
    found: list[tuple[int, ...]] = []
    stack: list[tuple[Any, tuple[int, ...], int, int]] = [(node, (), index * delta, delta)]
    while stack:
        current, path, sigma, delta = stack.pop()
        while True:
            if current is None:
                found.append(path)
                break
            kind, one, other = current
            if kind == "output":
                current, path = other, (*path, one)
                continue
            left = paths(one)
            rest = delta - max(0, left - sigma) if left > sigma else delta
            if paths(other) > max(0, sigma - left) and rest > 0:
                stack.append((other, path, max(0, sigma - left), rest))
            if left <= sigma:
                break
            current = one
    return found


def of_paths(count: int) -> Node:
    """A node with so many paths, each of one output."""
    node: Node = ("output", 0, None)
    for position in range(1, count):
        node = ("union", ("output", position, None), node)
    return node


def printed_sizes(count: int, processes: int, first: int = 0) -> list[int]:
    return [len(printed(of_paths(count), processes, index)) for index in range(first, first + processes)]


def test_indices_from_one_lose_the_first_share() -> None:
    assert printed_sizes(15, 3) == [5, 5, 5]
    assert printed_sizes(15, 3, first=1) == [5, 5, 0]


def test_one_path_is_printed_by_every_process() -> None:
    assert printed_sizes(1, 3) == [1, 1, 1]


def test_the_last_processes_are_left_empty() -> None:
    assert printed_sizes(10, 8) == [2, 2, 2, 2, 2, 0, 0, 0]


def ours(count: int, lanes: int) -> list[int]:
    """What lanes list of so many matches that end at one event."""
    from weft.plan.planner import plan
    from weft.runtime.execution.matcher import Matcher
    from weft.runtime.reading.order import read_events

    events = [{"type": "A", "ts": at} for at in range(count)] + [{"type": "B", "ts": count}]
    chosen_ = plan(weft.compile("SELECT * FROM S WHERE A ; B WITHIN 1 DAY"), strategy="rank")
    (batch,) = read_events(events, columns=chosen_.columns)
    return [sum(map(len, Matcher(chosen_, lane).push(batch))) for lane in chosen_.lanes_for(lanes)]


@pytest.mark.parametrize(("count", "lanes"), [(15, 3), (1, 3), (10, 8)])
def test_ours_differ_by_one_at_most(count: int, lanes: int) -> None:
    sizes = ours(count, lanes)
    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= 1


# ---------------------------------------------------------------- dealing


@given(st.lists(st.integers(1, 5), min_size=1, max_size=60), st.integers(1, 7))
def test_dealing(sizes: list[int], workers: int) -> None:
    for dealing in ("round robin", "two choices", "exact search"):
        dealer, again = Dealer(workers, dealing), Dealer(workers, dealing)
        dealt = [dealer.deal(size) for size in sizes]
        assert dealt == [again.deal(size) for size in sizes]
        loads = Counter[int]()
        for worker, size in zip(dealt, sizes, strict=True):
            loads[worker] += size
        assert dealer.loads == [loads[worker] for worker in range(workers)]
        if dealing == "round robin":
            assert dealt == [number % workers for number in range(len(sizes))]
        if dealing == "exact search":
            assert max(dealer.loads) - min(dealer.loads) <= max(sizes)


def test_two_choices_even_out() -> None:
    random, two = Dealer(8, "two choices", seed=1), Dealer(8, "exact search")
    for dealer in (random, two):
        for _ in range(4000):
            dealer.deal()
    assert variation(two.loads) == 0
    assert 0 < variation(random.loads) < 0.02


def test_variation() -> None:
    assert variation([2, 2, 2]) == 0
    assert variation([1, 3]) == 0.5
    assert variation([0, 0]) == 0


# ---------------------------------------------------------------- maximal complex events


def test_groups_keep_the_last_event() -> None:
    assert groups_of([1, 2, 5], ["A", "B", "C"]) == ((1,), (2,), (5,))
    assert groups_of([4], ["A"]) == ((4,),)
    assert groups_of([1, 2, 3, 7], ["A", "B", "B", "A"]) == ((1,), (2, 3), (7,))


def chosen(groups: Groups, configuration: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The matches inside a maximal one that have a configuration."""
    picks = (combinations(group, count) for group, count in zip(groups, configuration, strict=True))
    return (tuple(position for part in parts for position in part) for parts in product(*picks))


def test_all_configurations() -> None:
    groups = groups_of([1, 2, 4, 5, 6], ["T", "T", "H", "H", "H"])
    assert list(configurations(groups)) == [(t, h) for t in (1, 2) for h in (1, 2, 3)]
    assert sorted(chosen(groups, (2, 2))) == [(1, 2, *pair) for pair in combinations((4, 5, 6), 2)]


def query(pattern: str, window: str = "1 DAY") -> Query:
    (found,) = weft.compile(f"SELECT * FROM S WHERE {pattern} WITHIN {window}").queries
    assert isinstance(found, Query)
    return found


@pytest.mark.parametrize("window", ["1 DAY", "9 EVENTS"])
@pytest.mark.parametrize("pattern", ["A ; B+ ; C", "A+ AS a ; B+ AS b ; C", "A"])
def test_flat(pattern: str, window: str) -> None:
    assert is_flat(query(pattern, window))


@pytest.mark.parametrize("pattern", ["(A ; B)+ ; C", "A+ ; A", "(A OR B) ; C", "A : B", "(A OR B)+ ; C"])
def test_not_flat(pattern: str) -> None:
    assert not is_flat(query(pattern))


@some(30)
@given(st.lists(st.sampled_from("AABB"), min_size=2, max_size=8))
def test_configurations_give_all_matches_of_flat_patterns(types: list[str]) -> None:
    events = [{"type": name, "ts": at} for at, name in enumerate([*types, "C"])]
    every = {m.positions for m in weft.detect(events, "SELECT * FROM S WHERE A+ ; B+ ; C WITHIN 1 DAY", rejects=[])}
    maximal = weft.detect(events, "SELECT MAX * FROM S WHERE A+ ; B+ ; C WITHIN 1 DAY", rejects=[])
    found = set()
    for m in maximal:
        groups = groups_of(m.positions, [events[position]["type"] for position in m.positions])
        found |= {positions for configuration in configurations(groups) for positions in chosen(groups, configuration)}
    assert found == every
