"""Lane state in files beside a checkpoint: each trigger writes the pages that changed in it, and names its base file.

Every attempt of a trigger writes a file of its own, under a name that says when; the latest one counts. A trigger that
is tried again starts from the state after the trigger before, whatever was written since.
"""

from __future__ import annotations

import json
import os
import re
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from weft.errors import UsageError

LONGEST_CHAIN = 32  # files that are read to restore a lane, at most
SMALL = 1 << 20  # bytes of changes that are not worth a complete file
_MAGIC = b"weft-state-1\n"
_FRAME = struct.Struct("<II")  # checksum of what follows it, length of the header
_NAME = re.compile(r"(\d{10})-(\d{20})-[0-9a-f]{8}")  # trigger, when the attempt was written, a random part
_EMPTY = "empty"  # folder of triggers that brought no rows


class DamagedState(Exception):
    """A file of the state that is not what was written."""


@dataclass(frozen=True)
class StateFile:
    """The pages that one trigger changed in a lane. `base`: the file with the state before; None: it is complete."""

    name: str
    base: str | None
    pages: Mapping[str, bytes]
    removed: Sequence[str] = ()
    chain: int = 0  # files between this one and a complete one
    changes: int = 0  # bytes in these

    @property
    def size(self) -> int:
        """The bytes of its pages."""
        return sum(map(len, self.pages.values()))


