"""`weft serve`: a live program behind HTTP and WebSockets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from weft.algebra.query import Program
from weft.api import merge_programs
from weft.cli import options
from weft.cli.console import say
from weft.cli.grouping import grouped
from weft.errors import UsageError
from weft.optimizer.pipeline import Choices
from weft.runtime.lanes.sharing import Sharing
from weft.runtime.options import Arrival, Options
from weft.serve.journal import Sync
from weft.serve.permissions import Tokens, read_tokens
from weft.serve.places import PlaceConnections
from weft.serve.server import Endpoint, listen, serve
from weft.serve.service import ServerSettings, Service

MiB = 1 << 20


@dataclass(frozen=True)
class Listening:
    """Where it is, and who may use it."""

    host: Annotated[str, typer.Option(help="The address to listen on; any but this machine's needs tokens.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 chooses one.")] = 8787
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A token in each line; `publish`, `subscribe`, `deploy` may follow."),
    ] = None
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="A certificate (PEM), for https.")] = None
    certificate_key: Annotated[
        Path | None, typer.Option("--certificate-key", "--tls-key", metavar="FILE", help="The certificate's key (PEM).")
    ] = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:PORT", help="A further host name that requests may use; repeatable."),
    ] = None
    origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="A site whose pages may use it; repeatable.")
    ] = None

    @property
    def endpoint(self) -> Endpoint:
        """As the server takes it."""
        if (self.certificate is None) != (self.certificate_key is None):
            raise UsageError("--certificate and --certificate-key go together")
        tokens = Tokens() if self.token_file is None else read_tokens(self.token_file)
        hosts, origins = tuple(self.allow_host or ()), tuple(self.origin or ())
        return Endpoint(self.host, self.port, tokens, self.certificate, self.certificate_key, hosts, origins)


@dataclass(frozen=True)
class Keeping:
    """What survives, and what may wait."""

    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep queries and partial matches here, so that a kill loses none."),
    ] = None
    sync: Annotated[Sync, typer.Option(help="When the journal is forced to the disk, in case the machine fails.")] = (
        "second"
    )
    log: Annotated[int, typer.Option(min=1, metavar="N", help="Matches after which subscribers can resume.")] = 100_000
    queue: Annotated[int, typer.Option(min=1, metavar="MIB", help="MiB of publications that may wait.")] = 64
    body: Annotated[int, typer.Option(min=1, metavar="MIB", help="MiB of the body of a request.")] = 64
    subscriber: Annotated[int, typer.Option(min=1, metavar="KIB", help="KiB that may wait for a subscriber.")] = 4096
    subscribers: Annotated[int, typer.Option(min=1, metavar="N", help="How many subscribers there may be.")] = 10_000
    snapshot: Annotated[int, typer.Option(min=1, metavar="MIB", help="MiB of journal between two snapshots.")] = 64


@dataclass(frozen=True)
class ServeWork:
    """How the work is done, and what it may take."""

    strategy: Annotated[
        Literal["key", "query"] | None,
        typer.Option(help="How lanes share the work: by key where queries have one (the default), or whole queries."),
    ] = None
    lanes: options.Lanes = None
    threads: options.Threads = None
    budget: options.Budgets = None
    max_jump: options.MaxJump = 43_200.0
    allow_sinks: Annotated[
        bool, typer.Option("--allow-sinks", help="Let programs write outside their folders, and call functions.")
    ] = False


@grouped
def serve_program(
    texts: options.ProgramTexts,
    names: options.EventNames,
    where: Listening,
    keeping: Keeping,
    work: ServeWork,
    optimising: options.Optimising,
) -> None:
    """Run a live program as a service: clients deploy queries, publish events and subscribe to matches.

        weft serve fire.tesla

        weft serve fire.tesla --state state --port 8787

        weft serve --host 0.0.0.0 --token-file tokens --certificate cert.pem --certificate-key key.pem

    Sources and sinks that the programs name are read and written, too. With --state the server resumes where it
    stopped, even after a crash; unchanged programs keep their state, changed ones start anew.

    `weft publish`, `weft subscribe`, `weft deploy` and `weft.connect` talk to it; /docs describes its addresses.
    """
    endpoint = where.endpoint
    programs = texts.each(texts.paths) if texts.paths or texts.queries else []
    program = merge_programs(programs) if programs else None
    sharing = Sharing(work.strategy, work.lanes, work.threads)
    chosen = optimising.choices if program is None else optimising.chosen_for(program)
    settings = _settings(names, keeping, work, sharing, chosen)
    opened = listen(endpoint)
    try:
        service = Service(settings, *programs)
    except BaseException:
        opened.close()
        raise
    _tell(service, program)
    connections = PlaceConnections(service, program, texts.paths, allow_all=work.allow_sinks)
    with connections:
        serve(
            service, endpoint, opened, lambda url: say(f"weft serves at {url} ({url}/docs); Ctrl-C ends it", err=True)
        )


def _settings(
    names: options.EventNames, keeping: Keeping, work: ServeWork, sharing: Sharing, chosen: Choices
) -> ServerSettings:
    return ServerSettings(
        Options(
            names.columns,
            Arrival(max_jump=work.max_jump),
            sharing,
            chosen,
            options.limits_of(work.budget, None),
        ),
        state=keeping.state,
        sync=keeping.sync,
        log=keeping.log,
        queue_bytes=keeping.queue * MiB,
        body_bytes=keeping.body * MiB,
        subscriber_bytes=keeping.subscriber << 10,
        subscribers=keeping.subscribers,
        snapshot_bytes=keeping.snapshot * MiB,
    )


def _tell(service: Service, program: Program | None) -> None:
    running = service.engine.program.running
    if service.settings.state is not None:
        say(
            f"the state has {running.events:,} events; {service.replayed:,} records of its journal were done again",
            err=True,
        )
    sharing = service.settings.options.sharing
    if (sharing.number or sharing.threads or running.lanes) != running.lanes:
        say(f"the state keeps its number of lanes, {running.lanes}: a new --state takes another one", err=True)
    if service.change is not None and program is not None and running.events:
        say(service.change, err=True)
