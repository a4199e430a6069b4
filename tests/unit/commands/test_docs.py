"""The documents say what is true: their code runs, and what they show as output is the output.

A ```python block runs in its document's namespace; a ```text block right after it is what it prints. In a
```console block, lines that begin with `$ weft` run in a copy of the examples, and the lines after one are
its output. Blocks marked `spark` need a Spark session.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    info: str
    text: str
    line: int


def blocks(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    return [Block(f[1].strip(), f[2], text.count("\n", 0, f.start()) + 1) for f in FENCE.finditer(text)]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    return tmp_path


def run_python(document: Path, wanted: tuple[str, ...]) -> list[tuple[Block, str, str]]:
    """Each python block with what it printed and what the document shows (the same when it shows nothing)."""
    namespace: dict[str, object] = {"__name__": "document"}
    found = blocks(document)
    results = []
    for block, after in pairwise([*found, Block("", "", 0)]):
        if block.info not in wanted:
            continue
        out = StringIO()
        with redirect_stdout(out):
            exec(compile(block.text, f"{document.name}:{block.line}", "exec"), namespace)
        results.append((block, out.getvalue(), after.text if after.info == "text" else out.getvalue()))
    return results


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown for it."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_prints_what_is_shown(document: Path, workplace: Path) -> None:
    for block, printed, shown in run_python(document, ("python",)):
        assert printed == shown, f"{document.name}:{block.line}"


@pytest.mark.spark
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/results.md", "docs/spark.md"])
def test_python_on_spark_prints_what_is_shown(page: str, workplace: Path) -> None:
    found = run_python(ROOT / page, ("python", "python spark"))
    assert [block.line for block, printed, shown in found if printed != shown] == []


def shell(command: str) -> str:
    """What a command prints, on stdout and stderr."""
    done = subprocess.run(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout


def in_process(command: str, *, with_errors: bool = True) -> str:
    """The same of weft in this process, which has loaded what it needs already, perhaps a Spark, too."""
    if not command.startswith("weft "):
        return shell(command)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    return done.output if with_errors else done.stdout


def run_commands(document: Path, info: str, execute: Callable[[str], str]) -> list[tuple[str, str, str]]:
    """Each command of the document's console blocks with what it printed and what the document shows."""
    return [
        (f"{document.name}:{block.line}: {command}", execute(command).rstrip(), shown.rstrip())
        for block in blocks(document)
        if block.info == info
        for command, shown in commands(block.text)
        if command.startswith(("weft ", "cat ", "mkdir ", "cp "))
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_print_what_is_shown(document: Path, workplace: Path) -> None:
    """Those of the first page run in processes of their own, as users run them."""
    execute = shell if document.name == "README.md" and document.parent == ROOT else in_process
    for command, printed, shown in run_commands(document, "console", execute):
        assert printed == shown, command


@pytest.mark.spark
def test_commands_on_spark_print_what_is_shown(workplace: Path) -> None:
    results = run_commands(ROOT / "docs" / "tutorial.md", "console spark", partial(in_process, with_errors=False))
    assert len(results) >= 3
    for command, printed, shown in results:
        assert printed == shown, command


def test_links_lead_somewhere() -> None:
    for document in [*DOCUMENTS, *ROOT.glob("*.md"), ROOT / "tests" / "README.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in (ROOT / "docs").glob("*.md") if f"({path.name})" not in index] == ["README.md"]


def test_the_code_map_names_what_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "weft"
    shown = re.findall(r"`([a-z_/]+(?:\.py|/))`", text)
    top = [name for name in shown if not name.startswith(("benchmarks", "examples", "tests"))]
    missing = [name for name in top if not (package / name).exists() and not list(package.rglob(name))]
    assert missing == []
    folders = {path.name for path in package.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= {name.rstrip("/") for name in shown}


def test_the_walk_through_the_stages_shows_real_output(tmp_path: Path) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```eql\n(.*?)```", text, re.DOTALL)
    shown = re.findall(r"```console\n\$ weft explain fraud.eql --stage (\w+)\n(.*?)```", text, re.DOTALL)
    assert [stage for stage, _ in shown] == ["algebra", "optimized", "plan"]
    (tmp_path / "fraud.eql").write_text(program, encoding="utf-8")
    for stage, lines in shown:
        output = weft.explain(tmp_path / "fraud.eql", stage).splitlines()
        assert [line for line in lines.splitlines() if line not in output] == []


def test_the_readme_opens_with_the_demo_and_the_tests() -> None:
    head = (ROOT / "README.md").read_text(encoding="utf-8")[:600]
    assert "make demo" in head
    assert "make test" in head
