"""Compiled kernels travel with a job: what the driver has compiled is of use to executors with the same processor."""

from __future__ import annotations

import gc
import hashlib
import tempfile
import zipfile
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark import SparkFiles
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_PREFIX = "weft-kernels-"
_FIRST_TASKS = 4
_begun = 0  # tasks of this process, so far as they matter
_sent: WeakKeyDictionary[object, str | None] = WeakKeyDictionary()  # by Spark context: the name of what was sent


def send_kernels(session: SparkSession) -> str | None:
    """Send the driver's compiled kernels to executors on other machines, once; the name by which they find them.

    None where there is nothing to send: the executors are on this machine and read its cache, or nothing is compiled.
    """
    try:
        context = session.sparkContext
    except PySparkException:  # of Spark Connect: the client's processor says nothing about the server's
        return None
    if context.master.partition("[")[0] == "local":
        return None
    if context not in _sent:
        _sent[context] = None
        archive = _packed()
        if archive is not None:
            context.addFile(str(archive))
            _sent[context] = archive.name
    return _sent[context]


def _packed() -> Path | None:
    """A file with all kernels that are compiled here."""
    from weft.kernels.warming import compiled_files

    files = sorted(compiled_files())
    if not files:
        return None
    made_of = hashlib.sha256("".join(file.name for file in files).encode()).hexdigest()[:24]
    archive = Path(tempfile.mkdtemp(prefix="weft-")) / f"{_PREFIX}{made_of}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in files:
            packed.write(file, file.name)
    return archive


def settle_worker() -> None:
    """In a task: exempt what is loaded from garbage collection.

    Spark collects garbage after every task, which would look at all of weft's modules each time: 0.1 s. What is loaded
    later, by the first tasks of a worker, is exempted when the next ones begin.
    """
    global _begun
    if _begun < _FIRST_TASKS:
        _begun += 1
        gc.freeze()


def receive_kernels(name: str | None) -> None:
    """In a task: take what the driver sent, where a kernel is not there yet."""
    settle_worker()
    if name is None:
        return
    archive = Path(SparkFiles.get(name))
    folder = archive.with_suffix("")
    if not folder.is_dir():
        try:
            unfinished = Path(tempfile.mkdtemp(dir=archive.parent))
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(unfinished)
            unfinished.rename(folder)  # another worker may have been first
        except (OSError, zipfile.BadZipFile):
            if not folder.is_dir():
                return
    from weft.kernels.store import take_from

    take_from(folder)
