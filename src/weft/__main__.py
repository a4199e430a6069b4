"""The `weft` command as a process of its own, also `python -m weft`. Ctrl-C is in force before anything is loaded."""

from __future__ import annotations

import sys

from weft.cli.interrupts import INTERRUPTED, end_soon_after_interrupt, say_interrupted


def main() -> None:
    """Run the command."""
    end_soon_after_interrupt()
    try:
        from weft.cli.main import app
    except KeyboardInterrupt:
        say_interrupted()
        sys.exit(INTERRUPTED)
    app(prog_name="weft")


if __name__ == "__main__":
    main()
