"""What a user gives as a program, a text or a path → the path that is meant, and the text of a file."""

from __future__ import annotations

from pathlib import Path

from weft.errors import InputError, UsageError
from weft.languages import LANGUAGES

PROGRAM_SUFFIXES = frozenset(language.ending for language in LANGUAGES)


def path_of_program(text_or_path: str | Path) -> Path | None:
    """The path that is meant, None for text."""
    if isinstance(text_or_path, Path):
        return text_or_path
    if not isinstance(text_or_path, str):
        raise UsageError(f"a program is a text or the path of a file, not a {type(text_or_path).__name__}")
    if "\n" in text_or_path:
        return None
    path = Path(text_or_path)
    return path if path.suffix in PROGRAM_SUFFIXES else None


def read_program(path: Path) -> str:
    """The text of a program's file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"no such program file: {path}") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read the program file {path}: {problem}") from None
