"""Programs beside what becomes of them on the way to the kernels: optimised, planned, and as tables.

A program of several languages has a line `=== language` before each of its texts.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from tests.languages.golden import check_golden, golden_files

from weft.algebra.query import Program
from weft.api import compile_with_findings
from weft.languages.defined import compile_together
from weft.stages import show

KINDS = ("ceql", "eql", "step", "epn", "tesla", "mixed")
PLANS = [(kind, path) for kind in KINDS for path in golden_files(f"plans/{kind}")]
SHOWN = ("optimized", "plan", "tables")


def compiled(text: str, language: str) -> Program:
    """One program of the texts."""
    parts = re.split(r"^=== (\w+)\n", text, flags=re.MULTILINE)[1:] if language == "mixed" else [language, text]
    texts = [
        partial(compile_with_findings, part, name, stem=f"q{number}")
        for number, (name, part) in enumerate(zip(parts[::2], parts[1::2], strict=True))
    ]
    whole = Program("", ())
    for program, findings in compile_together(texts):
        assert program is not None, findings
        whole = whole.extended(program)
    return whole


@pytest.mark.parametrize(("kind", "path"), PLANS, ids=[f"{kind}-{path.stem}" for kind, path in PLANS])
def test_plan_is_as_stored(kind: str, path: Path) -> None:
    def render(text: str) -> str:
        program = compiled(text, kind)
        return "\n\n".join(f"=== {stage}\n{show(program, stage, 'text').rstrip()}" for stage in SHOWN)

    check_golden(path, render)


@pytest.mark.parametrize("kind", KINDS)
def test_every_language_has_plans(kind: str) -> None:
    assert len(golden_files(f"plans/{kind}")) >= 2
