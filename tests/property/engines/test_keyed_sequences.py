"""Keyed sequences, which have a separate kernel, equal the definition."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches, run_with_restarts
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import rows_of
from tests.property.engines.test_situations_equal_meaning import Case, _filled, _floats, meant, run

import weft
from weft.algebra.meaning import matches
from weft.algebra.situations import SituationQuery
from weft.languages import compile_text
from weft.plan.keyed import keyed_sequence
from weft.plan.planner import plan
from weft.runtime.classify import layer_keys
from weft.runtime.data import blocks
from weft.runtime.data.matches import MatchBatch
from weft.runtime.operators.situations import keyed

SOME = some(30)
TYPES = ("A", "B", "C", "D")
CONDITIONS = ("a.x > 0", "b.x <> 1", "not a.x = 2")
CONTEXTS = ("", "context fixed 12", "context sliding 5 every 7", "context by j", "context fixed 9 by j, k")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Two to four slots, tied by keys, each consuming or not."""
    variables = "abcd"[: draw(st.integers(2, 4))]
    slots = ", ".join(f"{type_} {name}" for type_, name in zip(TYPES, variables, strict=False))
    chosen = draw(st.sets(st.sampled_from(CONDITIONS)))
    for key in draw(st.sets(st.sampled_from("jk"))):
        chosen |= {f"{one}.{key} = {other}.{key}" for one, other in zip(variables[1:], variables, strict=False)}
    where = f"where {' and '.join(sorted(chosen))}" if chosen else ""
    repeated = draw(st.sampled_from(["every", "every", "first", "last"]))
    own = [f"{name}: consumption consume" for name in variables if draw(st.booleans())]
    if repeated != "every":
        own += [f"{name}: repeated last" for name in variables if draw(st.integers(0, 3)) == 3]
    policies = "; ".join([f"policies evaluation immediate, repeated {repeated}", *own])
    derive = draw(st.sampled_from(["", "derive s = a.x + b.x, k = a.k"]))
    return f"pattern P sequence({slots})\n{where}\n{policies}\n{draw(st.sampled_from(CONTEXTS))}\n{derive}"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A program and a stream in parts."""
    program, _ = compile_text(draw(programs()), language="epn")
    time, parts = draw(st.sampled_from([0, -20])), []
    for size in draw(st.lists(st.integers(1, 8), min_size=1, max_size=4)):
        part = []
        for _ in range(size):
            time += draw(st.sampled_from([0, 1, 1, 2, 6]))
            length = draw(st.sampled_from([0, 0, 0, 2]))
            event: dict[str, object] = {"type": draw(st.sampled_from([*TYPES, *TYPES, "X"])), "end": time}
            event |= {"start": time - length}
            values = {name: draw(st.sampled_from([1, 1, 1, 0, None])) for name in "jk"}
            values["x"] = draw(st.sampled_from([0, 1, 2, 2.5, None]))
            part.append(event | {name: value for name, value in values.items() if value is not None})
        parts.append(part)
    events = sorted((event for part in parts for event in part), key=lambda one: (one["end"], one["start"]))
    sizes = [len(part) for part in parts]
    return Case(program, events, [events[sum(sizes[:at]) : sum(sizes[: at + 1])] for at in range(len(sizes))])


@SOME
@given(cases())
def test_any_batches(case: Case) -> None:
    query = case.program.queries[0]
    assert isinstance(query, SituationQuery)
    assert keyed_sequence(query.situation) is not None
    chosen = plan(case.program)
    assert rows_of(run(chosen, event_batches(case.parts, chosen))) == meant(case)


@SOME
@given(cases(), st.integers(2, 3))
def test_lanes(case: Case, lanes: int) -> None:
    """The work can be split by the attributes in which all members agree."""
    chosen = plan(case.program)
    (group,) = chosen.lanes
    keys = [tuple(event.get(part[0]) for part in group.key) for event in case.events]
    distinct = list(dict.fromkeys(keys))
    found: list[MatchBatch] = []
    for lane in range(lanes):
        mine = np.flatnonzero([distinct.index(key) % lanes == lane for key in keys])
        batches = [blocks.take(batch, mine) for batch in event_batches([case.events], chosen)]
        found += run(chosen, [batch for batch in batches if len(batch)], group.queries)
    assert rows_of(found) == meant(case)


@SOME
@given(cases())
def test_restarts_and_small_output(case: Case) -> None:
    """After each batch a new matcher goes on from the pages; the kernel gives out two sets at a time."""
    chosen = plan(case.program)
    with patch.multiple(keyed, SETS=2, LEAST_ROWS=1), patch.object(layer_keys, "LEAST_SLOTS", 1):
        found = run_with_restarts(chosen, event_batches(case.parts, chosen))
    assert rows_of(found) == meant(case)


@SOME
@given(cases())
def test_public_functions(case: Case) -> None:
    expected = matches(case.program, case.events)
    found = list(weft.detect(case.events, case.program, engine="local"))
    shown, seen = (
        [(m.end, m.start, m.positions, m.query, _filled(sorted(m.bindings.items())), m.event) for m in some]
        for some in (expected, found)
    )
    assert list(map(_floats, seen)) == list(map(_floats, shown))
    assert weft.count(case.events, case.program, engine="local") == {"P": len(expected)}


@st.composite
def crowds(draw: st.DrawFn) -> Case:
    """Many events with one key, some of them long, so that an event completes many sets."""
    consumption = draw(st.sampled_from(["reuse", "reuse", "consume"]))
    text = f"pattern P sequence(A a, B b, C c, D d) policies evaluation immediate, consumption {consumption}"
    time, events = 0, []
    for type_ in [*draw(st.lists(st.sampled_from("ABC"), min_size=12, max_size=24)), "D", "D"]:
        time += draw(st.sampled_from([0, 1, 1, 2]))
        events.append({"type": type_, "start": time - draw(st.sampled_from([0, 0, 0, 1, 5])), "end": time})
    events.sort(key=lambda one: (one["end"], one["start"]))
    return Case(compile_text(text, language="epn")[0], events, [events])


@SOME
@given(crowds(), st.integers(1, 50))
def test_pieces_of_any_size(case: Case, size: int) -> None:
    """Sets are copied from those before them where that is possible, and do not wait for more room than there is."""
    chosen = plan(case.program)
    sets, keyed.SETS = keyed.SETS, size
    try:
        found = run(chosen, event_batches(case.parts, chosen))
    finally:
        keyed.SETS = sets
    assert all(0 < len(piece) <= size for piece in found)
    assert rows_of(found) == meant(case)
