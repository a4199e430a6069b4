"""docs/ceql.md says what is true: its examples compile, its matches are those weft computes, its codes exist."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from weft.algebra.meaning import matches
from weft.languages import compile_text

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "ceql.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EVENT = re.compile(r"(\w+)(?:\(([^)]*)\))?")


@dataclass(frozen=True)
class Block:
    info: str
    text: str
    line: int


def blocks() -> list[Block]:
    return [Block(found[1], found[2], TEXT.count("\n", 0, found.start()) + 1) for found in FENCE.finditer(TEXT)]


EXAMPLES = [pytest.param(block.text, id=f"line {block.line}") for block in blocks() if block.info == "ceql"]
CASES = [
    pytest.param(query.text, line, id=f"line {shown.line}: {line.split('->')[0].strip()}")
    for query, shown in zip(blocks(), blocks()[1:], strict=False)
    if query.info == "ceql" and shown.info == "text"
    for line in shown.text.splitlines()
]


def stream(text: str) -> list[dict[str, object]]:
    """Events from their notation: `A(x=1, y=2) B`."""
    events: list[dict[str, object]] = []
    for position, found in enumerate(EVENT.finditer(text)):
        pairs = (pair.split("=") for pair in (found[2] or "").split(",") if pair.strip())
        attributes = {name.strip(): int(value) for name, value in pairs}
        events.append({"type": found[1], "ts": position, **attributes})
    return events


@pytest.mark.parametrize("text", EXAMPLES)
def test_example_compiles(text: str) -> None:
    program, _ = compile_text(text, language="ceql")
    assert program.queries


@pytest.mark.parametrize(("text", "line"), CASES)
def test_example_has_the_matches_shown(text: str, line: str) -> None:
    events, shown = line.split("->")
    program, _ = compile_text(text, language="ceql")
    found = ["{" + ",".join(map(str, match.positions)) + "}" for match in matches(program, stream(events))]
    assert sorted(found) == sorted(shown.split())


def test_there_are_examples_with_matches() -> None:
    assert len(EXAMPLES) >= 30
    assert len(CASES) >= 30


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    folder = ROOT / "src" / "weft" / "languages"
    files = [folder / "__init__.py", folder / "stops.py", folder / "limits.py", *(folder / "ceql").glob("*.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    used = set(re.findall(r'(?:error|warning|Diagnostic)\(\s*"([a-z-]+)"', source))
    section = TEXT[TEXT.index("## Errors and warnings") : TEXT.index("## Differences")]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    assert set(re.findall(r"`([a-z-]+)`", " ".join(rows))) == used
