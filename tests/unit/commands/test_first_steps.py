"""What a new user meets first: `weft` alone, `weft init`, `weft doctor`, and a package of the same name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.cli.main import app
from weft.cli.setup import doctor
from weft.drawing import ratios
from weft.errors import UsageError

ROOT = Path(__file__).parents[3]


def test_weft_alone_shows_three_things_to_try() -> None:
    shown = CliRunner().invoke(app, [])
    assert shown.exit_code == 0
    for words in ("weft init", "weft web", "weft doctor"):
        assert words in shown.output


def test_init_creates_a_project_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "fraud"
    assert CliRunner().invoke(app, ["init", str(folder)]).exit_code == 0
    monkeypatch.chdir(folder)
    found = CliRunner().invoke(app, ["match", "card_fraud.ceql", "--events", "payments.jsonl"])
    assert [json.loads(line)["event"] for line in found.stdout.splitlines()] == [{"card": "a", "amount": 980.0}]
    tested = CliRunner().invoke(app, ["test", "."])
    assert tested.exit_code == 0
    assert "2 cases: 2 passed" in tested.output


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "payments.jsonl").write_text("mine")
    refused = CliRunner().invoke(app, ["init", str(tmp_path)])
    assert refused.exit_code == 2
    assert "payments.jsonl already" in refused.output
    assert (tmp_path / "payments.jsonl").read_text() == "mine"
    assert not (tmp_path / "card_fraud.ceql").exists()


def test_doctor_says_what_is_here() -> None:
    shown = CliRunner().invoke(app, ["doctor", "--json"])
    checks = {check["name"]: check for check in map(json.loads, shown.stdout.splitlines())}
    assert {"weft", "Java", "Spark", "Numba", "kernels", "[serve]", "port"} <= set(checks)
    assert checks["Spark"]["good"] is True


def test_doctor_says_what_is_wrong_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(doctor, "_installed", lambda package: "1.0" if package == "weft" else None)
    shown = CliRunner().invoke(app, ["doctor"])
    assert shown.exit_code == 1
    for words in ("pip uninstall weft", "set JAVA_HOME to a Java that runs", "pip install pyspark"):
        assert words in shown.output


def test_a_package_of_the_same_name_is_reported(tmp_path: Path) -> None:
    (tmp_path / "weft").symlink_to(ROOT / "src" / "weft")
    (tmp_path / "weft-2.0.dist-info").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", "import weft"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert "weft-2.0" in done.stderr
    assert "pip install weft-cep" in done.stderr


def test_links_of_the_packages_readme_are_absolute(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("[a](docs/a.md) ![b](docs/b.svg) [c](https://c.example) [d](#d)")
    script = ROOT / "packaging" / "readme.py"
    subprocess.run([sys.executable, script, readme, ROOT / "pyproject.toml"], check=True)
    text = readme.read_text()
    assert "/blob/main/docs/a.md)" in text
    assert "/raw/main/docs/b.svg)" in text
    assert text.endswith("[c](https://c.example) [d](#d)")


def test_ratios_of_benchmarks_are_drawn(tmp_path: Path) -> None:
    rows = [
        {"benchmark": "peers", "case": "half the time", "ratio": 0.5, "goal": "<= 0.5", "baseline": "DuckDB: 0.3"},
        {"benchmark": "peers", "case": "half the time", "ratio": 30, "baseline": "Flink SQL, elsewhere: 9"},
        {"benchmark": "sql", "case": "runs: 7 matches, SQL", "ratio": None},
        {"benchmark": "sql", "case": "  path", "ratio": 3.0, "goal": ">= 3", "baseline": "SQL"},
    ]
    ratios.plot_ratios(rows, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert "2.0x" in text
    for part in ("against DuckDB", "30x", "runs", "path against SQL", "3.0x", "hollow: measured on another machine"):
        assert part in text
    with pytest.raises(UsageError, match="ratio to draw"):
        ratios.plot_ratios(rows[2:3], tmp_path / "b.svg")


def test_workflows_only_call_make_targets_that_exist() -> None:
    yaml = pytest.importorskip("yaml", reason="mkdocs brings it")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
        commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
        assert commands
        assert {command.split()[0] for command in commands} == {"make"}
        assert {command.split()[1] for command in commands} <= targets


def test_extras_that_messages_name_are_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    assert {"workbench", "serve", "sql", "plot", "kafka"} <= extras
    texts = [path.read_text() for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md")]]
    named = {
        name for text in texts for found in re.findall(r"weft-cep\[([a-z,]+)\]", text) for name in found.split(",")
    }
    assert named <= extras


def test_a_terminal_is_told_that_nothing_was_found(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"type": "B", "ts": 1}\n{"type": "A", "ts": 2}\n')
    query = "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 10 EVENTS"
    command = [sys.executable, "-m", "weft", "match", "--no-progress", "--query", query, "--events", "events.jsonl"]
    shown, terminal = os.openpty()
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, timeout=120)
    os.close(terminal)
    with os.fdopen(shown, "rb", 0) as stream:
        told = stream.read(10_000)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"no matches in 2 events" in told
