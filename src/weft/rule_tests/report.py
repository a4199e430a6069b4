"""How a case came out, as text with each missing and each extra match and its events, and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from weft.rule_tests.lines import Expected
from weft.rule_tests.run import Outcome, PlacedEvent
from weft.rule_tests.tables import TableOutcome
from weft.runtime.data.matches import Match


def case_lines(outcome: Outcome | TableOutcome) -> Iterator[str]:
    """A case: one line if it passed, else also what differs."""
    if isinstance(outcome, TableOutcome):
        yield from outcome.lines()
        return
    case = outcome.case
    if outcome.passed:
        yield f"  ok      {case.name}"
        return
    yield f"  FAILED  {case.name} (line {case.place.line})"
    for query, wanted, found in outcome.counts:
        yield f"    {found} match{'es' * (found != 1)}{f' of {query}' if query else ''}, expected {wanted}"
    for expected in outcome.missing:
        yield f"    missing  {expected.line.text}  (line {expected.line.line})"
        yield from _events(expected.stated, expected.bindings, outcome.events)
    # A wrong number says nothing about which match is too much: all are shown.
    heading, shown = ("extra", outcome.extra) if case.expected is not None else ("found", outcome.found)
    for match in shown:
        yield f"    {heading}    {match_text(match)}"
        yield from _events(match.positions, match.bindings, outcome.events)


def match_text(match: Match) -> str:
    """A match in the notation of expected ones, ready to be copied into a test file."""
    bound = {position for places in match.bindings.values() for position in places}
    words = [str(position) for position in match.positions if position not in bound]
    words += [f"{name}@{','.join(map(str, places))}" for name, places in match.bindings.items() if places]
    fields = f" -> {_pairs(match.event)}" if match.event else ""
    return f"{match.query}: {' '.join(words)}{fields}"


def to_json(outcome: Outcome | TableOutcome) -> dict[str, object]:
    """The outcome as a JSON object."""
    if isinstance(outcome, TableOutcome):
        return outcome.to_json()
    case = outcome.case
    return {
        "file": case.place.source.name,
        "line": case.place.line,
        "case": case.name,
        "passed": outcome.passed,
        "missing": [_expected_json(expected) for expected in outcome.missing],
        "extra": [match.to_json() for match in outcome.extra],
        "counts": [{"query": query, "expected": wanted, "found": found} for query, wanted, found in outcome.counts],
    }


def _expected_json(expected: Expected) -> dict[str, object]:
    return {
        "line": expected.line.line,
        "query": expected.query,
        "positions": expected.stated,
        "bindings": {name: sorted(places) for name, places in expected.bindings.items()},
        "event": dict(expected.fields),
    }


def _events(
    positions: Sequence[int], bindings: Mapping[str, Sequence[int] | frozenset[int]], events: Sequence[PlacedEvent]
) -> Iterator[str]:
    """The events at the positions, one per line: position, variables, event."""
    names = {at: ",".join(name for name, places in bindings.items() if at in places) for at in positions}
    width = max(map(len, names.values()), default=0)
    for at, name in names.items():
        event = events[at]
        pairs = f" {_pairs(event.attributes)}" if event.attributes else ""
        yield f"             {f'{name:<{width}}  ' if width else ''}{at:>3}: {event.time} {event.type}{pairs}"


def _pairs(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_value(value)}" for name, value in values.items())


def _value(value: object) -> str:
    """A value as it would be written; text without quotes if it is read as the same text."""
    if isinstance(value, str) and re.fullmatch(r"[^\W\d][\w./:-]*", value) and value not in ("true", "false", "null"):
        return value
    return json.dumps(value, ensure_ascii=False)
