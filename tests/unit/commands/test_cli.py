"""The command line: output, exit codes and messages."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from weft.cli.main import app
from weft.cli.match import spread_events

EXAMPLES = Path(__file__).parents[3] / "examples"
FIRE = str(EXAMPLES / "fire" / "fire.ceql")
HEATING = str(EXAMPLES / "fire" / "heating.ceql")
SENSORS = str(EXAMPLES / "fire" / "sensors.jsonl")


def weft(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def records(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "wrong.ceql"
    path.write_text("SELECT *\nWHERE A AS x; B AS y\nFILTER z[v > 1]\nWITHIN 10 EVENTS\n")
    return str(path)


class TestMatch:
    def test_writes_one_object_per_match_in_match_order(self) -> None:
        result = weft("match", FIRE, "--events", SENSORS)
        assert result.exit_code == 0
        first, second = records(result.stdout)
        assert list(first) == ["query", "id", "start", "end", "positions", "bindings", "event"]
        assert (first["positions"], second["positions"]) == ([1, 3, 8], [1, 6, 8])
        assert first["bindings"] == {"t1": [1], "h1": [3], "t2": [8]}
        assert first["event"] == {"id": 1}

    @pytest.mark.parametrize("engine", ["local", "meaning", pytest.param("spark", marks=pytest.mark.spark)])
    def test_engines_write_the_same(self, engine: str) -> None:
        result = weft("match", FIRE, HEATING, "--events", SENSORS, "--engine", engine)
        assert result.stdout == weft("match", FIRE, HEATING, "--events", SENSORS).stdout

    def test_counts(self) -> None:
        result = weft("match", FIRE, HEATING, "--events", SENSORS, "--count")
        assert records(result.stdout) == [{"query": "fire", "count": 2}, {"query": "heating", "count": 3}]

    def test_reads_several_files(self, tmp_path: Path) -> None:
        lines = Path(SENSORS).read_text().splitlines(keepends=True)
        (tmp_path / "1.jsonl").write_text("".join(lines[:4]))
        (tmp_path / "2.jsonl").write_text("".join(lines[4:]))
        files = [str(tmp_path / "1.jsonl"), str(tmp_path / "2.jsonl")]
        assert weft("match", "--events", *files, FIRE).stdout == weft("match", FIRE, "-e", SENSORS).stdout

    def test_writes_csv_and_parquet(self, tmp_path: Path) -> None:
        table, lines = tmp_path / "found.parquet", tmp_path / "found.csv"
        assert weft("match", FIRE, "--events", SENSORS, "--out", str(table)).exit_code == 0
        assert pq.read_table(table).column("positions").to_pylist() == [[1, 3, 8], [1, 6, 8]]
        assert weft("match", FIRE, "--events", SENSORS, "--out", str(lines), "--format", "csv").exit_code == 0
        rows = list(csv.DictReader(lines.open()))
        assert [row["positions"] for row in rows] == ["1 3 8", "1 6 8"]
        assert json.loads(rows[0]["bindings"]) == {"t1": [1], "h1": [3], "t2": [8]}

    def test_statistics_go_to_stderr(self) -> None:
        result = weft("match", FIRE, "--events", SENSORS, "--stats")
        assert len(records(result.stdout)) == 2
        shown = dict(line.split() for line in result.stderr.splitlines())
        assert (shown["events"], shown["matches"], shown["rejected"]) == ("9", "2", "0")
        assert "seconds" in shown

    def test_rejects_are_kept_with_their_place(self, tmp_path: Path) -> None:
        events, kept = tmp_path / "events.jsonl", tmp_path / "rejects.jsonl"
        events.write_text('{"type": "T", "ts": 1}\n{"type": "T"}\nnonsense\n')
        result = weft("match", FIRE, "--events", str(events), "--rejects", str(kept))
        assert result.exit_code == 0
        assert "2 events could not be read" in result.stderr
        assert [(reject["file"], reject["line"]) for reject in records(kept.read_text())] == [
            (str(events), 2),
            (str(events), 3),
        ]

    def test_a_missing_file_of_events_is_one_message(self) -> None:
        result = weft("match", FIRE, "--events", "nowhere.jsonl")
        assert result.exit_code == 1
        assert "nowhere.jsonl" in result.stderr
        assert "Traceback" not in result.stderr

    def test_a_wrong_program_is_shown_with_a_caret(self, wrong: str) -> None:
        result = weft("match", wrong, "--events", SENSORS)
        assert result.exit_code == 1
        assert "wrong.ceql:3:8: error[" in result.stderr
        assert "^" in result.stderr
        assert result.stdout == ""

    def test_wrong_usage_is_exit_code_two(self) -> None:
        assert weft("match", FIRE).exit_code == 2
        assert weft("match", FIRE, "--events", SENSORS, "--engine", "fast").exit_code == 2
        assert weft("match", FIRE, FIRE, "--events", SENSORS).exit_code == 2

    @pytest.mark.parametrize("more", [[], ["--count"]])
    def test_a_place_that_cannot_be_written_is_one_message(self, more: list[str]) -> None:
        result = weft("match", FIRE, "--events", SENSORS, "--out", "no/such/folder/x.jsonl", *more)
        assert result.exit_code == 1
        assert "cannot write no/such/folder/x.jsonl" in result.stderr

    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            (["q.ceql", "--events", "a", "b"], ["q.ceql", "--events", "a", "--events", "b"]),
            (["--events", "a", "b", "q.ceql"], ["--events", "a", "--events", "b", "q.ceql"]),
            (["-e", "a", "b", "--time", "t", "c"], ["-e", "a", "--events", "b", "--time", "t", "c"]),
            (["--events=a", "b"], ["--events=a", "--events", "b"]),
            (["q.ceql", "r.ceql"], ["q.ceql", "r.ceql"]),
        ],
    )
    def test_one_option_takes_several_files(self, given: list[str], meant: list[str]) -> None:
        assert spread_events(given) == meant


class TestCheck:
    def test_a_good_program_is_exit_code_zero(self) -> None:
        result = weft("check", FIRE)
        assert result.exit_code == 0
        assert "1 file: 0 errors" in result.stdout

    def test_a_wrong_one_is_exit_code_one(self, wrong: str) -> None:
        result = weft("check", FIRE, wrong)
        assert result.exit_code == 1
        assert "wrong.ceql:3:8" in result.stderr

    def test_findings_as_json(self, wrong: str) -> None:
        result = weft("check", wrong, "--json")
        assert result.exit_code == 1
        (finding,) = records(result.stdout)
        assert finding["severity"] == "error"
        assert (finding["line"], finding["column"]) == (3, 8)

    def test_warnings_alone_are_exit_code_zero(self, tmp_path: Path) -> None:
        path = tmp_path / "endless.ceql"
        path.write_text("SELECT * WHERE A; B")
        result = weft("check", str(path), "--json")
        assert result.exit_code == 0
        assert [finding["severity"] for finding in records(result.stdout)] == ["warning"]

    @pytest.mark.parametrize(
        ("texts", "said"),
        [
            (("QUERY P AS SELECT p WHERE R AS p WITHIN 1 EVENT", "define R() from P()"), "P <- R <- P"),
            (("pattern P any(A a)", "QUERY P AS SELECT a WHERE A AS a WITHIN 1 EVENT"), "a query called 'P'"),
        ],
    )
    def test_programs_that_cannot_be_one_are_exit_code_one(
        self, tmp_path: Path, texts: tuple[str, str], said: str
    ) -> None:
        endings = {"QUERY": "ceql", "define": "tesla", "pattern": "epn"}
        paths = [tmp_path / f"part.{endings[text.split()[0]]}" for text in texts]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
            assert weft("check", str(path)).exit_code == 0
        result = weft("check", *map(str, paths))
        assert result.exit_code == 1
        assert said in result.stderr
        assert "2 files: 1 error, 0 warnings" in result.stdout
        result = weft("check", *map(str, paths), "--json")
        assert result.exit_code == 1
        assert [(finding["code"], said in finding["message"]) for finding in records(result.stdout)] == [
            ("conflict", True)
        ]

    def test_a_missing_file_is_exit_code_one(self) -> None:
        result = weft("check", "nowhere.ceql")
        assert result.exit_code == 1
        assert "1 could not be read" in result.stdout
        assert "no such program file: nowhere.ceql" in result.stderr


class TestExplain:
    def test_shows_a_stage(self) -> None:
        result = weft("explain", FIRE, "--stage", "algebra")
        assert result.exit_code == 0
        assert result.stdout.startswith("query fire")

    def test_shows_dot(self) -> None:
        assert weft("explain", FIRE, "--stage", "plan", "--format", "dot").stdout.startswith("digraph")

    def test_several_texts_are_one_program(self) -> None:
        warm = "define Warm(t: double) from Temp(value > 8) as r where t = r.value"
        rising = "QUERY Rising AS SELECT a, b[t] WHERE Warm AS a ; Warm AS b FILTER a[t] < b[t] WITHIN 30 MINUTES"
        result = weft("explain", "-q", rising, "-q", warm, "--stage", "optimized", "--json")
        assert result.exit_code == 0
        assert [query["name"] for query in json.loads(result.stdout)["queries"]] == ["Rising", "Warm"]
        assert "over the input and what is defined by Warm" in weft("explain", "-q", rising, "-q", warm).stdout

    def test_an_unknown_stage_is_wrong_usage(self) -> None:
        assert weft("explain", FIRE, "--stage", "wishes").exit_code == 2


class TestBench:
    def test_runs_modules_with_run(self, tmp_path: Path) -> None:
        (tmp_path / "sums.py").write_text(
            "def run(scale):\n"
            "    return [{'case': 'sum', 'value': 10 * scale, 'unit': 's', 'baseline': 'loop', 'ratio': 2.0}]\n"
        )
        (tmp_path / "shared.py").write_text("WORD = 1\n")
        result = weft("bench", "--folder", str(tmp_path), "--json", "--scale", "0.5")
        assert result.exit_code == 0
        assert records(result.stdout) == [
            {"benchmark": "sums", "case": "sum", "value": 5.0, "unit": "s", "baseline": "loop", "ratio": 2.0}
        ]
        assert "loop" in weft("bench", "sums", "--folder", str(tmp_path)).stdout

    def test_a_table_of_long_texts_fits_into_80_columns(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        texts = "'case': 'replication 1:1, 16 lanes, total 8.18 M/s', 'goal': 'total linear, effective log-like'"
        row = f"{{{texts}, 'value': 2.8, 'unit': 'M events/s, effective', 'baseline': 'one lane alone', 'ratio': 1.2}}"
        (tmp_path / "sums.py").write_text(f"def run(scale):\n    return [{row}]\n")
        shown = weft("bench", "sums", "--folder", str(tmp_path)).stdout
        assert all(len(line) <= 80 for line in shown.splitlines())
        for word in ("replication", "M/s", "effective", "linear,", "log-like", "alone"):
            assert f" {word}" in shown

    def test_says_when_there_are_none(self, tmp_path: Path) -> None:
        result = weft("bench", "--folder", str(tmp_path / "nowhere"))
        assert result.exit_code == 1
        assert "source tree" in result.stderr

    def test_an_unknown_one_is_wrong_usage(self, tmp_path: Path) -> None:
        (tmp_path / "sums.py").write_text("def run(scale):\n    return []\n")
        result = weft("bench", "sms", "--folder", str(tmp_path))
        assert result.exit_code == 2
        assert "did you mean 'sums'" in result.stderr


def test_help_teaches_with_examples() -> None:
    for command in ("match", "check", "explain", "run", "bench"):
        result = weft(command, "--help")
        assert result.exit_code == 0
        assert f"weft {command} " in result.stdout


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m weft match {FIRE} --events {SENSORS} | head -n 0"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class TestRun:
    def test_a_source_needs_a_name(self, tmp_path: Path) -> None:
        result = weft("run", FIRE, "--source", "incoming", "--sink", str(tmp_path), "--checkpoint", str(tmp_path))
        assert result.exit_code == 2
        assert "NAME=URI" in result.stderr

    def test_a_missing_folder_is_one_message(self, tmp_path: Path) -> None:
        place = str(tmp_path / "out")
        result = weft("run", FIRE, "--source", "w=nowhere", "--sink", place, "--checkpoint", place)
        assert result.exit_code == 2
        assert "no such folder: nowhere" in result.stderr


def test_what_spark_logs_is_no_stack_trace() -> None:
    """Its bridge to Java logs through the root, which makes a handler that prints stack traces if there is none."""
    pytest.importorskip("pyspark")
    code = """
