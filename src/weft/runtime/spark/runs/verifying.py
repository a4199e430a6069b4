"""Whether the files of a checkpoint are whole: Spark's by the checksums beside them, those of lanes by their own."""

from __future__ import annotations

import errno
import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from weft.runtime.spark.jobs.generations import generation_from_plain
from weft.runtime.spark.lanes.state_files import DamagedState, check_lane, lanes_in
from weft.runtime.spark.runs.checkpoint_files import LOOKED_AT, DamagedFile, check_logs, numbers_in

_CHECKSUMS = struct.Struct(">4sI")  # of Hadoop's: what they are, and the bytes that each is of
_MAGIC = b"crc\0"


def find_damage(checkpoint: str) -> str | None:
    """Return the name and the damage of the first file that differs from the original, or None.

    Tasks that nobody waits for any more may still write and remove files: what is wrong must be so at a second look.
    """
    return None if _first_damage(checkpoint) is None else _first_damage(checkpoint)


def _first_damage(checkpoint: str) -> str | None:
    folder = Path(checkpoint).absolute()
    try:
        check_logs(checkpoint)
        for path in sorted((folder / "spark").rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                problem = _checksum_problem(path)
                if problem:
                    return f"{path.relative_to(folder)} {problem}"
        return next(_state_problems(folder), None) or next(_lost(folder), None)
    except DamagedFile as problem:
        return str(problem)
    except OSError as problem:
        if problem.errno != errno.EIO:  # of this process, most likely: it may not read, or has too many files open
            return None
        return f"{problem.filename or 'a file'} cannot be read: {problem.strerror}"


def _checksum_problem(path: Path) -> str | None:
    """What is wrong with a file by the checksums beside it, which a file need not have."""
    beside = path.with_name(f".{path.name}.crc")
    if not beside.is_file():
        return None
    try:
        sums, data = beside.read_bytes(), path.read_bytes()
    except FileNotFoundError:  # Spark has removed it meanwhile
        return None
    if len(sums) < _CHECKSUMS.size or not sums.startswith(_MAGIC):
        return "has checksums that are not whole"
    _, each = _CHECKSUMS.unpack_from(sums)
    wanted = sums[_CHECKSUMS.size :]
    found = b"".join(zlib.crc32(data[at : at + each]).to_bytes(4, "big") for at in range(0, len(data), max(each, 1)))
    return None if found == wanted else "has a wrong checksum"


def _lost(folder: Path) -> Iterator[str]:
    """Files of which only the checksums are left; old entries of a log, which Spark was about to remove, do no harm."""
    for sums in sorted((folder / "spark").rglob(".*.crc")):
        path = sums.with_name(sums.name[1:-4])
        if path.name.startswith(".") or path.exists():
            continue
        needed = numbers_in(path.parent)[-LOOKED_AT:]
        if not (path.name.isdigit() and needed and int(path.name) < needed[0]):
            yield f"{path.relative_to(folder)} is missing"


def _state_problems(folder: Path) -> Iterator[str]:
    """Return the lanes without complete state files after the last committed trigger; others are not needed."""
    commits = numbers_in(folder / "spark" / "commits")
    lanes = folder / "weft" / "lanes"
    needed = _needed_lanes(folder)
    for lane in lanes_in(lanes) if commits else ():
        try:
            if needed is None or lane in needed:
                check_lane(lanes / str(lane), commits[-1])
        except DamagedState as problem:
            yield f"{problem.path.relative_to(folder)} {problem.why}"


def _needed_lanes(folder: Path) -> set[int] | None:
    """Return the lanes that may still emit something, or None if unknown: others have stopped."""
    try:
        kept = json.loads((folder / "weft" / "run.json").read_text())
        generations = [generation_from_plain(plain) for plain in kept["generations"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {lane.id for own in generations for lane in own.lanes_left}
