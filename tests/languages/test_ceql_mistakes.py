"""Whatever is done to a program, it compiles or is refused with a message that has a place; nothing else is raised."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.languages.golden import DASHES, golden_files

from weft.errors import ProgramError
from weft.languages import compile_text

PROGRAMS = [
    path.read_text(encoding="utf-8").partition(DASHES)[0]
    for folder in ("lowering/ceql", "errors/ceql")
    for path in golden_files(folder)
]
WORD = re.compile(r"\s+|\w+|'[^'\n]*'|.", re.DOTALL)
WORDS = sorted(
    {word for program in PROGRAMS for word in WORD.findall(program)} | {"'", '"', "`", "/*", "--", "§", "\t"}
)
INTERNAL = re.compile(r"lark|Token|Unexpected|[A-Z]+_[A-Z]+|LPAR|LSQB|RSQB|LBRACE|SEMICOLON|MORETHAN|QUALIFIED")


@st.composite
def damaged_programs(draw: st.DrawFn) -> str:
    """A program with a few words taken out, put in, doubled or exchanged."""
    words = WORD.findall(draw(st.sampled_from(PROGRAMS)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(words)))
        taken = draw(st.integers(0, 2))
        words[place : place + taken] = draw(st.lists(st.sampled_from(WORDS), max_size=2))
    return "".join(words)


def compile_or_refuse(text: str) -> None:
    try:
        compile_text(text, language="ceql")
    except ProgramError as error:
        lines = text.count("\n") + 1
        for diagnostic in error.diagnostics:
            assert 1 <= diagnostic.line <= lines
            assert diagnostic.column >= 1
            assert diagnostic.message
            assert not INTERNAL.search(re.sub(r"'.*'", "", diagnostic.message))


@settings(max_examples=50, deadline=None)
@given(damaged_programs())
def test_damaged_program_compiles_or_is_refused(text: str) -> None:
    compile_or_refuse(text)


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet="ABx[](){};:+,.<>=!'\"`*-/ \n", max_size=30))
def test_noise_after_a_beginning_is_refused_or_compiles(noise: str) -> None:
    compile_or_refuse("SELECT * WHERE " + noise)
