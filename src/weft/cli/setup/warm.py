"""`weft warm`: kernels compiled, and Java's classes kept, ahead: no first match has to wait for them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from queue import Queue
from threading import Thread
from typing import Annotated

import typer

from weft.cache import cache_folder
from weft.cli.console import rewrite_line, say
from weft.errors import InputError


def warm(
    processes: Annotated[
        int | None, typer.Option("--processes", "-p", metavar="N", min=1, help="How many at a time; else all cores.")
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Also keep the classes that Spark's Java loads, for `weft run`.")
    ] = True,
) -> None:
    """Compile all kernels of all languages now, for this machine's processor, and keep what Spark's Java loads.

    Kernels are compiled by themselves when they are first needed, and kept: in the folder that WEFT_CACHE names, beside
    the package, or in the user's cache. Java's classes (about 180 MB) are kept by this command only; `weft run` starts
    with less work then. To have it done before, as in an image for a cluster:

        WEFT_CACHE=/opt/weft-cache weft warm

    The folder must belong to the user who runs weft, and only that user may write to it.
    """
    from weft.kernels import warming

    if cache_folder() is None:
        raise InputError("there is no folder for compiled kernels that only you can write to: set WEFT_CACHE to one")
    started = time.perf_counter()
    names = warming.all_kernels()
    count = processes or warming.cores()
    helpers = warming.start(names, count, subprocess.PIPE)
    for done, name in enumerate(_said(helpers), 1):
        rewrite_line(f"{done} of {len(names)}  {name.partition(':')[2]}")
    rewrite_line("")
    left = warming.all_kernels()
    if left:
        raise InputError(f"{len(left)} kernels could not be compiled, among them {left[0]}")
    seconds = time.perf_counter() - started
    what = f"compiled {len(names)} kernels in {seconds:.0f} s" if names else "all kernels were compiled before"
    say(f"{what}; they are in {cache_folder()}")
    if spark:
        say(warm_spark())


def warm_spark() -> str:
    """Store the classes that Spark loads, unless they are stored already; return what was done."""
    from weft.runtime.spark.archive import archive_file, keep_classes  # Spark takes a while to load

    file = archive_file()
    if file is None:
        return "there is no `java` on the PATH: nothing is kept of what Spark loads"
    if file.exists():
        return "what Spark's Java loads was kept before"
    problem = keep_classes(file)
    return f"what Spark's Java loads is in {file}" if problem is None else f"nothing is kept for Spark: {problem}"


def _said(helpers: list[subprocess.Popen[str]]) -> Iterator[str]:
    """The lines that processes say, as they come."""
    lines: Queue[str | None] = Queue()

    def listen(helper: subprocess.Popen[str]) -> None:
        for line in helper.stdout or ():
            lines.put(line.strip())
        helper.wait()
        lines.put(None)

    for helper in helpers:
        Thread(target=listen, args=[helper], daemon=True).start()
    for _ in helpers:
        yield from iter(lines.get, None)
