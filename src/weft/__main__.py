"""Entry point of the `weft` command, also as `python -m weft`. Installs the Ctrl-C handler before loading anything
else.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress

from weft.cli.interrupts import INTERRUPTED, end_soon_after_interrupt, say_interrupted


def main() -> None:
    """Run the command."""
    end_soon_after_interrupt()
    gc.disable()  # until the command is loaded: a tenth of the time would go into looking for garbage
    try:
        from weft.cli.main import app
    except KeyboardInterrupt:
        say_interrupted()
        sys.exit(INTERRUPTED)
    try:
        app(prog_name="weft")
    except SystemExit as ended:
        if ended.code:
            _leave(ended.code if isinstance(ended.code, int) else 1)
        raise


def _leave(code: int) -> None:
    """Run the exit handlers and end the process immediately.

    Threads of Spark and of Arrow may still run after a failure: one that returns while Python is shutting down aborts
    the process.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # whoever read it may be gone
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
