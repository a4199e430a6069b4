"""Everything that the workbench does as JSON over HTTP, typed; `/api/openapi.json` describes it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

from weft.algebra.why import Explanation
from weft.errors import InputError, ProgramError, UsageError, WeftError
from weft.workbench.checking import Checked, Planned
from weft.workbench.cluster import Overview
from weft.workbench.completion import Completion
from weft.workbench.isolation import CrowdedError, Result
from weft.workbench.jobs import TestReport
from weft.workbench.project import ProgramFile
from weft.workbench.run_info import RunDetail, RunInfo
from weft.workbench.service import ProgramSource, Workbench
from weft.workbench.trying import Sample, Tried


class ProgramText(BaseModel):
    """A program to be looked at: its text, and its language."""

    text: str
    language: str = "ceql"
    path: str = ""

    def source(self) -> ProgramSource:
        """As the service takes it."""
        return ProgramSource(self.text, self.language, self.path)


class Unfinished(ProgramText):
    """And the place in the text, a number of characters, that is asked about."""

    position: int = Field(ge=0)


class SampleEvents(BaseModel):
    """Events: pasted rows (JSON lines or CSV), or a file of the project; and the names of two columns.

    Of a file `take` rows are drawn (0: all), after those that are to `skip`.
    """

    rows: str = ""
    file: str = ""
    time: str = "ts"
    type: str = "type"
    skip: int = Field(default=0, ge=0)
    take: int = Field(default=0, ge=0, le=1_000_000)

    def sample(self) -> Sample:
        """As the service takes it."""
        return Sample(self.rows, self.file, self.time, self.type, self.skip, self.take)


class Trial(BaseModel):
    """A program, and events to try it on."""

    program: ProgramText
    events: SampleEvents


class WhyQuestion(Trial):
    """And the positions of events that are asked about."""

    positions: list[int]


class NewTest(Trial):
    """And the name of the case that is kept."""

    name: str = "a case"


class NewRun(Trial):
    """And how to run it: its name, and events per second."""

    name: str
    rate: float = Field(default=10.0, gt=0)


class NewSparkRun(BaseModel):
    """A program of the project, and folders of the project by the names of sources."""

    program: ProgramText
    name: str
    sources: dict[str, str]
    steps: bool = True  # count the partial matches that reach each step


class Stored(BaseModel):
    """A text to be stored."""

    text: str


# Threads that wait for other processes: those of the web server are for what is answered at once.
_WAITING = ThreadPoolExecutor(128, thread_name_prefix="weft-waiting")
LOOK = 0.2  # seconds between two looks whether a client is still there


async def _while_connected(request: Request, ask: Callable[[threading.Event], Result]) -> Result:
    """Return the answer to a request, which is cancelled when the client disconnects."""
    gone = threading.Event()
    answer = asyncio.get_running_loop().run_in_executor(_WAITING, ask, gone)
    while not answer.done():
        await asyncio.wait({answer}, timeout=LOOK)
        if not answer.done() and await request.is_disconnected():
            gone.set()
    return answer.result()


InProject = Annotated[str, Query(description="The path of a file in the project.")]


def api_router(bench: Workbench) -> APIRouter:
    """All addresses below `/api`."""
    router = APIRouter(prefix="/api")
    for add in (_add_programs, _add_trying, _add_tests, _add_runs, _add_changes_of_runs, _add_cluster):
        add(router, bench)
    return router


def _add_programs(router: APIRouter, bench: Workbench) -> None:
    @router.get("/programs", tags=["programs"])
    def programs() -> list[ProgramFile]:
        """The programs of the project."""
        return bench.programs()

    @router.get("/program", tags=["programs"])
    def program(path: InProject) -> ProgramSource:
        """A program as it is stored."""
        return bench.program(path)

    @router.post("/program/rename", tags=["programs"])
    def rename(path: InProject, to: InProject) -> ProgramSource:
        """Give a program another path."""
        return bench.rename(path, to)

    @router.delete("/program", tags=["programs"])
    def delete(path: InProject) -> str:
        """Delete a program."""
        return bench.delete(path)

    @router.put("/program", tags=["programs"])
    def save(path: InProject, stored: Stored) -> ProgramSource:
        """Store a program."""
        return bench.save(path, stored.text)

    @router.post("/check", tags=["programs"])
    async def check(given: ProgramText, request: Request) -> Checked:
        """Mistakes and doubts in a program, and its colours."""
        return await _while_connected(request, partial(bench.check, given.source()))

    @router.post("/complete", tags=["programs"])
    async def complete(given: Unfinished, request: Request) -> Completion:
        """Words, types, attributes and variables that may be meant at a position of a text."""
        return await _while_connected(request, partial(bench.complete, given.source(), given.position))

    @router.post("/plan", tags=["programs"])
    async def plan(given: ProgramText, request: Request) -> Planned:
        """The plan of a program as SVG and text, and the rewrites that led to it."""
        return await _while_connected(request, partial(bench.plan, given.source()))


def _add_trying(router: APIRouter, bench: Workbench) -> None:
    @router.get("/events", tags=["try"])
    def events() -> list[str]:
        """The files of events in the project."""
        return bench.event_files()

    @router.get("/events/count", tags=["try"])
    async def event_count(file: InProject, request: Request) -> int:
        """How many rows a file of events has."""
        return await _while_connected(request, partial(bench.event_count, file))

    @router.post("/try", tags=["try"])
    async def try_program(given: Trial, request: Request) -> Tried:
        """What a program finds in events."""
        ask = partial(bench.try_program, given.program.source(), given.events.sample())
        return await _while_connected(request, ask)

    @router.post("/why", tags=["try"])
    async def why(given: WhyQuestion, request: Request) -> list[Explanation]:
        """Why events are a match, or what would have to be otherwise."""
        ask = partial(bench.why, given.program.source(), given.events.sample(), given.positions)
        return list(await _while_connected(request, ask))


def _add_tests(router: APIRouter, bench: Workbench) -> None:
    @router.post("/tests", tags=["tests"])
    async def keep_as_test(given: NewTest, request: Request) -> dict[str, str]:
        """Keep what a program finds in events as a test."""
        ask = partial(bench.keep_as_test, given.program.source(), given.events.sample(), given.name)
        return {"file": await _while_connected(request, ask)}

    @router.get("/tests", tags=["tests"])
    async def tests(request: Request, file: Annotated[list[str] | None, Query()] = None) -> TestReport:
        """Run the project's tests, or those of some files."""
        return await _while_connected(request, partial(bench.tests, file or ()))


