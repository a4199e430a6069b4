"""Whether the files of a checkpoint are whole: Spark's by the checksums beside them, those of lanes by their own."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from weft.runtime.spark.lanes.state_files import DamagedState, is_known, lanes_in, read_state_file, state_names
from weft.runtime.spark.runs.checkpoint_files import DamagedFile, check_logs, numbers_in

_CHECKSUMS = struct.Struct(">4sI")  # of Hadoop's: what they are, and the bytes that each is of
_MAGIC = b"crc\0"


def find_damage(checkpoint: str) -> str | None:
    """Return the name and the damage of the first file that differs from the original, or None."""
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
        return f"{problem.filename or 'a file'} cannot be read: {problem.strerror}"


def _checksum_problem(path: Path) -> str | None:
    """What is wrong with a file by the checksums beside it, which a file need not have."""
    beside = path.with_name(f".{path.name}.crc")
    if not beside.is_file():
        return None
    sums = beside.read_bytes()
    if len(sums) < _CHECKSUMS.size or not sums.startswith(_MAGIC):
        return "has checksums that are not whole"
    _, each = _CHECKSUMS.unpack_from(sums)
    data = path.read_bytes()
    wanted = sums[_CHECKSUMS.size :]
    found = b"".join(zlib.crc32(data[at : at + each]).to_bytes(4, "big") for at in range(0, len(data), max(each, 1)))
    return None if found == wanted else "has a wrong checksum"


def _lost(folder: Path) -> Iterator[str]:
    """Files of which only the checksums are left."""
    for sums in sorted((folder / "spark").rglob(".*.crc")):
        path = sums.with_name(sums.name[1:-4])
        if not path.name.startswith(".") and not path.exists():
            yield f"{path.relative_to(folder)} is missing"


def _state_problems(folder: Path) -> Iterator[str]:
    """State files that are not whole, and lanes without the state after the trigger that was committed last."""
    commits = numbers_in(folder / "spark" / "commits")
    lanes = folder / "weft" / "lanes"
    for lane in lanes_in(lanes):
        names = state_names(lanes / str(lane))
        for name in names.values():
            try:
                read_state_file(lanes / str(lane) / name)
            except DamagedState as problem:
                yield f"weft/lanes/{lane}/{name} {problem}"
        if commits and not is_known(lanes / str(lane), commits[-1]):
            yield f"weft/lanes/{lane} has no state of trigger {commits[-1]}"
