"""Programs beside what they are lowered to, and wrong ones beside their messages, in every language."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.languages.golden import check_golden, golden_files

from weft.algebra.text.program import to_text
from weft.errors import ProgramError
from weft.languages import compile_text

STEMS = {"ceql": "query", "eql": "query", "step": "query", "tesla": "rules", "epn": "query", "sql": "query"}
LANGUAGES = tuple(STEMS)
LOWERING = [(language, path) for language in LANGUAGES for path in golden_files(f"lowering/{language}")]
ERRORS = [(language, path) for language in LANGUAGES for path in golden_files(f"errors/{language}")]
TERMINALS = (
    "lark",
    "Unexpected",
    "Token(",
    "LPAR",
    "RSQB",
    "LSQB",
    "RBRACKET",
    "SEMICOLON",
    "MORETHAN",
    "VBAR",
    "ITERATE",
    "COMPARE",
)


def ids(pairs: list[tuple[str, Path]]) -> list[str]:
    return [f"{language}-{path.stem}" for language, path in pairs]


def lowered(language: str) -> Callable[[str], str]:
    def render(text: str) -> str:
        program, warnings = compile_text(
            text, language=language, name=f"{STEMS[language]}.{language}", stem=STEMS[language]
        )
        return "\n\n".join([to_text(program).rstrip(), *(warning.render() for warning in warnings)])

    return render


def message(language: str) -> Callable[[str], str]:
    def render(text: str) -> str:
        with pytest.raises(ProgramError) as raised:
            compile_text(text, language=language, name=f"{STEMS[language]}.{language}", stem=STEMS[language])
        return str(raised.value)

    return render


@pytest.mark.parametrize(("language", "path"), LOWERING, ids=ids(LOWERING))
def test_program_is_lowered_as_stored(language: str, path: Path) -> None:
    check_golden(path, lowered(language))


@pytest.mark.parametrize(("language", "path"), ERRORS, ids=ids(ERRORS))
def test_wrong_program_gives_the_stored_message(language: str, path: Path) -> None:
    check_golden(path, message(language))


@pytest.mark.parametrize(("language", "path"), ERRORS, ids=ids(ERRORS))
def test_message_has_a_place_and_no_word_of_the_parser_library(language: str, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert f"{STEMS[language]}.{language}:" in text
    assert "^" in text
    assert not any(word in text for word in TERMINALS)


@pytest.mark.parametrize("language", LANGUAGES)
def test_there_are_enough_of_both(language: str) -> None:
    assert len(golden_files(f"lowering/{language}")) >= 10
    assert len(golden_files(f"errors/{language}")) >= 40
