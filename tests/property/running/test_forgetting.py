"""Keys of absences expire as the program says: absences equal the definition, whatever is released when."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches, keep
from tests.harness import some
from tests.property.running.test_live_equals_meaning import EventDict, keys

import weft
from weft.algebra.meaning import matches
from weft.languages import compile_text
from weft.plan.planner import plan
from weft.runtime.classify import layer_keys
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.situations import stage
from weft.runtime.writing.match_rows import to_matches

SOME = some(60)


@pytest.fixture(autouse=True, scope="module")
def sweeping_at_once() -> Iterator[None]:
    """Nothing is too little for a sweep."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((layer_keys, "LEAST_SLOTS"), (layer_keys, "MUCH"), (stage, "LEAST_EVENTS")):
            patch.setattr(module, name, 0)
        yield


contexts = st.one_of(
    st.sampled_from([3, 10]).map(lambda length: f"fixed {length}"),
    st.tuples(st.sampled_from([4, 10]), st.sampled_from([3, 7, 15])).map(
        lambda pair: "sliding {} every {}".format(*pair)
    ),
)


@st.composite
def streams(draw: st.DrawFn) -> list[EventDict]:
    """Events with keys that come, stay away for long, and come again; some are long."""
    time, events = 0, list[EventDict]()
    for _ in range(draw(st.integers(1, 12))):
        time += draw(st.sampled_from([0, 1, 3, 11, 40]))
        length = draw(st.sampled_from([0, 0, 0, 0, 4, 25]))
        times = {"ts": time} if not length else {"start": time - length, "end": time}
        events.append({"type": draw(st.sampled_from("AB")), "k": draw(st.integers(0, 2)), **times})
    return events


@SOME
@given(contexts, st.sampled_from([1, 5, 20]), streams(), st.sets(st.integers(0, 11)), st.booleans())
def test_keys_are_forgotten(context: str, forget: int, events: list[EventDict], cuts: set[int], restarts: bool) -> None:
    text = f"pattern P absence(A a) context {context} by k forget {forget} derive k = k"
    program, _ = compile_text(text, language="epn")
    ordered = sorted(events, key=lambda e: (e.get("end", e.get("ts")), e.get("start", e.get("ts"))))
    longest = max(int(str(e.get("end", 0))) - int(str(e.get("start", 0))) for e in ordered)
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(ordered)), len(ordered)]
    chosen = plan(program)
    matcher, pages, found = Matcher(chosen), dict[str, bytes](), []
    for batch in event_batches([ordered[a:b] for a, b in pairwise(edges)], chosen):
        matcher.expect(longest)
        found += matcher.push(batch)
        if restarts:
            keep(pages, matcher.snapshot())
            matcher = Matcher.restore(chosen, dict(pages))
    matcher.expect(longest)
    found += matcher.finish()
    assert keys(match for part in found for match in to_matches([part])) == keys(matches(program, ordered))


@pytest.mark.parametrize(
    ("length", "forget"),
    [
        ("10", "100000"),
        ("50000000000000", "4000000000000000000"),
        ("4000000000000000000", "9000000000000000000"),
    ],
)
def test_times_at_the_ends_are_no_exception(length: str, forget: str) -> None:
    program, _ = compile_text(f"pattern P absence(A a) context fixed {length} by k forget {forget}", language="epn")
    events = [{"type": "B", "ts": 2**62 - gap, "k": k} for k, gap in enumerate((25, 12, 1))]
    assert keys(weft.detect(events, program)) == keys(matches(program, events)) != []


@pytest.mark.parametrize("context", ["fixed 3 by k forget 1", "from B for 3 by k"])
def test_values_that_take_the_places_of_others_are_shown(context: str) -> None:
    """The slots of values that were forgotten go to others in any order."""
    program, _ = compile_text(f"pattern P absence(C c) context {context} derive k = k", language="epn")
    first = [{"type": "B", "k": k, "ts": 0} for k in range(6)]
    events = [
        *first,
        {"type": "B", "k": 0, "ts": 11},
        *({"type": type_, "k": 10 + k, "ts": 20} for k, type_ in enumerate("BBC")),
    ]
    chosen = plan(program)
    matcher = Matcher(chosen)
    found = [part for batch in event_batches([events[:7], events[7:]], chosen) for part in matcher.push(batch)]
    found += matcher.finish()
    assert keys(match for part in found for match in to_matches([part])) == keys(matches(program, events))