import logging, socket, threading
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError
from weft.cli.console import say_what_others_say

def hang_up(server):
    while True:
        server.accept()[0].close()

say_what_others_say()
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=hang_up, args=(server,), daemon=True).start()
java = GatewayParameters(port=server.getsockname()[1])
try:
    JavaGateway(gateway_parameters=java).jvm.java.lang.System.exit(0)
except Py4JError as error:
    print(type(error).__name__)
logging.getLogger("weft.run").warning("a file has grown")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout
    assert "Traceback" not in done.stderr
    assert [line.split(" ", 2)[2] for line in done.stderr.splitlines()] == ["warning a file has grown"]


def test_match_and_run_have_the_same_options_for_events_and_matches(tmp_path: Path) -> None:
    out = tmp_path / "found.jsonl"
    assert weft("match", FIRE, "--source", SENSORS, "--sink", str(out)).exit_code == 0
    assert out.read_text() == weft("match", FIRE, "--events", SENSORS).stdout
    commands = get_command(app).commands  # type: ignore[attr-defined]
    options = [{option for given in commands[name].params for option in given.opts} for name in ("match", "run")]
    shared = {"--source", "--events", "--sink", "--out", "--idle-after", "--delay", "--rejects", "--stats", "--format"}
    shared |= {
        "--shed-share",
        "--shed-above",
        "--positions",
        "--functions",
        "--budget",
        "--strategy",
        "--lanes",
        "--key",
    }
    assert all(shared <= own for own in options)


def test_matches_are_written_without_positions_and_events_are_shed_by_number(tmp_path: Path) -> None:
    all_of_it = [json.loads(line) for line in weft("match", FIRE, "--events", SENSORS).stdout.splitlines()]
    lines = weft("match", FIRE, "--events", SENSORS, "--no-positions").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {name: value for name, value in match.items() if name not in ("positions", "bindings")} for match in all_of_it
    ]
    rows = weft("match", FIRE, "--events", SENSORS, "--no-positions", "--format", "csv").stdout.splitlines()
    assert len(rows) == len(all_of_it) + 1
    shed = weft("match", FIRE, "--events", SENSORS, "--shed-above", "1").stdout.splitlines()
    assert len(shed) < len(all_of_it)
    both = weft("match", FIRE, "--events", SENSORS, "--shed-above", "1", "--shed-share", "0.5")
    assert both.exit_code == 2
    assert "do not go together" in both.output
