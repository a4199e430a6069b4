"""Many conditions over events: those that ask for constants say the same as each would alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some

from weft.algebra.meaning.values import ValueScope, holds
from weft.algebra.predicates import Or, Predicate, Value
from weft.languages.content.lower import compile_filter
from weft.runtime.live.filters import Filters
from weft.runtime.reading.order import read_events

VALUES: tuple[Value | None, ...] = (0, 1, 1.0, 2, 2.5, True, False, "a", "b", 2**53, 2.0**53, 2**53 + 1, None)
TEXTS = ("0", "1", "1.0", "2", "2.5", "'a'", "'b'", str(2**53), str(2**53 + 1), "true", "false")


@st.composite
def conditions(draw: st.DrawFn) -> Predicate:
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        field, constant = draw(st.sampled_from(["x", "y"])), draw(st.sampled_from(TEXTS))
        shape = draw(st.sampled_from(["{} = {}", "{} = {}", "{} <> {}", "{} > {}"]))
        parts.append(shape.format(field, constant if shape != "{} > {}" else "1"))
    return compile_filter(draw(st.sampled_from([" and ", " and ", " or "])).join(parts))


@some(30)
@given(
    st.lists(conditions(), max_size=20),
    st.lists(st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES)), min_size=1, max_size=12),
)
def test_each_condition_alone_says_the_same(
    wanted: list[Predicate], rows: list[tuple[Value | None, Value | None]]
) -> None:
    filters = Filters(wanted)
    for x, y in rows:
        event = {name: value for name, value in (("x", x), ("y", y)) if value is not None}
        (batch,) = read_events([{"type": "E", "ts": 0, **event}], columns={"x", "y"})
        found = {number: places.tolist() for number, places in filters.satisfied(batch).items()}
        assert found == {
            number: [0] for number, condition in enumerate(wanted) if holds(condition, ValueScope({None: event}))
        }
    batches = read_events([{"type": "E", "ts": 0, "x": x, "y": y} for x, y in rows], columns={"x", "y"})
    together = Filters([Or((condition,)) for condition in wanted])  # asks for no constant
    for batch in batches:
        one, other = filters.satisfied(batch), together.satisfied(batch)
        assert {key: one[key].tolist() for key in sorted(one)} == {key: other[key].tolist() for key in sorted(other)}
