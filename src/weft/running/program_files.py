"""Files of programs that may change while they run: those that are named, and those in folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft.languages.texts import PROGRAM_SUFFIXES


class ProgramFiles:
    """Files and folders of programs. A folder means all programs in it, by name; hidden files are incomplete."""

    def __init__(self, given: Sequence[str]) -> None:
        self._given = [Path(path) for path in given]
        self._seen = self._marks()

    def paths(self) -> list[str]:
        """The files of programs that are there now."""
        found: list[str] = []
        for path in self._given:
            found += map(str, _inside(path)) if path.is_dir() else [str(path)]
        return found

    def have_changed(self) -> bool:
        """Whether a file is another one, new or gone since this was asked last."""
        now = self._marks()
        before, self._seen = self._seen, now
        return now != before

    def _marks(self) -> list[tuple[str, int, int]]:
        marks = []
        for path in self.paths():
            try:
                status = Path(path).stat()
            except OSError:  # it is being replaced
                continue
            marks.append((path, status.st_mtime_ns, status.st_size))
        return marks


def _inside(folder: Path) -> list[Path]:
    found = [path for path in folder.iterdir() if path.suffix in PROGRAM_SUFFIXES and path.name[0] not in "._"]
    return sorted(path for path in found if path.is_file())
