"""docs/epn.md says what is true: its examples compile, its matches are those weft computes, its codes exist."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from weft.algebra.meaning import Match, matches
from weft.languages import compile_text

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "epn.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EVENT = re.compile(r"(\w+)(?:@(-?\d+))?(?:\(([^)]*)\))?")
BLOCKS = [(found[1], found[2], TEXT.count("\n", 0, found.start()) + 1) for found in FENCE.finditer(TEXT)]
EXAMPLES = [pytest.param(text, id=f"line {line}") for info, text, line in BLOCKS if info == "epn"]
CASES = [
    pytest.param(program, shown, id=f"line {line}: {shown.split('->')[0].strip()}")
    for (info, program, _), (after, text, line) in pairwise(BLOCKS)
    if info == "epn" and after == "text"
    for shown in text.splitlines()
]


def stream(text: str) -> list[dict[str, object]]:
    """Events from their notation: `A(x=1, y=q) B@7`; without a time they are one tick apart."""
    events: list[dict[str, object]] = []
    for position, found in enumerate(EVENT.finditer(text)):
        pairs = (pair.split("=") for pair in (found[3] or "").split(",") if pair.strip())
        attributes = {name.strip(): int(value) if value.isdigit() else value for name, value in pairs}
        events.append({"type": found[1], "ts": int(found[2] or position), **attributes})
    return events


def shown_as(match: Match, alone: bool) -> str:
    """A match by its positions, an absence by its times; in a network with the name of its pattern."""
    name = "" if alone else match.query
    if not match.positions:
        return f"{name}[{match.start},{match.end}]"
    return f"{name}{{{','.join(map(str, match.positions))}}}"


@pytest.mark.parametrize("text", EXAMPLES)
def test_example_compiles(text: str) -> None:
    program, _ = compile_text(text, language="epn")
    assert program.queries


@pytest.mark.parametrize(("text", "line"), CASES)
def test_example_has_the_matches_shown(text: str, line: str) -> None:
    events, expected = line.split("->")
    program, _ = compile_text(text, language="epn")
    found = [shown_as(match, len(program.queries) == 1) for match in matches(program, stream(events))]
    assert sorted(found) == sorted(expected.split())


def test_there_are_examples_with_matches() -> None:
    assert len(EXAMPLES) >= 20
    assert len(CASES) >= 20


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    folder = ROOT / "src" / "weft" / "languages"
    shared = [folder / name for name in ("__init__.py", "stops.py", "conditions.py", "durations.py", "limits.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in [*shared, *(folder / "epn").glob("*.py")])
    used = set(re.findall(r'(?:error|warning|Diagnostic)\(\s*"([a-z-]+)"', source))
    section = TEXT[TEXT.index("## Errors and warnings") :]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    assert set(re.findall(r"`([a-z-]+)`", " ".join(rows))) == used
