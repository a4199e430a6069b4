"""The kernel of situations equals the definition, also with minimal space for its state."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given
from tests.driving import event_batches
from tests.harness import some
from tests.property.engines import test_keyed_sequences
from tests.property.engines.test_engines_equal_meaning import rows_of
from tests.property.engines.test_situations_equal_meaning import Case, cases, meant, run

from weft.errors import InputError
from weft.plan import layers
from weft.plan.planner import plan
from weft.runtime.classify import layer_keys
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.situations import memory, stage

SOME = some(
    60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything grows as late as possible and is swept at every batch; sets come out one by one."""
    for module, names in ((stage, ("NUMBERS", "LEAST_EVENTS")), (memory, ("LEAST_TABLE", "LEAST_SEEN"))):
        for name in names:
            monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(layer_keys, "LEAST_SLOTS", 1)
    monkeypatch.setattr(memory, "LEAST", memory.p.HEADER)
    monkeypatch.setattr(layers, "keyed_sequence", lambda situation: None)


@SOME
@given(case=cases())
@pytest.mark.usefixtures("little_room")
def test_little_room(case: Case) -> None:
    chosen = plan(case.program)
    matcher = Matcher(chosen)
    found: list[MatchBatch] = []
    pages: dict[str, bytes] = {}
    try:
        for batch in event_batches(case.parts, chosen):
            found += matcher.push(batch)
            pages = {name: page for name, page in {**pages, **matcher.snapshot()}.items() if page is not None}
            matcher = Matcher.restore(chosen, pages)
    except InputError:
        assume(False)
    assert rows_of([*found, *matcher.finish()]) == meant(case)


@SOME
@given(case=test_keyed_sequences.cases())
@pytest.mark.usefixtures("little_room")
def test_keyed_sequences_without_their_own_kernel(case: Case) -> None:
    chosen = plan(case.program)
    assert rows_of(run(chosen, event_batches(case.parts, chosen))) == meant(case)
