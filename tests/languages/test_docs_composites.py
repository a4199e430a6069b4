"""docs/eql.md and docs/step.md say what is true: examples compile, matches are those shown, codes exist."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from weft.algebra.meaning import matches
from weft.languages import compile_text

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("eql", "step")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EVENT = re.compile(r"(\w+)(?:\(([^)]*)\))?(?:@(\d+)|\[(\d+),(\d+)\])?")
SHARED_CODES = {"syntax", "too-large"}  # made where all languages meet


@dataclass(frozen=True)
class Block:
    language: str
    info: str
    text: str
    line: int


def page(language: str) -> str:
    return (ROOT / "docs" / f"{language}.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[Block]:
    text = page(language)
    return [Block(language, f[1], f[2], text.count("\n", 0, f.start()) + 1) for f in FENCE.finditer(text)]


def program_of(block: Block) -> str:
    """The example, with the page's own externals when it is a Step query alone."""
    if block.language == "eql" or "topology" in block.text:
        return block.text
    externals = next(b.text for b in blocks("step") if "Examples" in b.text)
    return externals.replace("Q(*): A\n", "") + block.text


EXAMPLES = [
    pytest.param(block, id=f"{language} line {block.line}")
    for language in LANGUAGES
    for block in blocks(language)
    if block.info == language
]
CASES = [
    pytest.param(query, line, id=f"{language} line {shown.line}: {line.split('->')[0].strip()}")
    for language in LANGUAGES
    for query, shown in zip(blocks(language), blocks(language)[1:], strict=False)
    if query.info == language and shown.info == "text"
    for line in shown.text.splitlines()
]


def stream(text: str) -> list[dict[str, object]]:
    """Events from their notation: `A(x=1) B@5 C(s=a)[2,7]`."""
    events: list[dict[str, object]] = []
    for position, found in enumerate(EVENT.finditer(text)):
        type_name, fields, time, start, end = found.groups()
        pairs = (pair.split("=") for pair in (fields or "").split(",") if pair.strip())
        attributes = {name.strip(): int(value) if value.isdigit() else value for name, value in pairs}
        times = {"start": int(start), "end": int(end)} if start else {"ts": int(time or position)}
        events.append({"type": type_name, **times, **attributes})
    return events


@pytest.mark.parametrize("block", EXAMPLES)
def test_example_compiles(block: Block) -> None:
    program, warnings = compile_text(program_of(block), language=block.language)
    assert program.queries
    assert {warning.code for warning in warnings} <= {"no-bound"}  # short examples are over short streams


@pytest.mark.parametrize(("block", "line"), CASES)
def test_example_has_the_matches_shown(block: Block, line: str) -> None:
    events, shown = line.split("->")
    program, _ = compile_text(program_of(block), language=block.language)
    found = ["{" + ",".join(map(str, match.positions)) + "}" for match in matches(program, stream(events))]
    assert sorted(found) == sorted(shown.split())


def test_there_are_examples_with_matches() -> None:
    assert len(EXAMPLES) >= 30
    assert len(CASES) >= 40


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_is_documented_and_every_documented_code_exists(language: str) -> None:
    folder = ROOT / "src" / "weft" / "languages"
    shared = [
        folder / name
        for name in (
            "bounds.py",
            "conditions.py",
            "counts.py",
            "output_fields.py",
            *(["durations.py"] if language == "eql" else []),
        )
    ]
    source = "\n".join(path.read_text(encoding="utf-8") for path in [*shared, *(folder / language).glob("*.py")])
    used = set(re.findall(r'(?:error|warning)\(\s*"([a-z-]+)"', source)) | SHARED_CODES
    section = page(language)[page(language).index("## Errors") :]
    rows = [row.split(" | ")[0] for row in section.splitlines() if row.startswith("| `")]
    assert set(re.findall(r"`([a-z-]+)`", " ".join(rows))) == used
