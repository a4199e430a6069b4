"""`weft publish`, `weft subscribe`, `weft deploy`: the commands that talk to a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.cli.console import say, say_json
from weft.client.connecting import connect
from weft.errors import InputError, UsageError

if TYPE_CHECKING:
    from weft.client.connection import Client

DEFAULT = "http://127.0.0.1:8787"
TOKEN = "WEFT_TOKEN"  # the variable that has a token
To = Annotated[str, typer.Option("--to", metavar="URL", help="The server.")]
From = Annotated[str, typer.Option("--from", metavar="URL", help="The server.")]
TokenFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help=f"A file with a token; else it is in {TOKEN}, if one is needed.")
]
Certificates = Annotated[
    str | None, typer.Option("--certificates", metavar="FILE", help="Check the server's certificate by these (PEM).")
]


@contextmanager
def connected(url: str, token_file: Path | None, certificates: str | None) -> Iterator[Client]:
    """A client of a server."""
    token = os.environ.get(TOKEN)
    if token_file is not None:
        try:
            token = token_file.read_text(encoding="utf-8").split()[0]
        except (OSError, UnicodeError, IndexError) as problem:
            raise InputError(f"cannot read a token in {token_file}: {problem}") from None
    with connect(url, token, verify=certificates or True) as client:
        yield client


def publish(
    places: Annotated[list[str], typer.Argument(metavar="FILE", help="Files of events, folders or URIs; `-`: stdin.")],
    to: To = DEFAULT,
    token_file: TokenFile = None,
    certificates: Certificates = None,
) -> None:
    """Publish events to a server.

        weft publish events.jsonl --to http://127.0.0.1:8787

        tail -f log.jsonl | weft publish - --to http://127.0.0.1:8787

    It ends when the server has answered for all of them. Exit code 1 says that none was accepted.
    """
    with connected(to, token_file, certificates) as client:
        for place in places:
            client.publish_place(place)
        done = client.flush()
    for reject in done.rejects[:10]:
        say(f"row {reject['row']}: {reject['reason']}", err=True)
    say(f"{done.accepted:,} accepted, {done.rejected:,} rejected, of these {done.late:,} late", err=True)
    if not done.accepted:
        raise InputError("no event was accepted")


def subscribe(
    query: Annotated[str, typer.Argument(metavar="NAME", help="A query, a type of events, or `*`.")] = "*",
    source: From = DEFAULT,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="A condition on fields: area = 'hall'.")
    ] = None,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Begin after this match; empty: with all.")] = None,
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="End after so many matches.")] = None,
    token_file: TokenFile = None,
    certificates: Certificates = None,
) -> None:
    """Show the matches of a query on a server, as they are found, one JSON object in a line.

        weft subscribe Fire --from http://127.0.0.1:8787 --where "area = 'hall'"

    A broken connection is re-established, and resumes after the last match received.
    """
    with connected(source, token_file, certificates) as client, client.subscribe(query, where, after) as matches:
        for number, match in enumerate(matches, 1):
            say_json(match.to_json())
            sys.stdout.flush()
            if number == count:
                return


def deploy(
    programs: options.Programs = None,
    to: To = DEFAULT,
    language: options.Language = None,
    replace: Annotated[
        str | None, typer.Option("--replace", metavar="NAME", help="Let it take the place of this query.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="NAME", help="Remove a query; repeatable.")
    ] = None,
    token_file: TokenFile = None,
    certificates: Certificates = None,
) -> None:
    """Deploy programs to a server: they see the events that come from then on.

    weft deploy fire.tesla --to http://127.0.0.1:8787

    weft deploy hotter.tesla --replace Fire

    weft deploy --remove Fire
    """
    if not programs and not remove:
        raise UsageError("give a program, or --remove NAME")
    if replace is not None and len(programs or ()) != 1:
        raise UsageError("--replace NAME takes one program")
    with connected(to, token_file, certificates) as client:
        for name in remove or ():
            client.remove(name)
            say(f"removed {name}", err=True)
        for program in map(Path, programs or ()):
            if not program.is_file():
                raise InputError(f"no such file: {program}")
            done = client.deploy(program, language) if replace is None else client.replace(replace, program, language)
            for warning in done.warnings:
                say(f"{program}:{warning['line']}:{warning['column']}: warning: {warning['message']}", err=True)
            say(f"deployed {', '.join(done.names)}", err=True)
