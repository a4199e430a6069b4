"""docs/which_language.md: each question has one answer in every language, the one that plain Python counts."""

from __future__ import annotations

import random
import re
import warnings
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import weft

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "which_language.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+) ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(found[1], found[2], found[3]) for found in FENCE.finditer(TEXT)]
SOURCES = next(text for language, question, text in BLOCKS if question == "sources")
MINUTE = 60_000
Event = dict[str, Any]


def in_time(events: list[Event]) -> list[Event]:
    """By time, no two at the same time."""
    ordered = sorted(events, key=lambda event: event["ts"])
    for before, after in pairwise(ordered):
        after["ts"] = max(after["ts"], before["ts"] + 1)
    return ordered


def by(events: list[Event], key: str) -> list[list[Event]]:
    groups: defaultdict[object, list[Event]] = defaultdict(list)
    for event in events:
        groups[event[key]].append(event)
    return list(groups.values())


def shoppers() -> list[Event]:
    rng = random.Random(1)
    events: list[Event] = []
    for number in range(60):
        time = rng.randrange(10**7)
        for type_ in ("View", "Cart", "Buy")[: rng.randint(1, 3)]:
            events.append({"type": type_, "ts": time, "user": f"u{number}"})
            time += rng.randrange(1, 25 * MINUTE)
    return in_time(events)


def funnel(events: list[Event]) -> int:
    return sum(len(own) == 3 and own[2]["ts"] - own[0]["ts"] < 30 * MINUTE for own in by(events, "user"))


def dropped(events: list[Event]) -> int:
    carts = [own for own in by(events, "user") if len(own) > 1]
    return sum(len(own) == 2 or own[2]["ts"] - own[1]["ts"] >= 30 * MINUTE for own in carts)


def some(type_: str, key: str, names: str, seed: int, count: int, span: int, **values: int) -> list[Event]:
    rng = random.Random(seed)
    return in_time(
        [
            {
                "type": type_,
                "ts": rng.randrange(span),
                key: rng.choice(names),
                **{name: rng.randrange(most) for name, most in values.items()},
            }
            for _ in range(count)
        ]
    )


def brute(events: list[Event]) -> int:
    alerts = 0
    for own in by(events, "user"):
        recent: list[int] = []
        for event in own:
            recent = [ts for ts in recent if event["ts"] - ts < MINUTE] + [event["ts"]]
            if len(recent) == 5:
                alerts, recent = alerts + 1, []
    return alerts


def brute_each(events: list[Event]) -> int:
    times = [[event["ts"] for event in own] for own in by(events, "user")]
    return sum(sum(0 < ts - before <= MINUTE for before in own) >= 4 for own in times for ts in own)


def pauses(events: list[Event], key: str, gap: int) -> int:
    times = [[event["ts"] for event in own] for own in by(events, key)]
    return sum(1 + sum(b - a > gap for a, b in pairwise(own)) for own in times)


def w_shape(events: list[Event]) -> int:
    prices = [[event["price"] for event in own] for own in by(events, "symbol")]
    return sum(a > b < c > d < e for own in prices for a, b, c, d, e in zip(*(own[n:] for n in range(5)), strict=False))


def crossing(events: list[Event]) -> int:
    found = 0
    for own in by(events, "symbol"):
        gaps: list[float | None] = []
        for event in own:
            short, long = (
                [other["price"] for other in own if 0 < event["ts"] - other["ts"] <= n * MINUTE] for n in (1, 5)
            )
            gaps.append(sum(short) / len(short) - sum(long) / len(long) if short and long else None)
        pairs = pairwise(gaps)
        found += sum(a is not None and b is not None and a <= 0 < b for a, b in pairs)
    return found


def users() -> list[Event]:
    rng = random.Random(6)
    events: list[Event] = []
    for number in range(40):
        time = rng.randrange(10**7)
        for type_ in ("Login", "Confirm", "Transfer"):
            if type_ != "Confirm" or rng.random() < 0.5:
                events.append({"type": type_, "ts": time, "user": f"u{number}"})
            time += rng.randrange(1, 40 * MINUTE)
    return in_time(events)


