"""Mutated programs are compiled, explained and run, or refused: nothing but our errors comes out.

WEFT_FUZZ says how many are tried; `make fuzz` tries 20,000, and FUZZ=1000000 a million.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from tests.fuzz.programs import programs

import weft

COUNT = int(os.environ.get("WEFT_FUZZ", "150"))
SEED = int(os.environ.get("WEFT_SEED", "1"))
CORPUS = Path(__file__).parent / "corpus.jsonl"
EVENTS = [{"type": type_, "ts": time, "x": time % 3, "s": "a"} for time, type_ in enumerate("ABCABDAB")]
ROWS = [{"id": number, "v": number % 3} for number in range(8)]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def try_program(language: str, text: str) -> None:
    """Go the whole way with a program, unless it is refused."""
    try:
        program = weft.compile(text, language)
    except weft.ProgramError:
        return
    for stage in ("syntax", "optimized", "plan"):
        weft.explain(program, stage)
    if program.row_patterns:
        with suppress(weft.WeftError):
            weft.sql(f"{text}\n", t=ROWS)
        return
    weft.count(EVENTS, program, rejects=[])


@pytest.mark.parametrize("part", range(10))
def test_mutated_programs_run_or_are_refused(part: int) -> None:
    for language, text in programs(10 * SEED + part, COUNT // 10):
        try:
            try_program(language, text)
        except Exception as error:
            error.add_note(f"add this line to {CORPUS.name}: {json.dumps([language, text])}")
            raise


@pytest.mark.parametrize("line", CORPUS.read_text(encoding="utf-8").splitlines())
def test_what_was_found_stays_mended(line: str) -> None:
    try_program(*json.loads(line))
