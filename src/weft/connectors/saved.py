"""Saved state as one file: what it is about as JSON, and its pages of bytes. To read it runs nothing that is in it."""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import error as ZlibError

from weft.connectors.places import opened
from weft.errors import InputError

ABOUT, PAGES, SUM = "weft.json", "pages/", "weft.sum"
LARGEST = 1 << 34  # bytes that a file may say it has when it is opened up


def write_saved(
    path: str | Path, about: Mapping[str, Any], pages: Mapping[str, bytes], *, compressed: bool = True
) -> None:
    """Write state to a file, which takes its name when it is complete."""
    how = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with opened(path) as target, zipfile.ZipFile(target, "w", how, compresslevel=1) as archive:
        parts = {ABOUT: json.dumps(about).encode(), **{PAGES + name: page for name, page in sorted(pages.items())}}
        for name, part in {**parts, SUM: checksum(parts)}.items():
            archive.writestr(name, part)


def read_saved(path: str | Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What `write_saved` wrote. Pages belong together, and to what is said of them: all are checked by one sum."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
                raise InputError(f"{path} says that it has more than {LARGEST >> 30} GiB of state: it is damaged")
            parts = {name: archive.read(name) for name in archive.namelist()}
            about = json.loads(parts[ABOUT])
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror or problem}") from None
    except (
        *(zipfile.BadZipFile, zipfile.LargeZipFile, ZlibError, EOFError, struct.error),
        *(LookupError, ValueError, NotImplementedError, RuntimeError, MemoryError, OverflowError),
    ):
        raise InputError(f"{path} is no saved program, or it is damaged: save it again with live.save(path)") from None
    given = parts.pop(SUM, None)
    if not isinstance(about, dict) or given != checksum(parts):
        raise InputError(f"{path} is damaged: what is in it has been changed since live.save(path) wrote it")
    return about, {name.removeprefix(PAGES): part for name, part in parts.items() if name.startswith(PAGES)}


def checksum(parts: Mapping[str, bytes]) -> bytes:
    """Return the checksum of all parts with their names; that of each part in the archive is renewed by an edit."""
    whole = hashlib.blake2b(digest_size=32)
    for name, part in sorted(parts.items()):
        whole.update(f"{len(name.encode())} {name} {len(part)} ".encode())
        whole.update(part)
    return whole.hexdigest().encode()
