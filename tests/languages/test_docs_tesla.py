"""docs/tesla.md says what is true: examples compile, matches are those shown, codes exist."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from weft.algebra.meaning import matches
from weft.languages import compile_text

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tesla.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EVENT = re.compile(r"(\w+)(?:@(\d+))?(?:\(([^)]*)\))?")
SHARED_CODES = {"syntax", "too-large"}  # made where all languages meet


@dataclass(frozen=True)
class Block:
    info: str
    text: str
    line: int


BLOCKS = [Block(f[1], f[2], PAGE.count("\n", 0, f.start()) + 1) for f in FENCE.finditer(PAGE)]
EXAMPLES = [pytest.param(block, id=f"line {block.line}") for block in BLOCKS if block.info == "tesla"]
CASES = [
    pytest.param(rules, line, id=f"line {shown.line}: {line.split('->')[0].strip()}")
    for rules, shown in pairwise(BLOCKS)
    if rules.info == "tesla" and shown.info == "text" and "->" in shown.text
    for line in shown.text.splitlines()
]


def stream(text: str) -> list[dict[str, object]]:
    """Events from their notation: `A@5(v=1,s=p) B`."""
    events: list[dict[str, object]] = []
    for position, (type_, time, given) in enumerate(EVENT.findall(text)):
        pairs = (pair.split("=") for pair in given.split(",") if pair)
        attributes = {name: int(value) if value.isdigit() else value for name, value in pairs}
        events.append({"type": type_, "ts": int(time or position), **attributes})
    return events


@pytest.mark.parametrize("block", EXAMPLES)
def test_example_compiles(block: Block) -> None:
    program, warnings = compile_text(block.text, language="tesla")
    assert program.queries
    assert not warnings


@pytest.mark.parametrize(("block", "line"), CASES)
def test_example_has_the_matches_shown(block: Block, line: str) -> None:
    events, shown = line.split("->")
    program, _ = compile_text(block.text, language="tesla")
    found = [f"{m.query}{{{','.join(map(str, m.positions))}}}" for m in matches(program, stream(events))]
    assert sorted(found) == sorted(shown.split())


def test_recursive_example_compiles_with_the_warning_it_speaks_of() -> None:
    (text,) = (block.text for block in BLOCKS if "Streak" in block.text)
    _, warnings = compile_text(text, language="tesla")
    assert [warning.code for warning in warnings] == ["endless-history"]


def test_there_are_examples_with_matches() -> None:
    assert len(EXAMPLES) >= 18
    assert len(CASES) >= 25


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    folder = ROOT / "src" / "weft" / "languages"
    files = [folder / "conditions.py", folder / "durations.py", *(folder / "tesla").glob("*.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    used = set(re.findall(r'(?:error|warning)\(\s*"([a-z-]+)"', source)) | SHARED_CODES
    section = PAGE[PAGE.index("## Errors") : PAGE.index("## Differences")]
    rows = [row.split(" | ")[0] for row in section.splitlines() if row.startswith("| `")]
    assert set(re.findall(r"`([a-z-]+)`", " ".join(rows))) == used
