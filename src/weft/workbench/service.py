"""All that the workbench does, without a browser: a project's programs, what they find, its tests, and its runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from weft.algebra.query import Program
from weft.drawing.timeline import WIDTH
from weft.errors import InputError, UsageError
from weft.reasons import Reasons
from weft.rule_tests.cases import read_notation
from weft.rule_tests.lines import Notation
from weft.running import registry
from weft.running.changing import change, last_change
from weft.running.metrics import metrics_text
from weft.workbench import checking, jobs, trying
from weft.workbench.checking import Checked, Planned
from weft.workbench.cluster import Overview, overview
from weft.workbench.completion import Completion, complete
from weft.workbench.completion.seen import types_in
from weft.workbench.event_files import row_count
from weft.workbench.following import busy_share, checkpoint_of, newest_matches, sink_told
from weft.workbench.in_process import InProcess, InProcessRuns
from weft.workbench.isolation import Result, Workers, shared_workers
from weft.workbench.jobs import TestReport
from weft.workbench.project import EVENT_ENDINGS, LARGEST_TEXT, PROGRAM_ENDINGS, RUNS, TEST_ENDING, ProgramFile, Project
from weft.workbench.run_info import RunDetail, RunInfo, last_hour, summary_of
from weft.workbench.spark_funnels import counted_funnels, newest_funnels
from weft.workbench.trying import Sample, Tried

LOG_LINES = 200
SMALL_TEXT = 20_000  # characters of a program that is looked at in this process


@dataclass(frozen=True)
class ProgramSource:
    """A program: the text as it is written, its language, and its path, if it has one."""

    text: str
    language: str
    path: str = ""

    @property
    def job(self) -> jobs.Text:
        """As other processes take it."""
        if len(self.text) > LARGEST_TEXT:
            raise UsageError(f"a program has at most {LARGEST_TEXT:,} characters here")
        return self.text, _known(self.language), self.stem

    @property
    def stem(self) -> str:
        """What a nameless query of it is called."""
        return Path(self.path).stem if self.path else "q"


class Workbench:
    """A project, and the programs that run from it."""

    def __init__(self, folder: Path, workers: Workers | None = None) -> None:
        self.project = Project(folder)
        self._here = InProcessRuns()
        self._workers = shared_workers() if workers is None else workers

    # ------------------------------------------------------------ programs

    def programs(self) -> list[ProgramFile]:
        """The programs of the project."""
        return self.project.programs()

    def program(self, path: str) -> ProgramSource:
        """A program as it is stored."""
        ending = self.project.path(path, *PROGRAM_ENDINGS).suffix
        return ProgramSource(self.project.read(path), PROGRAM_ENDINGS[ending], path)

    def save(self, path: str, text: str) -> ProgramSource:
        """Store a program."""
        self.project.path(path, *PROGRAM_ENDINGS)
        self.project.write(path, text)
        return self.program(path)

    def rename(self, path: str, to: str) -> ProgramSource:
        """Give a program another path."""
        self.project.rename(path, to)
        return self.program(to)

    def delete(self, path: str) -> str:
        """Delete a program; returns its path."""
        self.project.delete(path)
        return path

    def check(self, source: ProgramSource, cancelled: Event | None = None) -> Checked:
        """What is wrong or doubtful in a program, and how its text is coloured."""
        text, language, stem = source.job
        if len(text) <= SMALL_TEXT:  # soon done, at every stroke of a key
            return checking.check(text, language, stem)
        return self._isolated(cancelled, checking.check, text, language, stem)

    def plan(self, source: ProgramSource, cancelled: Event | None = None) -> Planned:
        """How a program would run."""
        return self._isolated(cancelled, checking.planned, *source.job)

    def complete(self, source: ProgramSource, position: int, cancelled: Event | None = None) -> Completion:
        """What may be meant at a position: words of the language, names of the text and of the events beside it."""
        beside = Path(source.path).parent if source.path else Path()
        files = [self.project.path(file) for file in self.event_files() if Path(file).parent == beside]
        text, language, _ = source.job
        if len(text) <= SMALL_TEXT:
            return complete(text, language, position, types_in(files))
        return self._isolated(cancelled, complete, text, language, position, types_in(files))

    # ------------------------------------------------------------ trying

    def event_files(self) -> list[str]:
        """The files of events in the project."""
        return self.project.event_files()

    def events_for(self, path: str) -> str:
        """The file of events that belongs to a program: beside it, of its name or with its types; else empty."""
        text = self.project.read(path)
        beside = [file for file in self.event_files() if Path(file).parent == Path(path).parent]

        def fits(file: str) -> tuple[bool, int]:
            types = types_in([self.project.path(file)])
            return Path(file).stem == Path(path).stem, sum(_names(text, type_) for type_ in types)

        return max(beside, key=fits, default="")

    def event_count(self, file: str, cancelled: Event | None = None) -> int:
        """How many rows a file of events has."""
        path = self._file(Sample(file=file))
        if path is None:
            raise UsageError("choose a file of events")
        return self._isolated(cancelled, row_count, path)

    def try_program(
        self, source: ProgramSource, sample: Sample, cancelled: Event | None = None, width: int = WIDTH
    ) -> Tried:
        """What a program finds in a sample, with timelines of a width in pixels; `cancelled` ends it."""
        return self._isolated(cancelled, jobs.tried, source.job, sample, self._file(sample), width)

    def why(
        self, source: ProgramSource, sample: Sample, positions: Sequence[int], cancelled: Event | None = None
    ) -> Reasons:
        """Why events of a sample are a match or not."""
        return self._isolated(cancelled, jobs.explained, source.job, sample, self._file(sample), positions)

    def _isolated(self, cancelled: Event | None, work: Callable[..., Result], *arguments: object) -> Result:
        """What a function gives that runs in another process, within limits."""
        return self._workers.submit(cancelled or Event(), work, *arguments).result()

    def _file(self, sample: Sample) -> Path | None:
        if not sample.file:
            return None
        path = self.project.path(sample.file, *EVENT_ENDINGS)
        if not path.is_file():
            raise InputError(f"no such file of events: {sample.file}")
        return path

    # ------------------------------------------------------------ tests

    def keep_as_test(self, source: ProgramSource, sample: Sample, name: str, cancelled: Event | None = None) -> str:
        """Add what a program finds in a sample to the tests beside it; the path of the test file."""
        if not source.path:
            raise UsageError("save the program first: a test names its file")
        file = self._file(sample)
        beside = self.project.path(source.path, *PROGRAM_ENDINGS)
        inside = str((beside.parent / f"{beside.stem}{TEST_ENDING}").relative_to(self.project.folder))
        tests = self.project.path(inside)
        notation = read_notation(tests) if tests.is_file() else Notation(sample.time, sample.type)
        before = self.project.read(inside) if tests.is_file() else trying.test_head(beside.name, notation)
        case = self._isolated(cancelled, jobs.case_text, name or "a case", source.job, sample, file, notation)
        self.project.write(inside, before.rstrip("\n") + "\n" + case)
        return inside

    def tests(self, files: Sequence[str] = (), cancelled: Event | None = None) -> TestReport:
        """Run the project's tests, or some of its files."""
        chosen = [(inside, self.project.path(inside, TEST_ENDING)) for inside in files or self.project.test_files()]
        return self._isolated(cancelled, jobs.tested, chosen, self.project.folder)

    # ------------------------------------------------------------ runs

    def runs(self) -> list[RunInfo]:
        """All programs that run: here, and by `weft run --name`."""
        return [*map(_here, self._here.all()), *map(_on_spark, registry.entries())]

    def run(self, name: str) -> RunDetail:
        """One of them."""
        here = self._here.get(name)
        if here is not None:
            return _detail_here(here)
        entry = registry.entry(name)
        told = entry.history()
        return RunDetail(
            _on_spark(entry),
            counted_funnels(entry),
            last_hour(told),
            _last_lines(entry.log),
            newest_matches(entry),
            checkpoint_of(entry),
            busy_share(told, entry.about.get("started"), None if entry.is_running else entry.status.get("ended")),
            sink_told(entry),
        )

    def funnels(self, name: str) -> dict[str, list[tuple[str, int]]]:
        """By query how many partial matches reached each step; of a run that does not count, in its newest events."""
        here = self._here.get(name)
        if here is not None:
            return here.funnels
        entry = registry.entry(name)
        return counted_funnels(entry) or newest_funnels(entry)

    def submit(
        self, source: ProgramSource, sample: Sample, name: str, rate: float = 10.0, cancelled: Event | None = None
    ) -> RunInfo:
        """Run a program here, over the events of a sample, replayed at `rate` events per second.

        Without a sample it waits for events that are pushed to it.
        """
        program = self._live_program(source)
        shown: list[trying.Row] = []
        if sample.file or sample.rows:
            shown = self._isolated(cancelled, jobs.replayed, source.job, sample, self._file(sample))
        return _here(self._here.start(name, program, shown, rate, (sample.time, sample.type)))

    def submit_to_spark(self, source: ProgramSource, sources: dict[str, str], name: str, steps: bool = True) -> RunInfo:
        """Start `weft run` in the background, over folders of the project; matches go to `runs/NAME` of the project.

        `steps`: have it count the partial matches that reach each step, for funnels.
        """
        if not source.path:
            raise UsageError("save the program first: a run reads its file")
        given = [f"{key}={self.project.path(inside)}" for key, inside in sources.items()]
        if not given:
            raise UsageError("a run needs a source: a name, and a folder of the project")
        base = self.project.path(f"{RUNS}/{registry.check_name(name)}")
        self._live_program(source)
        arguments = ["run", str(self._copied(source, name)), "--watch", "--name", name]
        arguments += ["--steps"] if steps else []
        arguments += ["--sink", str(base / "matches"), "--checkpoint", str(base / "checkpoint")]
        for text in given:
            arguments += ["--source", text]
        return _on_spark(registry.detach(name, arguments))

    def _live_program(self, source: ProgramSource) -> Program:
        """A program that reads events as they come."""
        if len(source.text) > SMALL_TEXT:
            self._isolated(None, checking.check, *source.job)  # what takes too long is stopped there
        program = trying.program_of(*source.job)
        trying.refuse_sql(
            program, "SQL reads tables: try it here; over a stream it runs by weft.sql(query, spark=session)"
        )
        return program

    def _copied(self, source: ProgramSource, name: str) -> Path:
        """Return a folder with a copy of the program, so that later edits do not change the run."""
        if any(entry.name == name and entry.is_running for entry in registry.entries()):
            raise UsageError(f"a run called {name!r} is running already: stop it, or choose another name")
        inside = f"{RUNS}/{name}/program"
        folder = self.project.path(inside)
        for left in folder.glob("*") if folder.is_dir() else ():
            left.unlink()
        self.project.write(f"{inside}/{self._file_name(source)}", source.text)
        return folder

    def _file_name(self, source: ProgramSource) -> str:
        """What the file of a program that runs is called; not as files are that runs pass over."""
        ending = next(ending for ending, language in PROGRAM_ENDINGS.items() if language == source.language)
        stem = self.project.path(source.path, ending).stem if source.path else source.stem
        return f"{stem.lstrip('._') or 'q'}{ending}"

    def push(self, name: str, rows: str) -> int:
        """Give events to a program that runs here; the number of matches that they made certain."""
        events = trying.sample_events(Sample(rows=rows), None)
        assert not isinstance(events, str)
        return self._run_here(name).push(events)

    def change(self, name: str, source: ProgramSource) -> RunInfo:
        """Let another program run in its place, on the events that come from now on.

        One on Spark keeps the state of queries that are the same, and is changed in the file that it watches.
        """
        program = self._live_program(source)
        if self._here.get(name) is not None or not self._is_on_spark(name):
            run = self._run_here(name)
            run.replace(program)
            return _here(run)
        change(name, self._file_name(source), source.text)
        return _on_spark(registry.entry(name))

    def _is_on_spark(self, name: str) -> bool:
        return any(entry.name == name for entry in registry.entries())

    def _run_here(self, name: str) -> InProcess:
        run = self._here.get(name)
        if run is None and self._is_on_spark(name):
            raise UsageError(f"{name} runs on Spark: put files of events into the folders of its sources")
        if run is None:
            raise UsageError(f"no program called {name!r} runs here")
        return run

    def stop(self, name: str) -> RunInfo:
        """End a run."""
        here = self._here.get(name)
        if here is not None:
            here.stop()
            return _here(here)
        if not registry.stop(name):
            raise UsageError(f"{name} is still busy; try again")
        return _on_spark(registry.entry(name))

    def restart(self, name: str) -> RunInfo:
        """Start a run once more: one here from its first event on, one on Spark where it stopped."""
        here = self._here.get(name)
        if here is None:
            return _on_spark(registry.restart(name))
        here.stop()
        return _here(self._here.start(name, here.program, here.events, here.rate, here.names))

    def close(self) -> None:
        """End the runs in this process; runs on Spark continue."""
        self._here.stop_all()

    def metrics(self) -> str:
        """Metrics of the programs that run here, as Prometheus reads them."""
        return metrics_text({run.name: run.activity for run in self._here.all()}).decode()

    # ------------------------------------------------------------ cluster

    def cluster(self) -> Overview:
        """What Spark says of the executors of runs that go on; and this machine."""
        return overview(registry.entries())