def unconfirmed(events: list[Event]) -> int:
    return sum(len(own) == 2 and own[1]["ts"] - own[0]["ts"] < 60 * MINUTE for own in by(events, "user"))


def top(events: list[Event]) -> int:
    spans: defaultdict[int, int] = defaultdict(int)
    for event in events:
        spans[event["ts"] // (10 * MINUTE)] += 1
    return sum(min(3, count) for count in spans.values())


def payments() -> list[Event]:
    rng = random.Random(8)
    events: list[Event] = []
    for number in range(60):
        time = rng.randrange(10**7)
        events.append({"type": "Order", "ts": time, "id": number})
        if rng.random() < 0.8:
            events.append({"type": "Payment", "ts": time + rng.randrange(1, 20 * MINUTE), "id": number})
    return in_time(events)


def join(events: list[Event]) -> int:
    return sum(len(own) == 2 and own[1]["ts"] - own[0]["ts"] < 10 * MINUTE for own in by(events, "id"))


QUESTIONS: dict[str, tuple[list[Event], Any]] = {
    "funnel": (shoppers(), funnel),
    "dropped": (shoppers(), dropped),
    "brute": (some("Fail", "user", "abc", 2, 300, 60 * MINUTE), brute),
    "brute_each": (some("Fail", "user", "abc", 2, 300, 60 * MINUTE), brute_each),
    "silent": (some("Beat", "device", "abcd", 3, 200, 300 * MINUTE), lambda es: pauses(es, "device", 5 * MINUTE)),
    "w_shape": (some("T", "symbol", "xyz", 4, 300, 60 * MINUTE, price=100), w_shape),
    "crossing": (some("T", "symbol", "xy", 5, 300, 60 * MINUTE, price=100), crossing),
    "sessions": (some("Click", "user", "abcdef", 9, 300, 600 * MINUTE), lambda es: pauses(es, "user", 10 * MINUTE)),
    "threshold": (
        some("Reading", "device", "abc", 10, 200, 60 * MINUTE, value=100),
        lambda es: sum(event["value"] > 90 for event in es),
    ),
    "unconfirmed": (users(), unconfirmed),
    "top": (some("Trade", "symbol", "xy", 7, 120, 240 * MINUTE, amount=1000), top),
    "join": (payments(), join),
}


def built() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for language, _, text in BLOCKS:
        if language == "python":
            exec(text, names)
    return {name: value for name, value in names.items() if isinstance(value, weft.Pattern)}


def programs() -> list[Any]:
    found = []
    for question in QUESTIONS:
        texts = [(language, text) for language, name, text in BLOCKS if name == question]
        if question == "crossing":
            found.append(pytest.param(question, texts, id="crossing in tesla and ceql"))
            continue
        found += [pytest.param(question, [one], id=f"{question} in {one[0]}") for one in texts]
    found += [pytest.param(name, pattern, id=f"{name} in python") for name, pattern in built().items()]
    return found


@pytest.mark.parametrize(("question", "given"), programs())
def test_matches_are_as_many_as_python_counts(question: str, given: Any) -> None:
    events, count = QUESTIONS[question]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not isinstance(given, weft.Pattern) and given[0][0] == "sql":
            assert weft.sql(given[0][1], events=as_table(events)).num_rows == count(events) > 0
            return
        program = given if isinstance(given, weft.Pattern) else [compiled(*one) for one in given]
        counts = weft.count([dict(event) for event in events], program)
    expected = count(events)
    assert expected > 0
    assert list(counts.values())[-1] == expected


def as_table(events: list[Event]) -> pa.Table:
    table = pa.Table.from_pylist(events)
    return table.set_column(table.column_names.index("ts"), "ts", table["ts"].cast(pa.timestamp("ms")))


def compiled(language: str, text: str) -> weft.Program:
    return weft.compile(SOURCES + text if language == "step" else text, language=language)


def test_every_question_is_answered_in_the_page() -> None:
    asked = {name for _, name, _ in BLOCKS if name and name != "sources"} | set(built())
    assert asked == set(QUESTIONS)
