"""The two small notations of rule tests: an event per line, and an expected match per line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from weft.errors import did_you_mean
from weft.rule_tests.places import TestText
from weft.runtime.reading.kinds import NANOSECONDS

EventDict = dict[str, object]

EVENT_HINT = "an event is written `12 T id=1 val=45`, `+5s T id=1`, `1..3 T id=1` or as a JSON object"
MATCH_HINT = "a match is written `fire: t1@1 h1@3 t2@8`, `fire: 1 3 8` or `fire: t2@8 -> id=1`"
_PAIR = re.compile(r"(?P<name>[^\s=]+)=(?P<value>\"(?:\\.|[^\"\\])*\"|\[[^\]]*\]|[^\s\"]\S*)")
_TIME = re.compile(r"(?P<later>\+)?(?P<amount>-?\d+(?:\.\d+)?)(?P<unit>[a-z]+)?")


@dataclass(frozen=True)
class Notation:
    """How the events of a file are written."""

    time: str = "ts"
    type: str = "type"
    time_unit: str = "ms"


def read_events(text: TestText, notation: Notation) -> list[tuple[TestText, EventDict]]:
    """The events, each with its line; `+5` is five ticks after the event before."""
    clock = 0
    events: list[tuple[TestText, EventDict]] = []
    for line in text.lines():
        event = _json_event(line) if line.text.startswith("{") else _plain_event(line, notation, clock)
        events.append((line, event))
        time = event.get(notation.time, event.get("end"))
        clock = time if isinstance(time, int) else clock
    return events


def _json_event(line: TestText) -> EventDict:
    try:
        event = json.loads(line.text)
    except json.JSONDecodeError as problem:
        place = line.part(min(problem.pos, len(line.text) - 1), len(line.text))
        raise place.wrong("not-an-event", f"this is not JSON: {problem.msg}", EVENT_HINT) from None
    if not isinstance(event, dict):
        raise line.wrong("not-an-event", "this is no JSON object", EVENT_HINT)
    return event


def _plain_event(line: TestText, notation: Notation, clock: int) -> EventDict:
    words = list(line.pieces(r"\S+"))
    if len(words) < 2 or "=" in words[1].text:
        raise line.wrong("not-an-event", "an event needs a time and a type", EVENT_HINT)
    first, dots, _ = words[0].text.partition("..")
    start = _ticks(words[0].part(0, len(first)), notation, clock)
    times: EventDict = {notation.time: start}
    if dots:
        end = _ticks(words[0].part(len(first) + 2, len(words[0].text)), notation, start)
        if end < start:
            raise words[0].wrong("not-an-event", "the event ends before it starts", EVENT_HINT)
        times = {"start": start, "end": end}
    begin = line.text.index(words[1].text, len(words[0].text)) + len(words[1].text)
    attributes = read_pairs(line.part(begin, len(line.text)), EVENT_HINT)
    taken = next((name for name in (notation.type, *times) if name in attributes), None)
    if taken is not None:
        raise line.wrong("not-an-event", f"{taken!r} is written twice: it comes first in the line", EVENT_HINT)
    return {notation.type: words[1].text, **times, **attributes}


def _ticks(word: TestText, notation: Notation, clock: int) -> int:
    """A time in ticks: `12`, `2min`, or after the clock: `+12`, `+2min`."""
    found = _TIME.fullmatch(word.text)
    if found is None:
        raise word.wrong("not-a-time", f"{word.text!r} is not a time", EVENT_HINT)
    unit = found["unit"] or notation.time_unit
    if unit not in NANOSECONDS:
        raise word.wrong("unknown-unit", f"there is no unit {unit!r}", did_you_mean(unit, NANOSECONDS))
    exact = Fraction(found["amount"]) * NANOSECONDS[unit] / NANOSECONDS[notation.time_unit]
    if exact.denominator != 1:
        raise word.wrong("not-a-time", f"this is not a whole number of ticks, which are in {notation.time_unit}")
    return exact.numerator + (clock if found["later"] else 0)


def read_pairs(text: TestText, hint: str) -> dict[str, object]:
    """`name=value …`: numbers, true, false, null, "text" and [lists] are as in JSON; any other word is text."""
    pairs: dict[str, object] = {}
    at = 0
    for found in _PAIR.finditer(text.text):
        _require_blank(text.part(at, found.start()), hint)
        at = found.end()
        if found["name"] in pairs:
            raise text.part(*found.span()).wrong("written-twice", f"{found['name']!r} is written twice")
        pairs[found["name"]] = _value(found["value"])
    _require_blank(text.part(at, len(text.text)), hint)
    return pairs


def _require_blank(text: TestText, hint: str) -> None:
    for word in text.pieces(r"\S+"):
        raise word.wrong("not-a-value", f"{word.text!r} is not `name=value`", hint)


def _value(text: str) -> object:
    try:
        return json.loads(text, parse_constant=str)
    except json.JSONDecodeError:
        return text


# ---------------------------------------------------------------- expected matches


@dataclass(frozen=True)
class Expected:
    """An expected match, as far as it is stated.

    `positions` is None if they are not stated. With `more`, a match may have additional ones. A variable that is named
    is bound to exactly these positions, a field that is named has exactly this value.
    """

    line: TestText
    query: str
    positions: frozenset[int] | None = None
    more: bool = False
    bindings: Mapping[str, frozenset[int]] = field(default_factory=dict)
    fields: Mapping[str, object] = field(default_factory=dict)

    @property
    def stated(self) -> list[int]:
        """All positions that it names."""
        return sorted((self.positions or frozenset()).union(*self.bindings.values()))


def read_expected(line: TestText, variables: Mapping[str, frozenset[str]], query: str | None) -> Expected:
    """The match that a line expects. `variables` are those of each query; `query` is the one meant if none is named."""
    arrow = re.search(r"(?:^|\s)->", line.text)
    body = line.part(0, arrow.start() if arrow else len(line.text))
    named = re.match(r"([^\s:@]+)\s*:", body.text)
    if named is not None:
        query = named[1]
        body = body.part(named.end(), len(body.text))
    if query is None:
        raise line.wrong("which-query", "of which query? The program has several", did_you_mean("", variables))
    if query not in variables:
        hint = did_you_mean(query, variables)
        raise line.part(0, len(query)).wrong("unknown-query", f"the program has no query {query!r}", hint)
    bare: set[int] = set()
    more = False
    bindings: dict[str, frozenset[int]] = {}
    for word in body.pieces(r"\S+"):
        if word.text.isdecimal():
            bare.add(int(word.text))
        elif word.text == "...":
            more = True
        else:
            name, places = _binding(word, variables[query], query)
            bindings[name] = bindings.get(name, frozenset()) | places
    fields = read_pairs(line.part(arrow.end(), len(line.text)), MATCH_HINT) if arrow else {}
    positions = frozenset(bare.union(*bindings.values())) if bare else None
    return Expected(line, query, positions, more, bindings, fields)


def _binding(word: TestText, known: frozenset[str], query: str) -> tuple[str, frozenset[int]]:
    found = re.fullmatch(r"([^\s@]+)@(\d+(?:,\d+)*)", word.text)
    if found is None:
        raise word.wrong("not-a-match", f"{word.text!r} is neither a position nor a variable@position", MATCH_HINT)
    name = found[1]
    if name not in known:
        place = word.part(0, len(name))
        raise place.wrong("unknown-variable", f"{query!r} reports no variable {name!r}", did_you_mean(name, known))
    return name, frozenset(int(number) for number in found[2].split(","))
