"""Whether the files of a checkpoint are what a run left there: looked at before Spark does, which says it less well."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

from weft.errors import UsageError
from weft.runtime.spark.files.log import FileLog, found_files

LOOKED_AT = 2  # entries of a log, the last ones: a restart reads no others


class DamagedFile(Exception):
    """What is wrong with a file."""


def damaged(checkpoint: str, why: str) -> UsageError:
    """The one sentence about a damaged checkpoint."""
    return UsageError(
        f"the checkpoint {checkpoint} is damaged ({why}): use a copy of it, or another folder and another sink "
        "to begin anew"
    )


def check_files(checkpoint: str) -> None:
    """Refuse a checkpoint with damaged files, by name."""
    try:
        check_logs(checkpoint)
    except DamagedFile as problem:
        raise damaged(checkpoint, str(problem)) from None
    except OSError as problem:
        if problem.errno == errno.EIO:
            raise damaged(checkpoint, problem.strerror or str(problem)) from None
        raise UsageError(
            f"the checkpoint {checkpoint} cannot be read ({problem.filename or 'a file'}: {problem.strerror}): it is "
            "not known to be damaged; see to it that this process may read it, and start the run again"
        ) from None


def check_logs(checkpoint: str) -> None:
    """Raise if a log of a checkpoint is damaged."""
    folder = Path(checkpoint)
    _check(folder / "spark", folder / "weft")


def remove_unfinished(checkpoint: str) -> None:
    """Before the first trigger has begun, remove what a process left that died when it was about to note it.

    Spark would refuse to begin: it wants its logs to be empty then.
    """
    spark = Path(checkpoint) / "spark"
    logs = [spark / "offsets", spark / "commits"]
    if not any(map(numbers_in, logs)):
        for left in (path for log in logs if log.is_dir() for path in log.iterdir()):
            left.unlink()


def last_offset(checkpoint: str) -> dict[str, Any] | None:
    """How far the last trigger of a checkpoint was to read its files, or None."""
    spark = Path(checkpoint).absolute() / "spark"
    numbers = numbers_in(spark / "offsets")
    entries = _lines(spark / "offsets" / str(numbers[-1]), spark) if numbers else []
    return next((entry for entry in entries if "files" in entry), None)


def _check(spark: Path, own: Path) -> None:
    offsets, commits = numbers_in(spark / "offsets"), numbers_in(spark / "commits")
    if not offsets and not commits:
        return
    metadata = spark / "metadata"
    if not metadata.exists():
        raise DamagedFile("spark/metadata is missing")
    _json(metadata.read_bytes(), metadata, spark)
    if commits and (not offsets or commits[-1] > offsets[-1]):
        raise DamagedFile(f"spark/offsets/{commits[-1]} is missing")
    for log, numbers in ((spark / "offsets", offsets), (spark / "commits", commits)):
        for number in numbers[-LOOKED_AT:]:
            _lines(log / str(number), spark)
    log = own / "files.jsonl"
    known = len(found_files(FileLog(str(log), (), {}), look=False))
    entries = _lines(spark / "offsets" / str(offsets[-1]), spark)
    read = next((entry["files"] for entry in entries if "files" in entry), 0)
    if known < read:
        raise DamagedFile(f"weft/files.jsonl has {known} files, and {read} were read")


def numbers_in(log: Path) -> list[int]:
    """The entries of a log of Spark's."""
    return sorted(int(path.name) for path in log.iterdir() if path.name.isdigit()) if log.is_dir() else []


def _lines(path: Path, spark: Path) -> list[dict[str, Any]]:
    """The objects in an entry of a log of Spark's: a version, then one in each line."""
    version, *lines = path.read_bytes().splitlines() or [b""]
    if not version.startswith(b"v") or not lines:
        raise DamagedFile(f"spark/{path.relative_to(spark)} is not whole")
    return [_json(line, path, spark) for line in lines if line != b"-"]


def _json(text: bytes, path: Path, spark: Path) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DamagedFile(f"spark/{path.relative_to(spark)} is not whole")
    return found
