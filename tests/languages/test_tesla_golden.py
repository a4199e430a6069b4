"""TESLA programs beside what they are lowered to, and wrong ones beside their messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.languages.golden import check_golden, golden_files

from weft.algebra.text import to_text
from weft.errors import ProgramError
from weft.languages import compile_text

LOWERING = golden_files("lowering/tesla")
ERRORS = golden_files("errors/tesla")
INTERNAL = ("lark", "Unexpected", "Token(", "LPAR", "RSQB", "SEMICOLON", "COMPARE", "SELECTION", "LBRACKET", "BECOMES")


def lowered(text: str) -> str:
    program, warnings = compile_text(text, language="tesla", name="rules.tesla", stem="rules")
    return "\n\n".join([to_text(program).rstrip(), *(warning.render() for warning in warnings)])


def message(text: str) -> str:
    with pytest.raises(ProgramError) as raised:
        compile_text(text, language="tesla", name="rules.tesla", stem="rules")
    return str(raised.value)


@pytest.mark.parametrize("path", LOWERING, ids=lambda path: path.stem)
def test_program_is_lowered_as_stored(path: Path) -> None:
    check_golden(path, lowered)


@pytest.mark.parametrize("path", ERRORS, ids=lambda path: path.stem)
def test_wrong_program_gives_the_stored_message(path: Path) -> None:
    check_golden(path, message)


@pytest.mark.parametrize("path", ERRORS, ids=lambda path: path.stem)
def test_message_has_a_place_and_no_word_of_the_parser_library(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "rules.tesla:" in text
    assert "^" in text
    assert not any(word in text for word in INTERNAL)


def test_there_are_enough_of_both() -> None:
    assert len(LOWERING) >= 15
    assert len(ERRORS) >= 60