def read_state_file(path: Path) -> StateFile:
    """Read a file; raises `DamagedState`."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise DamagedState("is missing") from None
    begin = len(_MAGIC) + _FRAME.size
    if len(data) < begin or not data.startswith(_MAGIC):
        raise DamagedState("is not whole")
    checksum, length = _FRAME.unpack_from(data, len(_MAGIC))
    if zlib.crc32(memoryview(data)[begin:]) != checksum:
        raise DamagedState("is not what was written: its checksum is another one")
    header = json.loads(data[begin : begin + length])
    pages, at = {}, begin + length
    for name, size in header["pages"]:
        pages[name] = data[at : at + size]
        at += size
    return StateFile(path.name, header["base"], pages, header["removed"], header["chain"], header["changes"])


def _write(folder: Path, file: StateFile) -> None:
    header = {
        "base": file.base,
        "chain": file.chain,
        "changes": file.changes,
        "removed": list(file.removed),
        "pages": [(name, len(page)) for name, page in file.pages.items()],
    }
    text = json.dumps(header).encode()
    body = b"".join([text, *file.pages.values()])
    hidden = folder / f".{file.name}"
    with hidden.open("wb") as target:
        target.write(_MAGIC + _FRAME.pack(zlib.crc32(body), len(text)))
        target.write(body)
        target.flush()
        os.fsync(target.fileno())
    hidden.replace(folder / file.name)


@dataclass
class LaneFiles:
    """The pages of one lane before a trigger, and the changes that the trigger makes; `commit` writes these.

    `new`: the lane may have no state, though the stream has begun.
    """

    folder: Path
    trigger: int
    new: bool = False
    _base: StateFile | None = None
    _changed: dict[str, bytes | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = self._find_base()
        self._base = None if name is None else self._read(name)

    def get(self, name: str) -> bytes | None:
        """Return the page of that name before the trigger, None when there is none."""
        for file in self._chain():
            if name in file.pages:
                return file.pages[name]
            if name in file.removed:
                return None
        return None

    def items(self) -> Iterable[tuple[str, bytes]]:
        """Return all pages before the trigger."""
        pages: dict[str, bytes] = {}
        for file in reversed(list(self._chain())):
            for name in file.removed:
                pages.pop(name, None)
            pages.update(file.pages)
        return pages.items()

    def put(self, name: str, page: bytes) -> None:
        """Write a page."""
        self._changed[name] = page

    def remove(self, name: str) -> None:
        """Remove a page."""
        self._changed[name] = None

    def commit(self) -> None:
        """Write the changes, or all pages where too many files would have to be read."""
        pages = {name: page for name, page in self._changed.items() if page is not None}
        base, size = self._base, sum(map(len, pages.values()))
        self.folder.mkdir(parents=True, exist_ok=True)
        if base is None or self._is_long(base, size):
            before = dict(self.items())
            before.update(pages)
            kept = {name: page for name, page in before.items() if self._changed.get(name, page) is not None}
            _write(self.folder, StateFile(self._fresh_name(), None, kept))
            self._clean()
            return
        removed = [name for name, page in self._changed.items() if page is None]
        chain, changes = base.chain + 1, base.changes + size
        _write(self.folder, StateFile(self._fresh_name(), base.name, pages, removed, chain, changes))

    def _is_long(self, base: StateFile, size: int) -> bool:
        """Whether the chain has become long, or larger than the state itself may be."""
        if base.chain + 1 >= LONGEST_CHAIN:
            return True
        changes = base.changes + size
        return changes > SMALL and changes > list(self._chain())[-1].size

    def _chain(self) -> Iterator[StateFile]:
        """The files from the latest one to a complete one."""
        file = self._base
        while file is not None:
            yield file
            file = None if file.base is None else self._read(file.base)

    def _read(self, name: str) -> StateFile:
        try:
            return read_state_file(self.folder / name)
        except DamagedState as problem:
            raise damaged_state(self.folder / name, str(problem)) from None

    def _find_base(self) -> str | None:
        """The file of the trigger before this one; triggers without rows have none."""
        found = state_names(self.folder)
        last = last_with_rows(self.folder, self.trigger - 1)
        if last in found or last < 0:
            return found.get(last)
        if self.new and not any(own < self.trigger for own in found):
            return None
        raise damaged_state(self.folder, f"has no state of trigger {last}")

    def _fresh_name(self) -> str:
        """A name after those of other attempts, whatever the clock says."""
        other = state_names(self.folder).get(self.trigger)
        when = max(time.time_ns(), 0 if other is None else int(other.split("-")[1]) + 1)
        return f"{self.trigger:010d}-{when:020d}-{uuid4().hex[:8]}"

    def _clean(self) -> None:
        """After a complete file, remove those that neither this trigger nor one that is tried again needs."""
        needed = {file.name for file in self._chain()}
        oldest = min(needed, default="")
        for path in self.folder.iterdir():
            if path.name.lstrip(".") < oldest and path.name not in needed:
                path.unlink(missing_ok=True)
        empty = self.folder.parent / _EMPTY
        last = -1 if self._base is None else int(self._base.name[:10])
        for path in empty.iterdir() if empty.is_dir() else ():
            if path.name.isdigit() and int(path.name) < last:
                path.unlink(missing_ok=True)


def state_names(folder: Path) -> dict[int, str]:
    """The name of the latest file of each trigger."""
    found: dict[int, str] = {}
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder)):
            if _NAME.fullmatch(name):
                found[int(name[:10])] = name
    return found


def last_with_rows(folder: Path, trigger: int) -> int:
    """The last trigger, up to this one, that may have brought rows to a lane; -1 when there is none."""
    while trigger >= 0 and (folder.parent / _EMPTY / str(trigger)).exists():
        if trigger in state_names(folder):
            break
        trigger -= 1
    return trigger


def is_known(folder: Path, trigger: int) -> bool:
    """Whether a lane has the state after a trigger, or none at all before it: it began later."""
    found = state_names(folder)
    last = last_with_rows(folder, trigger)
    return last < 0 or last in found or not any(own < last for own in found)


def note_empty(folder: Path, trigger: int) -> None:
    """Note that a trigger brought no rows to a task: its lanes have no state of it."""
    place = folder / _EMPTY
    place.mkdir(parents=True, exist_ok=True)
    (place / str(trigger)).touch()


def lanes_in(folder: Path) -> list[int]:
    """The ids of the lanes that have state in a folder."""
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []


def damaged_state(path: Path, why: str) -> UsageError:
    """The one sentence about state that cannot be read."""
    return UsageError(
        f"the checkpoint is damaged, or made by another version of weft ({path} {why}): use a copy of it, or another "
        "folder and another sink to begin anew"
    )