def _names(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _known(language: str) -> str:
    if language not in PROGRAM_ENDINGS.values():
        raise UsageError(f"there is no language {language!r}; known: {', '.join(PROGRAM_ENDINGS.values())}")
    return language


def _here(run: InProcess) -> RunInfo:
    uptime = None if run.ended is None else run.ended - run.activity.started
    return RunInfo(run.name, "here", run.state, summary_of(run.activity.summary(), uptime), run.problem)


def _detail_here(run: InProcess) -> RunDetail:
    triggers = [trigger.to_json() for trigger in list(run.activity.history)]
    return RunDetail(
        _here(run),
        run.funnels,
        last_hour(triggers),
        list(run.log)[-LOG_LINES:],
        list(run.matches)[::-1],
        busy=busy_share(triggers, run.activity.started, run.ended),
        replayed=(run.replayed, len(run.events)) if run.events else None,
    )


def _on_spark(entry: registry.Entry) -> RunInfo:
    started, ended = entry.about.get("started"), entry.status.get("ended")
    end = time.time() if entry.is_running else ended or started
    summary = summary_of(entry.status, 0.0 if started is None else max(0.0, end - started))
    return RunInfo(entry.name, "spark", entry.state, summary, entry.status.get("problem"), last_change(entry))


def _last_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
    except OSError:
        return []