def _add_runs(router: APIRouter, bench: Workbench) -> None:
    @router.get("/runs", tags=["runs"])
    def runs() -> list[RunInfo]:
        """All programs that run, or ran."""
        return bench.runs()

    @router.get("/runs/{name}", tags=["runs"])
    def one_run(name: str) -> RunDetail:
        """One of them, with its last triggers and its log."""
        return bench.run(name)

    @router.get("/runs/{name}/funnels", tags=["runs"])
    def funnels(name: str) -> dict[str, list[tuple[str, int]]]:
        """By query: its steps, and how many partial matches reached each; if the run does not count, in new events."""
        return bench.funnels(name)

    @router.post("/runs", tags=["runs"])
    async def submit(given: NewRun, request: Request) -> RunInfo:
        """Run a program here, over events that are replayed at a rate."""
        ask = partial(bench.submit, given.program.source(), given.events.sample(), given.name, given.rate)
        return await _while_connected(request, ask)

    @router.post("/runs/spark", tags=["runs"])
    def submit_to_spark(given: NewSparkRun) -> RunInfo:
        """Start `weft run` in the background."""
        return bench.submit_to_spark(given.program.source(), given.sources, given.name, given.steps)


def _add_changes_of_runs(router: APIRouter, bench: Workbench) -> None:
    @router.post("/runs/{name}/events", tags=["runs"])
    def push(name: str, given: Stored) -> dict[str, int]:
        """Give events (JSON lines or CSV) to a program that runs here."""
        return {"matches": bench.push(name, given.text)}

    @router.put("/runs/{name}", tags=["runs"])
    def change(name: str, given: ProgramText) -> RunInfo:
        """Let another program run in its place, on the events that come from now on; on Spark, if it was started here
        or with `--watch`, after the trigger in progress, with the state of queries that are the same."""
        return bench.change(name, given.source())

    @router.post("/runs/{name}/restart", tags=["runs"])
    def restart(name: str) -> RunInfo:
        """Start a run once more."""
        return bench.restart(name)

    @router.delete("/runs/{name}", tags=["runs"])
    def stop(name: str) -> RunInfo:
        """End a run."""
        return bench.stop(name)


def _add_cluster(router: APIRouter, bench: Workbench) -> None:
    @router.get("/cluster", tags=["cluster"])
    def cluster() -> Overview:
        """What Spark says of the machines that runs use."""
        return bench.cluster()


def application(bench: Workbench) -> FastAPI:
    """The service alone, without pages."""
    # Pages that describe the addresses would be loaded from elsewhere: the description itself is enough.
    app = FastAPI(title="weft workbench", openapi_url="/api/openapi.json", docs_url=None, redoc_url=None)
    app.include_router(api_router(bench))

    @app.get("/health", tags=["health"])
    def health() -> dict[str, str]:
        """Whether the workbench answers."""
        return {"status": "ok"}

    @app.get("/metrics", tags=["health"], response_class=PlainTextResponse)
    def metrics() -> str:
        """Metrics of the programs that run here, as Prometheus reads them."""
        return bench.metrics()

    app.add_exception_handler(WeftError, _told)
    app.add_exception_handler(UnicodeError, _not_unicode)
    app.add_exception_handler(RequestValidationError, _not_asked_well)
    return app


def _told(request: Request, problem: Exception) -> JSONResponse:
    """A user's mistake as JSON: what is wrong, where, and what to do."""
    findings = [asdict_of(one) for one in problem.diagnostics] if isinstance(problem, ProgramError) else []
    status = 400 if isinstance(problem, UsageError | InputError | ProgramError) else 500
    if isinstance(problem, CrowdedError):
        status = 503
    return JSONResponse({"problem": str(problem), "findings": findings}, status)


def _not_unicode(request: Request, problem: Exception) -> JSONResponse:
    """Texts that cannot be stored or sent: half of a pair of surrogates."""
    return JSONResponse({"problem": f"not Unicode: {problem}".encode("ascii", "replace").decode(), "findings": []}, 400)


def _not_asked_well(request: Request, problem: Exception) -> JSONResponse:
    """What is wrong in a request, without the request itself, which may hold anything."""
    assert isinstance(problem, RequestValidationError)
    told = [{"type": one["type"], "loc": one["loc"], "msg": one["msg"]} for one in problem.errors()]
    return JSONResponse({"detail": jsonable_encoder(told)}, 422)


def asdict_of(finding: Any) -> dict[str, Any]:
    """A finding as plain data."""
    told: dict[str, Any] = finding.to_json() if hasattr(finding, "to_json") else asdict(finding)
    return told
