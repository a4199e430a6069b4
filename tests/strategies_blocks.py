"""Random patterns whose assertions fall into several blocks, with all policies, and streams that match them often."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import strategies as st
from tests.strategies import with_some_extremes
from tests.strategies_epn import EventDict

TYPES = ("A", "B", "C", "D", "E")
CONTEXTS = (
    *("", "", "", "context fixed 30", "context sliding 14 every 6", "context by j"),
    *("context from A until E", "context from B for 12", "context fixed 20 by j"),
)
TIES = ("{0}.k = {1}.k", "{0}.k = {1}.k", "{0}.x <= {1}.x", "({0}.k = {1}.k or {0}.x > 1)", "not {0}.k <> {1}.k")


@st.composite
def slots_of(draw: st.DrawFn, least: int = 3, most: int = 5) -> list[str]:
    """The types of slots: usually different ones."""
    count = draw(st.integers(least, most))
    types = list(TYPES[:count])
    if draw(st.integers(0, 3)) == 3:
        types[draw(st.integers(1, count - 1))] = types[0]
    return types


@st.composite
def conditions(draw: st.DrawFn, names: str) -> list[str]:
    """Conditions that tie some neighbours, sometimes slots that are further apart."""
    found = []
    for one, other in pairwise(names):
        if draw(st.booleans()):
            found.append(draw(st.sampled_from(TIES)).format(one, other))
    if draw(st.integers(0, 4)) == 4:
        found.append(draw(st.sampled_from(TIES)).format(names[0], names[2]))
    if draw(st.integers(0, 3)) == 3:
        found.append(f"{draw(st.sampled_from(names))}.x > 0")
    return found


@st.composite
def policies(draw: st.DrawFn, names: str, types: list[str]) -> str:
    """Policies of the pattern and of some slots."""
    repeated = ["first", "last", "every"] + (["override"] if len(set(types)) == len(types) else [])
    groups = [
        f"evaluation {draw(st.sampled_from(['immediate', 'immediate', 'deferred']))}, "
        f"cardinality {draw(st.sampled_from(['unrestricted', 'unrestricted', 'single']))}, "
        f"repeated {draw(st.sampled_from(repeated))}, consumption {draw(st.sampled_from(['consume', 'reuse']))}"
    ]
    for name in names:
        if draw(st.integers(0, 3)) == 3:
            groups.append(f"{name}: repeated {draw(st.sampled_from(repeated))}")
        if draw(st.integers(0, 3)) == 3:
            groups.append(f"{name}: consumption {draw(st.sampled_from(['consume', 'reuse']))}")
    return "policies " + "; ".join(groups)


@st.composite
def block_patterns(draw: st.DrawFn, kinds: tuple[str, ...] = ("sequence", "sequence", "all")) -> str:
    """A pattern of three to five slots."""
    kind = draw(st.sampled_from(kinds))
    types = draw(slots_of(most=5 if kind == "sequence" else 4))
    names = "abcde"[: len(types)]
    slots = ", ".join(f"{type_} {name}" for type_, name in zip(types, names, strict=True))
    chosen = draw(conditions(names))
    where = f"where {' and '.join(chosen)}" if chosen else ""
    context = draw(st.sampled_from(CONTEXTS))
    return f"pattern P {kind}({slots})\n{where}\n{draw(policies(names, types))}\n{context}"


def block_streams(most: int = 14) -> st.SearchStrategy[list[EventDict]]:
    """A stream that runs through the types again and again, with ties, intervals, few values and missing ones.

    It is made of a number: drawn one by one, events that match four others are too rare.
    """
    plain = st.integers(0, 1 << 30).map(lambda seed: stream_of(Random(seed), most))
    return plain.flatmap(lambda events: with_some_extremes(events, "kxj"))


def stream_of(random: Random, most: int) -> list[EventDict]:
    """A random stream."""
    time, type_, events = random.choice([0, -20]), 0, []
    plain = random.random() < 0.5  # instants, one after the other
    for _ in range(random.randint(most // 2, most)):
        time += 1 if plain else random.choice([0, 1, 1, 1, 2])
        length = 0 if plain else random.choice([0, 0, 0, 0, 2])
        event: EventDict = {"type": TYPES[type_], "start": time - length, "end": time}
        values = {
            "k": random.choice([0, 0, 0, 1, 1.0, None]),
            "x": random.choice([0, 1, 2]),
            "j": random.choice([0, 0, 0, 1]),
        }
        events.append(event | {name: value for name, value in values.items() if value is not None})
        type_ = (type_ + random.choice([0, 0, 1, 1, 1, 1, 4])) % len(TYPES)
    return sorted(events, key=lambda one: (one["end"], one["start"]))  # type: ignore[no-any-return]
