"""The addresses of a server: `/docs` describes them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect

from weft.api import explain
from weft.errors import InputError, ProgramError, UsageError, WeftError
from weft.serve.bodies import BodyLimits
from weft.serve.engine import Busy, Stopped
from weft.serve.figures import figures_text
from weft.serve.messages import Deployed, Moment, Problem, PublishAnswer, QueryText, RunningQuery, body_of
from weft.serve.permissions import Permission
from weft.serve.program import ARROW, NDJSON, Publication, finding_json
from weft.serve.service import Service
from weft.serve.streams import as_server_sent, send_to_socket
from weft.stages import Format, Stage

FORMS = {
    "application/x-ndjson": NDJSON,
    "application/jsonl": NDJSON,
    "application/json": NDJSON,
    "application/vnd.apache.arrow.stream": ARROW,
}
About = Annotated[str, Query(alias="query", description="A query's name, a type of events of the input, or `*`.")]
Where = Annotated[str | None, Query(description="A condition on fields: `area = 'hall' and temp > 50`.")]
After = Annotated[
    str | None, Query(description="Begin after the match with this id; empty: with everything in the log.")
]
Source = Annotated[str | None, Query(max_length=200, description="Who sends them; batches of a source are in order.")]
Sequence = Annotated[int | None, Query(ge=0, description="The number of this batch: sent again, it counts once.")]
Before = Annotated[
    int | None, Query(ge=0, description="The number of the batch before, if that has no answer yet: wait for it.")
]
TypeName = Annotated[str | None, Query(alias="type", description="The type of events that have none.")]


# Why requests are refused; twice, since FastAPI takes the form of a problem for that of the answer.
_REFERENCE = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
REFUSED: dict[int | str, dict[str, Any]] = {"4XX": {"description": "Why it is refused", "model": Problem}}
REFUSED_AS_JSON: dict[int | str, dict[str, Any]] = {"4XX": {"description": "Why it is refused", "content": _REFERENCE}}
TOKEN = HTTPBearer(auto_error=False, description="Needed if the server has a token file.")  # what `/docs` asks for


def may(permission: Permission) -> Any:
    """A dependency: the request's token must allow this."""

    def allowed(request: Request, _: Annotated[Any, Depends(TOKEN)]) -> None:
        if permission not in request.scope["state"]["granted"]:
            raise HTTPException(403, f"the token does not allow to {permission}")

    return Depends(allowed)


def application(service: Service) -> FastAPI:
    """The whole application."""
    about = "A live program: publish events, deploy queries, subscribe."
    app = FastAPI(
        title="weft serve",
        description=about,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        responses=REFUSED,
    )
    limits = service.settings
    app.add_middleware(BodyLimits, most_bytes=limits.body_bytes, seconds=limits.body_seconds, room=limits.queue_bytes)
    for add in (_add_events, _add_queries, _add_matches, _add_figures):
        add(app, service)
    for kind in (WeftError, Busy, StarletteHTTPException, RequestValidationError, ClientDisconnect):
        app.add_exception_handler(kind, _told)
    return app


def _add_events(app: FastAPI, service: Service) -> None:
    @app.post(
        "/v1/events",
        dependencies=[may("publish")],
        tags=["events"],
        response_model=PublishAnswer,
        response_model_exclude_unset=True,
        openapi_extra=body_of(*FORMS),
    )
    async def publish(
        request: Request,
        source: Source = None,
        sequence: Sequence = None,
        after: Before = None,
        type_: TypeName = None,
    ) -> dict[str, Any]:
        """Publish events, as JSON lines or as an Arrow stream; returns when they are matched and kept."""
        kind = request.headers.get("content-type", "application/x-ndjson").partition(";")[0].strip().lower()
        if kind not in FORMS:
            raise HTTPException(415, f"events are sent as {', '.join(FORMS)}, not as {kind}")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise HTTPException(415, "a body is sent as it is, without Content-Encoding")
        if source is None and (sequence is not None or after is not None):
            raise HTTPException(422, "batches are numbered for each source: give source=NAME with sequence and after")
        service.engine.check_room(int(request.headers.get("content-length") or 0))
        body, form = await request.body(), FORMS[kind]
        if form == NDJSON:
            body = _without_blanks(body)
        lines = body.count(b"\n") + (not body.endswith(b"\n")) if form == NDJSON and body else 0
        return await service.publish(body, form, type_, Publication(lines, source, sequence), after)

    @app.post("/v1/time", dependencies=[may("publish")], tags=["events"])
    async def advance(moment: Moment) -> dict[str, int]:
        """Say that no event that ends before a time will come: what waited for that is decided."""
        return await service.told(op="advance", time=moment.time)


def _without_blanks(body: bytes) -> bytes:
    """Lines that have something in them: rows are counted by lines."""
    if b"\n\n" not in body and b"\r" not in body and not body.startswith(b"\n"):
        return body
    return b"\n".join(line for line in body.split(b"\n") if line.strip())


