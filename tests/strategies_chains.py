"""Random chains of EQL's next with brackets and conditions of every class, as text, and rates for their types."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

TYPES = ("A", "B", "C", "D")
RATES = st.fixed_dictionaries({name: st.sampled_from([0.1, 1, 2, 8, 64, 128]) for name in TYPES})


@st.composite
def brackets(draw: st.DrawFn, parts: Sequence[str], operator: str = ";") -> str:
    """The operands with random brackets, often those of the default."""
    if len(parts) == 1:
        return parts[0]
    cut = draw(st.sampled_from([len(parts) - 1, draw(st.integers(1, len(parts) - 1))]))
    sides = [draw(brackets(side, operator)) for side in (parts[:cut], parts[cut:])]
    return f"({sides[0]} {operator} {sides[1]})"


@st.composite
def operands(draw: st.DrawFn, number: int) -> str:
    """A leaf, called after its number; now and then what is made of one."""
    leaf = f"{draw(st.sampled_from(TYPES))} v{number}"
    shape = draw(st.integers(0, 11))
    if shape == 9:
        return f"{leaf}+"
    if shape == 10:
        return f"({leaf} | {draw(st.sampled_from(TYPES))} w{number})"
    return f"({leaf} @ 2)" if shape == 11 else leaf


@st.composite
def chain_conditions(draw: st.DrawFn, count: int) -> list[str]:
    """Conditions of a chain: a key over neighbours or from one operand to all, and a few of the other classes."""
    found: list[str] = []
    key = draw(st.sampled_from(["none", "neighbours", "star", "last"]))
    if key == "neighbours":
        found += [f"FILTER(v{n}.k = v{n + 1}.k)" for n in range(count - 1)]
    elif key == "star":
        found += [f"FILTER(v{n}.k = v0.k)" for n in range(1, count)]
    elif key == "last":
        found += [f"FILTER(v{n}.k = v{count - 1}.k)" for n in range(count - 1)]
    numbers = st.integers(0, count - 1)
    for _ in range(draw(st.integers(0, 2))):
        one, other = sorted((draw(numbers), draw(numbers)))
        shape = draw(st.sampled_from(["single", "pair", "pair", "time"]))
        operator = draw(st.sampled_from(["<=", ">=", "<>", "="]))
        if shape == "single" or one == other:
            text = f"v{one}.x {operator} {draw(st.integers(0, 2))}"
        elif shape == "time":
            text = f"(v{one}, v{other}) OCCURS WITHIN {draw(st.integers(2, 12))}"
        else:
            text = f"v{one}.x {operator} v{other}.x"
        found.append(f"FILTER({text})" if draw(st.booleans()) else text)
    return found


@st.composite
def chain_texts(draw: st.DrawFn, least: int = 3, most: int = 5) -> str:
    """An EQL query that is a chain, sometimes with an exception around it."""
    count = draw(st.integers(least, most))
    pattern = draw(brackets([draw(operands(number)) for number in range(count)]))
    if draw(st.integers(0, 7)) == 7:
        pattern += f" \\ {draw(st.sampled_from(TYPES))} u"
    conditions = draw(chain_conditions(count))
    where = f" WHERE {', '.join(conditions)}" if conditions else ""
    return f"SELECT * FROM {pattern}{where}"


@st.composite
def union_texts(draw: st.DrawFn) -> str:
    """An EQL query with unions of leaves and chains."""
    count = draw(st.integers(3, 6))
    parts = [f"{draw(st.sampled_from(TYPES))} v{number}" for number in range(count)]
    if draw(st.booleans()):
        parts[-1] = f"({parts[-1]} ; {draw(st.sampled_from(TYPES))} w)"
    pattern = draw(brackets(parts, "|"))
    return f"SELECT * FROM {pattern if draw(st.booleans()) else f'({pattern}) ; A last'}"


@st.composite
def chain_streams(draw: st.DrawFn, most: int = 18) -> list[dict[str, object]]:
    """Events in stream order with ties: points, or points and intervals, of few values."""
    spans, end = draw(st.booleans()), 0
    events: list[dict[str, object]] = []
    for _ in range(draw(st.integers(most // 2, most))):
        end += draw(st.integers(0, 2))
        length = draw(st.integers(0, 3)) if spans else 0
        times = {"start": end - length, "end": end} if length else {"ts": end}
        k = draw(st.sampled_from([0, 1, 1, 0, None]))
        events.append({"type": draw(st.sampled_from(TYPES)), **times, "k": k, "x": draw(st.integers(0, 2))})
    events.sort(key=lambda event: (event.get("end", event.get("ts")), event.get("start", event.get("ts"))))
    return events
