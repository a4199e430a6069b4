"""Saved state as one file: what it is about as JSON, and its pages of bytes. To read it runs nothing that is in it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import error as ZlibError

from weft.connectors.places import opened
from weft.errors import InputError

ABOUT, PAGES = "weft.json", "pages/"
LARGEST = 1 << 34  # bytes that a file may say it has when it is opened up


def write_saved(path: str | Path, about: Mapping[str, Any], pages: Mapping[str, bytes]) -> None:
    """Write state to a file, which takes its name when it is complete."""
    with opened(path) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(ABOUT, json.dumps(about))
        for name, page in sorted(pages.items()):
            archive.writestr(PAGES + name, page)


def read_saved(path: str | Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What `write_saved` wrote; each page is checked against its checksum."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
                raise InputError(f"{path} says that it has more than {LARGEST >> 30} GiB of state: it is damaged")
            about = json.loads(archive.read(ABOUT))
            names = [name for name in archive.namelist() if name.startswith(PAGES)]
            return about, {name.removeprefix(PAGES): archive.read(name) for name in names}
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror or problem}") from None
    except (zipfile.BadZipFile, ZlibError, KeyError, ValueError, EOFError, NotImplementedError, RuntimeError):
        raise InputError(f"{path} is no saved program, or it is damaged: save it again with live.save(path)") from None