def _add_queries(app: FastAPI, service: Service) -> None:
    program = service.engine.program

    deployed: dict[str, Any] = {"response_model": Deployed, "response_model_exclude_unset": True}

    @app.post("/v1/queries", dependencies=[may("deploy")], tags=["queries"], **deployed)
    async def deploy(given: QueryText) -> dict[str, Any]:
        """Deploy queries: they see the events that come from now on."""
        return await service.told(op="deploy", text=given.text, language=given.language, name=given.name)

    @app.get("/v1/queries", dependencies=[may("deploy")], tags=["queries"], response_model=list[RunningQuery])
    def queries() -> list[dict[str, Any]]:
        """The queries that run."""
        return [
            {"name": name, "matches": service.hub.counts[name], **program.texts.get(name, {})}
            for name in dict.fromkeys(program.running.program.names)
        ]

    @app.put("/v1/queries/{name}", dependencies=[may("deploy")], tags=["queries"], **deployed)
    async def replace(name: str, given: QueryText) -> dict[str, Any]:
        """Let another text take a query's place; what stays the same keeps its state."""
        return await service.told(op="replace", name=name, text=given.text, language=given.language)

    @app.delete("/v1/queries/{name}", dependencies=[may("deploy")], tags=["queries"])
    async def remove(name: str) -> dict[str, Any]:
        """Remove a query: it sees nothing more."""
        if not any(query.is_called(name) for query in program.running.program.queries):
            raise HTTPException(404, f"no query is called {name!r}")
        return await service.told(op="remove", name=name)

    @app.get(
        "/v1/plan",
        dependencies=[may("deploy")],
        tags=["queries"],
        response_class=PlainTextResponse,
        responses=REFUSED_AS_JSON,
    )
    def plan(stage: Stage = "plan", form: Annotated[Format, Query(alias="format")] = "text") -> str:
        """How the queries run."""
        running = program.running.program
        return explain(running, stage=stage, format=form) if running.queries else "nothing is deployed\n"


def _add_matches(app: FastAPI, service: Service) -> None:
    @app.get(
        "/v1/matches",
        dependencies=[may("subscribe")],
        tags=["matches"],
        response_class=StreamingResponse,
        responses=REFUSED_AS_JSON,
    )
    async def events_of_server(
        request: Request, query: About = "*", where: Where = None, after: After = None
    ) -> StreamingResponse:
        """Matches as server-sent events; the same address takes WebSockets."""
        subscriber, ready = await service.subscribe(query, where, request.headers.get("last-event-id", after))
        stream = as_server_sent(service, subscriber, ready)
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    @app.websocket("/v1/matches")
    async def socket_of(socket: WebSocket, query: About = "*", where: Where = None, after: After = None) -> None:
        if "subscribe" not in socket.scope["state"]["granted"]:
            await socket.close(1008, "the token does not allow to subscribe")
            return
        try:
            subscriber, ready = await service.subscribe(query, where, after)
        except WeftError as problem:
            await socket.accept()
            await socket.send_json(problem_json(problem))
            await socket.close(1008, "this cannot be subscribed to")
            return
        await socket.accept()
        await send_to_socket(socket, service, subscriber, ready)


def _add_figures(app: FastAPI, service: Service) -> None:
    engine = service.engine

    @app.get("/health", tags=["figures"])
    def health() -> JSONResponse:
        """Whether the server takes events."""
        if engine.problem is not None:
            return JSONResponse({"status": "failed", "problem": engine.problem}, 503)
        return JSONResponse({"status": "ok"})

    @app.get("/v1/stats", tags=["figures"])
    def stats() -> dict[str, Any]:
        """Return the counters of the server and the sizes of its queues."""
        return {**service.figures(), "counters": engine.program.running.counters}

    @app.get("/metrics", tags=["figures"], response_class=PlainTextResponse, responses=REFUSED_AS_JSON)
    def metrics() -> Response:
        """Figures as Prometheus reads them."""
        figures = {**service.figures(), "state_bytes": engine.program.running.state_bytes}
        return Response(figures_text(figures), media_type="text/plain; version=0.0.4")


def problem_json(problem: Exception, text: str | None = None) -> dict[str, Any]:
    """What is wrong, as JSON: of programs and conditions with all findings."""
    found = problem.diagnostics if isinstance(problem, ProgramError) else ()
    return {"problem": str(problem) if text is None else text, "findings": [finding_json(one) for one in found]}


def _told(request: Request, problem: Exception) -> Response:
    """A user's mistake as JSON: what is wrong, where, and what to do."""
    if isinstance(problem, ClientDisconnect):
        return Response(status_code=400)  # nobody reads it
    if isinstance(problem, StarletteHTTPException):
        text = f"there is no address {request.url.path}: /docs describes them" if _is_unknown(problem) else None
        return JSONResponse(problem_json(problem, text or str(problem.detail)), problem.status_code, problem.headers)
    if isinstance(problem, RequestValidationError):
        kind = request.headers.get("content-type", "unnamed content").partition(";")[0]
        if problem.body is not None and kind != "application/json":
            return JSONResponse(problem_json(problem, f"this takes application/json, not {kind}"), 415)
        return JSONResponse(problem_json(problem, "; ".join(map(_part_said, problem.errors()))), 422)
    if isinstance(problem, Busy):
        return JSONResponse(problem_json(problem), 429, {"Retry-After": str(problem.seconds)})
    if isinstance(problem, Stopped):
        return JSONResponse(problem_json(problem), 503, {"Retry-After": "5"})
    status = 422 if isinstance(problem, ProgramError | InputError) else 409 if isinstance(problem, UsageError) else 500
    return JSONResponse(problem_json(problem), status)


def _is_unknown(problem: StarletteHTTPException) -> bool:
    """Whether the address is unknown to the application."""
    return problem.status_code == 404 and problem.detail == "Not Found"


def _part_said(part: dict[str, Any]) -> str:
    """What is wrong with a part of a request."""
    if part["type"] == "json_invalid":
        return f"the body is not JSON: {part['ctx']['error']} at character {part['loc'][-1]}"
    if part["type"] == "value_error":
        return str(part["ctx"]["error"])
    return f"{'.'.join(map(str, part['loc']))}: {part['msg']}"
