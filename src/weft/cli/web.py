"""`weft web`: the workbench, in a browser on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.console import say
from weft.workbench.isolation import WorkLimits
from weft.workbench.server import LOOPBACK, Address, serve


def web(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The project: programs, tests, events.")] = Path(),
    host: Annotated[str, typer.Option(help="The address to listen on.")] = LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 chooses one.")] = 8765,
    seconds: Annotated[float, typer.Option(min=1, help="How long a program may be tried, or a test run.")] = 60,
    memory: Annotated[int, typer.Option(min=256, metavar="MIB", help="How much memory that may take, in MiB.")] = 2048,
) -> None:
    """Open a project in a browser: write programs, try them on events, test them, run them and watch them.

        weft web examples

    It listens on this machine only, and takes orders from those who have the token that is in the printed address.
    """

    def announce(address: Address) -> None:
        say(f"the workbench of {folder.resolve()} is at\n\n    {address.url}\n\nCtrl-C ends it.")

    serve(folder, host, port, announce=announce, limits=WorkLimits(seconds=seconds, memory=memory << 20))
