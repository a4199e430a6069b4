"""Whether the state that Spark keeps in a checkpoint is whole: by checksums beside its files, and what they name."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

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
                problem = _checksum_problem(path) or _archive_problem(path)
                if problem:
                    return f"{path.relative_to(folder)} {problem}"
        return next(_missing(folder), None) or next(_lost(folder), None)
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


def _archive_problem(path: Path) -> str | None:
    """What is wrong with a snapshot of the state: it is an archive, and names files that are kept beside it."""
    if path.suffix != ".zip":
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
            if bad is not None:
                return f"has a part that is not whole ({bad})"
            texts = [archive.read(name).decode(errors="replace") for name in archive.namelist() if "metadata" in name]
    except (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError):
        return "is not a whole archive"
    for named, size in _kept_beside(texts):
        kept = path.parent / "SSTs" / named
        if not kept.is_file():
            return f"needs SSTs/{named}, which is missing"
        if size is not None and kept.stat().st_size != size:
            return f"needs SSTs/{named}, which is not whole"
    return None


def _kept_beside(texts: list[str]) -> Iterator[tuple[str, int | None]]:
    for text in texts:
        for line in text.splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            for file in found.get("sstFiles", ()) if isinstance(found, dict) else ():
                name = file.get("dfsSstFileName")
                if name:
                    yield str(name), file.get("sizeBytes")


def _lost(folder: Path) -> Iterator[str]:
    """Files of which only the checksums are left."""
    for sums in sorted((folder / "spark").rglob(".*.crc")):
        path = sums.with_name(sums.name[1:-4])
        if not path.name.startswith(".") and not path.exists():
            yield f"{path.relative_to(folder)} is missing"


def _missing(folder: Path) -> Iterator[str]:
    """Partitions of the state without a file of the trigger that was committed last."""
    commits = numbers_in(folder / "spark" / "commits")
    operators = folder / "spark" / "state"
    if not commits or not operators.is_dir():
        return
    wanted = commits[-1] + 1
    for store in (path for path in operators.glob("*/*") if path.is_dir() and path.name.isdigit()):
        files = [path for path in store.rglob("*") if path.suffix in (".zip", ".changelog", ".delta", ".snapshot")]
        newest = max((int(path.name.split(".")[0].split("_")[0]) for path in files), default=0)
        if newest < wanted:
            yield f"{store.relative_to(folder)} has no state of trigger {commits[-1]}"
