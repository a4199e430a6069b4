"""Live composite queries take sub-patterns that run already: what they share, and what is left when they go."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import weft
from weft.kernels.joins import occurrences
from weft.kernels.machine import tagged
from weft.plan.graph import Graph, build_graph
from weft.plan.reuse import extended
from weft.plan.text.graph import graph_lines
from weft.runtime.classify.codes import Codes, NumberCoder
from weft.runtime.data.events import EventBatch
from weft.runtime.machine.code import Code
from weft.runtime.operators.joins import operator as joins_run
from weft.runtime.operators.joins.occurrence_store import OccurrenceStore
from weft.runtime.operators.joins.operator import JoinOperator
from weft.runtime.reading.order import read_events
from weft.runtime.store import pages

THREE = "SELECT a.x FROM A a ; B b ; C c WHERE a.x <= b.x, (a, c) OCCURS WITHIN {} msec"
EXTERNALS = 'topology "t" ' + " ".join(f'external {name}(x: int) < "{name}" [1.0]' for name in "ABCD")


def graphs(running: weft.LiveProgram) -> list[JoinOperator]:
    return [run for run in running._deployments._matcher.operators if isinstance(run, JoinOperator)]


def event(type_: str, ts: int, x: int = 1) -> dict[str, object]:
    return {"type": type_, "ts": ts, "x": x}


def told(found: weft.Matches) -> list[tuple[str, tuple[int, ...]]]:
    return sorted((match.query, match.positions) for match in found)


def test_an_equal_query_adds_one_operator_that_passes_on_what_comes_after_it() -> None:
    running = weft.live(optimize=False)
    running.deploy(THREE.format(50), "old", "eql")
    running.push([event("A", 1), event("B", 2)])
    (graph,) = graphs(running)
    before = len(graph.operators)
    running.deploy(THREE.format(50), "new", "eql")
    assert graphs(running) == [graph]
    assert len(graph.operators) == before + 1
    assert [line for line in graph_lines(graph.graph) if "from position 2 on" in line]
    found = told(running.push([event("C", 3), event("A", 4), event("B", 5), event("C", 6), event("D", 7)]))
    assert found == [("new", (3, 4, 5)), ("old", (0, 1, 2)), ("old", (3, 4, 5))]


def test_operators_go_with_the_last_query_that_needs_them() -> None:
    running = weft.live(optimize=False)
    running.deploy(THREE.format(50), "one", "eql")
    (graph,) = graphs(running)
    alone = len(graph.operators)
    running.deploy("SELECT a.x, d.x FROM A a ; B b ; D d WHERE a.x <= b.x, (a, d) OCCURS WITHIN 40 msec", "two", "eql")
    assert len(graph.operators) == alone + 3  # what is seen of A ; B, the source D, and the sequence with it
    running.push([event("A", 1), event("B", 2)])
    running.remove("one")
    assert [node.operator for node in graph.graph.nodes] == [
        "Event",
        "Event",
        "Sequence",
        "Sequence",
        "Event",
        "Sequence",
    ]
    assert told(running.push([event("C", 3), event("D", 4), event("C", 5)])) == [("two", (0, 1, 3))]
    running.deploy(THREE.format(40), "one", "eql")
    found = told(running.push([event("A", 6), event("B", 7), event("C", 8), event("D", 9), event("A", 10)]))
    assert found == [("one", (5, 6, 7)), ("two", (5, 6, 8))]
    running.remove("one", "two")
    assert graphs(running) == []


def test_what_is_needed_for_longer_is_found_anew() -> None:
    running, added = graph_of(THREE.format(50)), graph_of(THREE.format(60))
    whole = extended(running, added, 7)
    assert whole is not None
    assert [running.nodes[node.inputs[0]].operator for node in whole.nodes if node.since == 7] == ["Event"] * 3
    assert extended(running, graph_of(THREE.format(50)), 7) is not None


@pytest.mark.parametrize("pattern", ["!B/b ; A/a", "A/a +[a.x > prev(a.x)]", "A/a ; !B/b ; C/c"])
def test_what_depends_on_earlier_events_is_not_shared(pattern: str) -> None:
    graph = graph_of(f"{EXTERNALS} Q(a.x): {pattern}")
    whole = extended(graph, graph, 7)
    assert whole is not None
    assert {node.operator for node in whole.nodes if node.since is not None} <= {"Event", "Sequence"}


def test_a_new_query_may_ask_for_an_order_that_the_old_one_did_not() -> None:
    running = weft.live(optimize=False)
    running.deploy(f"{EXTERNALS} U(*): A/a | B/b", None, "step")
    running.deploy(f"{EXTERNALS} Q(*): C/c ; (A/a | B/b)", None, "step")
    longer = {"type": "B", "start": 4, "end": 5, "x": 1}
    found = told(running.push([event("C", 1), longer, event("A", 5), event("D", 9)]))
    assert found == [("Q", (0, 1)), ("U", (1,)), ("U", (2,))]


def test_rows_and_events_that_are_there_have_nothing_where_more_is_kept() -> None:
    memory = OccurrenceStore(["x"], Code())
    (batch,) = read_events([event("A", 1, 5), event("A", 2, 6)], columns=("x", "y"))
    numbers = np.arange(memory.add(batch, np.arange(2)), 2)
    rows = memory.add_sources(numbers, 2)
    memory.widen(["x", "y"])
    memory.add_slots(1)
    begins = memory.times(rows, occurrences.SLOTS)
    assert [memory.slots[begin : begin + 3].tolist() for begin in begins] == [[0, 0, -1], [1, 1, -1]]
    assert memory.values[: 2 * memory.width].reshape(2, -1)[:, 1].tolist() == [5, 6]
    assert (memory.values[: 2 * memory.width].reshape(2, -1)[:, 2] == tagged.MISSING).all()


def test_what_was_saved_before_a_change_of_the_graph_is_saved_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ITEMS", 2)
    running = weft.live(optimize=False)
    running.deploy("SELECT c.x FROM C c ; C d WHERE c.x < d.x", "gone", "eql")
    running.deploy("SELECT a.x FROM A a ; B b ; C c WHERE FILTER(a.x <= c.x)", "old", "eql")
    running.push([event("AB"[ts % 2], ts, 9 - ts) for ts in range(8)])
    running.save(tmp_path / "saved")
    running.deploy("SELECT a.x FROM A a ; B b ; D d WHERE FILTER(a.y = d.y)", "new", "eql")
    running.remove("gone")
    running.push([event("C", 8, 2), {**event("A", 9, 9), "y": 1}, event("B", 10)])
    running.save(tmp_path / "saved")
    again = weft.LiveProgram.load(tmp_path / "saved", optimize=False)
    found = told(again.push([event("C", 11, 5), {**event("D", 12), "y": 1}, event("C", 13)]))
    assert found == [("new", (9, 10, 12)), ("old", (4, 5, 11)), ("old", (6, 7, 11))]


def test_keys_are_kept_for_those_who_are_there() -> None:
    running = weft.live(optimize=False)
    running.deploy("SELECT a.x FROM A a ; B b WHERE FILTER(a.x = b.x)", "one", "eql")
    running.deploy("SELECT a.x FROM A a ; C c WHERE FILTER(a.x = c.x)", "two", "eql")
    running.deploy("SELECT a.x FROM A a ; B b WHERE FILTER(a.x = b.x)", "again", "eql")
    users = [shared.users for graph in graphs(running) for shared in graph._keys._shared.values()]
    assert [len(own) for own in users] == [len(graph.chains) for graph in graphs(running)]
    running.remove("one", "again")
    (graph,) = graphs(running)
    assert [shared.users for shared in graph._keys._shared.values()] == [graph.chains]


def test_a_query_joins_the_graph_that_has_most_of_it() -> None:
    running = weft.live(optimize=False)
    running.deploy("SELECT c.x FROM C c ; D d WHERE c.x < d.x", "one", "eql")
    running.deploy("SELECT a.x FROM A a ; B b WHERE a.x < b.x", "two", "eql")
    one, two = graphs(running)
    running.deploy("SELECT a.x FROM A a ; B b ; C c WHERE a.x < b.x", "both", "eql")
    assert [len(graph.queries) for graph in (one, two)] == [1, 2]


def test_queries_with_nothing_in_common_run_apart() -> None:
    running = weft.live()
    running.deploy("SELECT a.x FROM A a ; B b", "one", "eql")
    running.deploy("SELECT c.x FROM C c ; D d", "other", "eql")
    assert len(graphs(running)) == 2


def test_many_that_come_and_go_leave_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins_run, "LEAST_GONE", 8)
    running = weft.live(optimize=False)
    running.deploy("SELECT a.x FROM A a ; B b", "host", "eql")
    columns = set()
    for number in range(60):
        running.deploy(f"SELECT a.x FROM A a ; B b ; C c WHERE a.y{number} = c.y{number} + 1", "guest", "eql")
        running.push([event("A", 3 * number), event("B", 3 * number + 1), event("C", 3 * number + 2)])
        columns.update(len(graph.row_store.columns) for graph in graphs(running))
        running.remove("guest")
    assert max(columns) <= 30
    (graph,) = graphs(running)
    assert len(graph.operators) == 1  # a chain


def graph_of(text: str) -> Graph:
    program = weft.compile(text, language="eql" if "SELECT" in text else "step")
    return build_graph(program.queries)  # type: ignore[arg-type]


def test_queries_of_several_deployments_look_at_a_column_once(monkeypatch: pytest.MonkeyPatch) -> None:
    coded: list[str] = []
    code = NumberCoder.code

    def counted(self: NumberCoder, batch: EventBatch) -> Codes:
        coded.append(self._name)
        return code(self, batch)

    monkeypatch.setattr(NumberCoder, "code", counted)
    running = weft.live()
    running.deploy("SELECT * WHERE (A AS a ; B AS b) FILTER a[x > 1] WITHIN 9 EVENTS", "one")
    running.push([event("A", 1, 2)])
    running.deploy("SELECT * WHERE (A AS a ; C AS c) FILTER a[x > 3] AND c[x > 1] WITHIN 9 EVENTS", "two")
    running.deploy("SELECT a.x FROM A a ; B b WHERE a.x > 5, (a, b) OCCURS WITHIN 9 msec", "three", "eql")
    running.deploy("pattern Four any(A a) where a.x > 7", None, "epn")
    coded.clear()
    found = told(running.push([event("A", 2, 9), event("A", 3, 4), event("C", 4, 2), event("B", 5, 1), event("D", 6)]))
    assert coded == ["x"]
    running.remove("one", "three")
    coded.clear()
    found += told(running.push([event("A", 7, 2), event("C", 8, 2), event("D", 9)]))
    assert coded == ["x"]
    assert found == [
        ("Four", (1,)),
        ("one", (0, 4)),
        ("one", (1, 4)),
        ("one", (2, 4)),
        ("three", (1, 4)),
        ("two", (1, 3)),
        ("two", (2, 3)),
        ("two", (1, 7)),
        ("two", (2, 7)),
    ]


def test_a_query_over_derived_events_takes_sub_patterns_that_run_already(tmp_path: Path) -> None:
    running = weft.live(optimize=False)
    running.deploy("SELECT a.x AS x FROM A a ; B b WHERE FILTER(a.x = b.x), (a, b) OCCURS WITHIN 9 msec", "P", "eql")
    running.deploy("SELECT p.x FROM P p ; C c WHERE p.x <= c.x, (p, c) OCCURS WITHIN 50 msec", "old", "eql")
    running.push([event("A", 1), event("B", 2), event("E", 3)])
    reader = graphs(running)[1]
    before = len(reader.operators)
    running.deploy("SELECT p.x FROM (P p ; C c) ; D d WHERE p.x <= c.x, (p, c) OCCURS WITHIN 50 msec", "new", "eql")
    assert len(graphs(running)) == 2
    assert len(reader.operators) == before + 3  # what is seen of P ; C, the source D, and the sequence with it
    running.save(tmp_path / "saved")
    running = weft.LiveProgram.load(tmp_path / "saved", optimize=False)
    found = told(
        running.push([event("C", 4), event("D", 5), event("A", 6), event("B", 7), event("C", 8), event("D", 9)])
    )
    found += told(running.push([event("E", 10)]))
    assert [match for match in found if match[0] != "P"] == [
        ("old", (0, 1, 3)),
        ("old", (5, 6, 7)),
        ("new", (5, 6, 7, 8)),
    ]
    running.remove("old")
    assert len(graphs(running)) == 2
    later = [event(type_, ts) for ts, type_ in enumerate("ABCDE", start=11)]
    assert told(running.push(later)) == [("P", (10, 11)), ("new", (10, 11, 12, 13))]


def test_a_query_is_on_its_own_where_derived_events_wait() -> None:
    running = weft.live(optimize=False)
    running.deploy("SELECT a[x] WHERE (A AS a ; B AS b) WITHIN 9 EVENTS", "P", "ceql")
    running.deploy("SELECT p.x FROM P p ; C c", "old", "eql")
    running.push([event("A", 1), event("B", 2)])  # the pair waits for events that end with it
    running.deploy("SELECT p.x FROM P p ; C c", "new", "eql")
    assert len(graphs(running)) == 2
    assert told(running.push([event("C", 4), event("E", 5)])) == [("old", (0, 2))]


def test_what_waits_for_its_place_came_before() -> None:
    running = weft.live(optimize=False)
    running.deploy("SELECT a.x AS x FROM A a ; B b WHERE (a, b) OCCURS WITHIN 9 msec", "P", "eql")
    running.deploy("SELECT c.x FROM C c ; P p WHERE (c, p) OCCURS WITHIN 9 msec", "old", "eql")
    running.push([event("C", 1)])  # it waits for events that end with it
    running.deploy("SELECT c.x FROM C c ; P p WHERE (c, p) OCCURS WITHIN 9 msec", "new", "eql")
    assert len(graphs(running)) == 2
    found = told(running.push([event(type_, ts) for ts, type_ in enumerate("ABCABE", start=2)]))
    assert [match for match in found if match[0] != "P"] == [("new", (3, 4, 5)), ("old", (0, 1, 2)), ("old", (3, 4, 5))]
