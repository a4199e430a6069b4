"""Where output goes: places that cannot be written, or are input, are found before the work; files appear whole."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, ENOTDIR
from pathlib import Path
from typing import Any, BinaryIO, cast

from weft.connectors.uris import as_uri
from weft.errors import InputError, UsageError
from weft.source import printable_json

STANDARD_OUTPUT = "-"


def check_places(written: Iterable[str], read: Iterable[str]) -> None:
    """Refuse to write what is read, to write one file twice, and what cannot be written."""
    sources: dict[object, str] = {found: path for path in read if (found := _place(path)) is not None}
    seen: set[object] = set()
    for path in written:
        if path == STANDARD_OUTPUT or as_uri(path) is not None:
            continue
        place: object = _place(path) or Path(path).resolve()
        if place in sources:
            raise UsageError(f"{path} would be overwritten, and is read as {sources[place]}: write to another file")
        if place in seen and _appears_whole(Path(path)):
            raise UsageError(f"two outputs would be written to {path}: give each its own file")
        seen.add(place)
        with _said(path), _aside(Path(path)):
            pass


def check_folders(written: Iterable[str], read: Iterable[str]) -> None:
    """Refuse folders that nothing can be put into, or that cannot be made, and those that are read; makes nothing."""
    sources = [Path(path).resolve() for path in read]
    for path in written:
        folder = Path(path).resolve()
        if any(folder == source or source in folder.parents for source in sources):
            raise UsageError(f"{path} lies in a folder that events are read from: write to another folder")
        with _said(path):
            there = next(place for place in (folder, *folder.parents) if place.exists())
            if not there.is_dir():
                raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR))
            if not os.access(there, os.W_OK | os.X_OK):
                raise PermissionError(EACCES, os.strerror(EACCES))


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing, which replaces an existing file only when it is complete.

    `-` is standard output. An interrupt says what became of the file.
    """
    if str(path) == STANDARD_OUTPUT:
        try:
            yield cast(BinaryIO, Terminal()) if sys.stdout.isatty() else sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as problem:
            raise InputError(f"cannot write to standard output: {problem.strerror or problem}") from None
        return
    target = Path(path)
    was_there = target.exists()
    try:
        with _said(path), _aside(target) as unfinished:
            with unfinished.open("wb") as sink:
                yield sink
            if unfinished != target:
                os.replace(unfinished, target.resolve())
    except KeyboardInterrupt as stopped:
        left = "was left as it was before" if was_there else "was not written"
        raise KeyboardInterrupt(*stopped.args, f"{path} {left}") from None


class Terminal(io.RawIOBase):
    """Standard output as a terminal: what events say is shown, and does not drive it; lines are there at once."""

    def __init__(self) -> None:
        super().__init__()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Show text that is given as bytes."""
        sys.stdout.buffer.write(printable_json(self._decode(bytes(data))).encode())
        sys.stdout.buffer.flush()
        return len(data)


@contextmanager
def _said(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror or problem}") from None


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """A new file beside the target, removed in the end if it is still there; pipes and devices are themselves."""
    if not _appears_whole(target):
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        yield target
        return
    final = target.resolve()  # a link stays a link
    if final.exists() and not os.access(final, os.W_OK):
        raise PermissionError(0, "it is protected against writing")
    unfinished = final.with_name(f".{final.name[:200]}.{os.getpid()}.unfinished")
    mode = final.stat().st_mode & 0o777 if final.exists() else None
    os.close(os.open(unfinished, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o666))
    try:
        if mode is not None:
            unfinished.chmod(mode)
        yield unfinished
    finally:
        with suppress(FileNotFoundError):
            unfinished.unlink()


def _appears_whole(target: Path) -> bool:
    return not target.exists() or target.is_file()


def _place(path: str) -> tuple[int, int] | None:
    """What identifies an existing regular file, whatever it is called."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if Path(path).is_file() else None
