"""Lane state in files beside a checkpoint: each trigger writes the pages that changed in it, and names its base file.

Every attempt of a trigger writes a separate file, whose name has the owner of the checkpoint and the time; the latest
one counts, and none of a former owner. A retried trigger starts from the state after the trigger before, whatever was
written since.
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

import pyarrow as pa

from weft.errors import UsageError

CODEC = "zstd"
LONGEST_CHAIN = 32  # files that are read to restore a lane, at most
SMALL = 1 << 20  # bytes of changes that are not worth a complete file
_MAGIC = b"weft-state-1\n"
_FRAME = struct.Struct("<II")  # checksum of what follows it, length of the header
# Trigger, epoch of the owner, when the attempt was written, the task (the partition of the lane), a random part.
_NAME = re.compile(r"(\d{10})-(\d{8})-(\d{20})-(\d{5})-[0-9a-f]{8}")
_EMPTY = "empty"  # folder of triggers that brought no rows to a task


class DamagedState(Exception):
    """Raised when a file of the state was changed, or a lane lacks the state that it must have."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why


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
        raise DamagedState(path, "is missing") from None
    begin = len(_MAGIC) + _FRAME.size
    if len(data) < begin or not data.startswith(_MAGIC):
        raise DamagedState(path, "is not whole")
    checksum, length = _FRAME.unpack_from(data, len(_MAGIC))
    if zlib.crc32(memoryview(data)[begin:]) != checksum:
        raise DamagedState(path, "is not what was written: its checksum is another one")
    header = json.loads(data[begin : begin + length])
    body, total = memoryview(data)[begin + length :], sum(size for _, size in header["pages"])
    if header.get("codec") is not None and total:  # the first files had none
        body = memoryview(pa.decompress(body, total, header["codec"], asbytes=True))
    pages, at = {}, 0
    for name, size in header["pages"]:
        pages[name] = bytes(body[at : at + size])
        at += size
    return StateFile(path.name, header["base"], pages, header["removed"], header["chain"], header["changes"])


def _write(folder: Path, file: StateFile) -> None:
    header = {
        "base": file.base,
        "chain": file.chain,
        "changes": file.changes,
        "removed": list(file.removed),
        "pages": [(name, len(page)) for name, page in file.pages.items()],
        "codec": CODEC,
    }
    text = json.dumps(header).encode()
    body = text + pa.compress(b"".join(file.pages.values()), CODEC, asbytes=True)
    hidden = folder / f".{file.name}"
    try:
        with hidden.open("wb") as target:
            target.write(_MAGIC + _FRAME.pack(zlib.crc32(body), len(text)))
            target.write(body)
            target.flush()
            os.fsync(target.fileno())
        hidden.replace(folder / file.name)
    except OSError:  # a full disk is not filled further
        with suppress(OSError):
            hidden.unlink()
        raise


@dataclass
class LaneFiles:
    """The pages of one lane before a trigger, and the changes that the trigger makes; `commit` writes these.

    `new`: the lane may have no state, though the stream has begun. `task`: the partition that the lane is in. `epoch`:
    that of the owner of the checkpoint.
    """

    folder: Path
    trigger: int
    new: bool = False
    task: int = 0
    epoch: int = 0
    _base: StateFile | None = None
    _read: dict[str, StateFile] = field(default_factory=dict)  # files that were read, by name
    _changed: dict[str, bytes | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            name = _base_of(self.folder, self.trigger, self.task, new=self.new)
            self._base = None if name is None else read_state_file(self.folder / name)
        except DamagedState as problem:
            raise _told(problem) from None

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
        try:
            yield from _chain_from(self.folder, self._base, self._read)
        except DamagedState as problem:
            raise _told(problem) from None

    def _fresh_name(self) -> str:
        """A name after those of other attempts, whatever the clock says."""
        other = state_names(self.folder).get(self.trigger)
        when = max(time.time_ns(), 0 if other is None else int(other.split("-")[2]) + 1)
        return f"{self.trigger:010d}-{self.epoch:08d}-{when:020d}-{self.task:05d}-{uuid4().hex[:8]}"

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
            trigger, _, task = path.name.partition(".")
            if task == str(self.task) and int(trigger) < last:
                path.unlink(missing_ok=True)


def state_names(folder: Path) -> dict[int, str]:
    """The name of the latest file of each trigger."""
    found: dict[int, str] = {}
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder)):
            if _NAME.fullmatch(name):
                found[int(name[:10])] = name
    return found


def _base_of(folder: Path, trigger: int, task: int = 0, *, new: bool) -> str | None:
    """The file of the trigger before this one; triggers without rows have none. None: there is no state yet.

    A lane stays in the task that has written its files.
    """
    found = state_names(folder)
    if found:
        task = int(found[max(found)].split("-")[3])
    last = trigger - 1
    while last >= 0 and last not in found and _empty(folder.parent, last, task).exists():
        last -= 1
    if last in found or last < 0:
        return found.get(last)
    if new and not any(own < trigger for own in found):
        return None
    raise DamagedState(folder, f"has no state of trigger {last}")


def _chain_from(folder: Path, file: StateFile | None, known: dict[str, StateFile] | None = None) -> Iterator[StateFile]:
    """A file, the one that it changes, and so on to a complete one; `known` are those that need not be read again."""
    known = {} if known is None else known
    while file is not None:
        yield file
        base = file.base
        if base is not None and base not in known:
            known[base] = read_state_file(folder / base)
        file = None if base is None else known[base]


def check_lane(folder: Path, trigger: int) -> None:
    """Raise `DamagedState` unless a lane has its state after a trigger, or none at all before it: it began later."""
    name = _base_of(folder, trigger + 1, new=True)
    for _ in _chain_from(folder, None if name is None else read_state_file(folder / name)):
        pass


def note_rows(folder: Path, trigger: int, task: int, *, are_there: bool) -> None:
    """Note whether a trigger brought rows to a task: without rows its lanes have no state of the trigger."""
    place = _empty(folder, trigger, task)
    if not are_there:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    elif place.exists():  # an attempt with other lanes was interrupted
        place.unlink()


def _empty(folder: Path, trigger: int, task: int) -> Path:
    return folder / _EMPTY / f"{trigger}.{task}"


def lanes_in(folder: Path) -> list[int]:
    """The ids of the lanes that have state in a folder."""
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []


def _told(problem: DamagedState) -> UsageError:
    """The one sentence about state that cannot be read."""
    return UsageError(
        f"the checkpoint is damaged, or made by another version of weft ({problem.path} {problem.why}): use a copy of "
        "it, or another folder and another sink to begin anew"
    )
