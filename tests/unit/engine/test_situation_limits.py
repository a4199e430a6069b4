"""Large patterns are planned in time that grows with them, or refused by their limit; old keys are forgotten."""

from __future__ import annotations

import pytest
from tests.unit.engine.test_situation_runs import matcher_of, push

from weft.algebra.analysis.normal_form import clauses
from weft.algebra.situations import SituationQuery
from weft.errors import ProgramError
from weft.languages import compile_text
from weft.plan.planner import plan


def slots(count: int) -> str:
    return ", ".join(f"T{number} t{number}" for number in range(count))


@pytest.mark.parametrize(
    ("text", "code", "limit"),
    [
        (f"all({slots(65)})", "too-many-participants", "at most 64"),
        (f"sequence({slots(501)})", "too-many-participants", "at most 500"),
        ("sequence(A a, B b) context sliding 1 day every 1 ms", "many-partitions", "100000 is the limit"),
        ("absence(A a) context sliding 1 day every 1 ms", "many-partitions", "100000 is the limit"),
    ],
)
def test_what_is_refused_names_its_limit(text: str, code: str, limit: str) -> None:
    with pytest.raises(ProgramError) as caught:
        compile_text(f"pattern P {text}", language="epn")
    assert code in str(caught.value)
    assert limit in str(caught.value)


@pytest.mark.parametrize("tie", ["t{0}.k = t{1}.k", "t{0}.k < t{1}.k"])
@pytest.mark.parametrize("kind", ["sequence", "all"])
def test_the_largest_patterns_are_planned(kind: str, tie: str) -> None:
    count = 500 if kind == "sequence" else 64
    where = " and ".join(tie.format(number, number + 1) for number in range(count - 1))
    program, _ = compile_text(f"pattern P {kind}({slots(count)}) where {where}", language="epn")
    assert plan(program).operators


@pytest.mark.parametrize("joined", [("or", "and"), ("and", "or")])
def test_conditions_do_not_explode(joined: tuple[str, str]) -> None:
    """In normal form they would have 2^400 clauses; as they are, they are one."""
    inner, outer = joined
    parts = (f"(a.x = {number} {inner} b.x = {number})" for number in range(400))
    program, _ = compile_text(f"pattern P sequence(A a, B b) where {f' {outer} '.join(parts)}", language="epn")
    (query,) = program.queries
    assert isinstance(query, SituationQuery)
    assert len(clauses(query.situation.assertion)) in (1, 400)
    assert plan(program).operators


def test_keys_whose_partitions_have_closed_are_forgotten() -> None:
    matcher = matcher_of("pattern P absence(B b) context from A for 5 by k derive k = k")
    pages: dict[str, bytes] = {}
    sizes = []
    for first in range(0, 40_000, 8_000):
        found = push(matcher, *({"type": "A", "ts": 10 * key, "k": f"k{key}"} for key in range(first, first + 8_000)))
        assert found >= 7_999
        pages = {name: page for name, page in {**pages, **matcher.snapshot()}.items() if page is not None}
        sizes.append(sum(map(len, pages.values())))
    assert sizes[-1] < 1.2 * sizes[1]
