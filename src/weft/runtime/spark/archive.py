"""The classes that Spark loads, kept in a file as Java has them in memory: a Java that takes them loads none.

Java itself looks whether it is as it was, and the jars are, and does without what is kept otherwise.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from weft.cache import cache_folder

KEEP = "WEFT_KEEP_CLASSES"  # names a file for the classes of the Java that a process starts
_NOTHING_SAID = ("-Xlog:disable", "-Xlog:all=error:stderr")  # of classes that cannot be kept, or that are not the same
_PROGRAM = "SELECT a, b FROM S WHERE A AS a ; B AS b WITHIN 1 SECOND PARTITION BY k"
_EVENTS = '{"type": "A", "ts": 0, "k": 1}\n{"type": "B", "ts": 1, "k": 1}\n'


def archive_file() -> Path | None:
    """Where classes are kept for this Java and this Spark; None if there is no folder that only we can write to."""
    folder, home = cache_folder(), os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else os.environ.get("PATH"))
    if folder is None or java is None:
        return None
    what = f"{Path(java).resolve()} {pyspark.__version__} {Path(pyspark.__file__).parent}"
    return folder.absolute() / f"spark-{hashlib.sha256(what.encode()).hexdigest()[:16]}.jsa"


def archive_options() -> list[str]:
    """Options for a Java that takes the classes that are kept, or (if the environment says so) keeps its own."""
    keep = os.environ.get(KEEP)
    if keep:
        return [f"-XX:ArchiveClassesAtExit={keep}", *_NOTHING_SAID]
    kept = archive_file()
    return [f"-XX:SharedArchiveFile={kept}", *_NOTHING_SAID] if kept is not None and kept.exists() else []


def keep_classes(file: Path) -> str | None:
    """Match two events by `weft run`, whose Java keeps its classes in a file at its end; else what went wrong."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "in").mkdir()
        (folder / "in" / "events.jsonl").write_text(_EVENTS, encoding="utf-8")
        command = [sys.executable, "-m", "weft", "run", "--query", _PROGRAM, "--source", f"S={folder / 'in'}"]
        command += ["--sink", str(folder / "out"), "--checkpoint", str(folder / "state"), "--until", "complete"]
        # Java writes the file when the process is gone: the wait is for whoever has its output.
        done = subprocess.run(
            command, env={**os.environ, KEEP: str(unfinished)}, capture_output=True, text=True, check=False
        )
    if done.returncode or not unfinished.exists():
        unfinished.unlink(missing_ok=True)
        return done.stderr.strip() or "this Java keeps none"
    unfinished.chmod(0o600)
    unfinished.replace(file)
    return None
