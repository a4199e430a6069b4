"""A project folder: its programs, test files and files of events. No path leads out of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from weft.errors import InputError, UsageError
from weft.languages import LANGUAGES
from weft.runtime.reading.halves import has_half

PROGRAM_ENDINGS = {language.ending: language.name for language in LANGUAGES}
EVENT_ENDINGS = (".jsonl", ".csv", ".parquet")
TEST_ENDING = ".test.toml"
LARGEST_TEXT = 2_000_000  # bytes of a program or a test file
LONGEST_NAME, LONGEST_PATH, DEEPEST = 255, 1000, 50  # bytes of a name, bytes of a path, and its folders
MOST_FILES = 5000
RUNS = "runs"  # what runs on Spark keep: a folder each, with program, matches and checkpoint
HIDDEN = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True)
class ProgramFile:
    """A program of the project."""

    path: str
    language: str


class Project:
    """The files in a folder, by their paths inside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        if not self.folder.is_dir():
            raise UsageError(f"no such folder: {folder}")

    def programs(self) -> list[ProgramFile]:
        """All programs, by path; not the copies that run."""
        found = (Path(path) for path in self._files(tuple(PROGRAM_ENDINGS)))
        own = (path for path in found if not path.match(f"{RUNS}/*/program/*"))
        return [ProgramFile(str(path), PROGRAM_ENDINGS[path.suffix]) for path in own]

    def event_files(self) -> list[str]:
        """All files that may hold events."""
        return self._files(EVENT_ENDINGS)

    def test_files(self) -> list[str]:
        """All files of rule tests."""
        return self._files((TEST_ENDING,))

    def _files(self, endings: tuple[str, ...]) -> list[str]:
        found: list[str] = []
        for folder, inside, names in os.walk(self.folder):
            inside[:] = sorted(name for name in inside if name not in HIDDEN and not name.startswith("."))
            wanted = [name for name in names if name.endswith(endings) and not name.startswith(".")]
            paths = (Path(folder) / name for name in wanted)
            found += (str(path.relative_to(self.folder)) for path in paths if self._is_inside(path))
            if len(found) >= MOST_FILES:
                break
        return sorted(found)[:MOST_FILES]

    def _is_inside(self, path: Path) -> bool:
        """Whether a file that was found is in the project, which a link may not be."""
        return not path.is_symlink() or path.resolve().is_relative_to(self.folder)

    def path(self, inside: str, *endings: str) -> Path:
        """A path of the project as a whole one; one that leads elsewhere, or ends otherwise, is refused."""
        if "\0" in inside or not inside:
            raise UsageError("give the path of a file in the project")
        if has_half(inside):
            raise UsageError("the path is not Unicode: it has half of a pair of surrogates")
        names = [len(name.encode()) for name in Path(inside).parts]
        if len(inside.encode()) > LONGEST_PATH or len(names) > DEEPEST or max(names, default=0) > LONGEST_NAME:
            raise UsageError(
                f"the path is too long: a name has at most {LONGEST_NAME} bytes, a path {LONGEST_PATH:,} bytes and "
                f"{DEEPEST} names"
            )
        whole = (self.folder / inside).resolve()
        if not whole.is_relative_to(self.folder) or whole == self.folder:
            raise UsageError(f"{inside!r} is not in the project")
        if endings and not whole.name.endswith(endings):
            raise UsageError(f"{inside!r} should end with {' or '.join(endings)}")
        return whole

    def read(self, inside: str) -> str:
        """The text of a program or a test file."""
        path = self.path(inside, *PROGRAM_ENDINGS, TEST_ENDING)
        try:
            if path.stat().st_size > LARGEST_TEXT:
                raise InputError(f"{inside} is too large to be edited")
            return path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(f"cannot read {inside}: {problem}") from None

    def rename(self, inside: str, to: str) -> None:
        """Give a program another path; one that exists is not overwritten."""
        old, new = self.path(inside, *PROGRAM_ENDINGS), self.path(to, *PROGRAM_ENDINGS)
        if new.exists():
            raise UsageError(f"{to} exists already")
        try:
            new.parent.mkdir(parents=True, exist_ok=True)
            old.rename(new)
        except OSError as problem:
            raise InputError(f"cannot rename {inside}: {problem.strerror}") from None

    def delete(self, inside: str) -> None:
        """Delete a program."""
        try:
            self.path(inside, *PROGRAM_ENDINGS).unlink()
        except OSError as problem:
            raise InputError(f"cannot delete {inside}: {problem.strerror}") from None

    def write(self, inside: str, text: str) -> None:
        """Put a text into a program or a test file, as a whole or not at all."""
        path = self.path(inside, *PROGRAM_ENDINGS, TEST_ENDING)
        if has_half(text):
            raise UsageError("the text is not Unicode: it has half of a pair of surrogates")
        if len(text.encode()) > LARGEST_TEXT:
            raise UsageError(f"{inside} would be too large")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f".{path.name}.unfinished")
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(path)
        except OSError as problem:
            raise InputError(f"cannot write {inside}: {problem.strerror}") from None
