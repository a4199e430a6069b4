"""A command loads what it uses: the others' libraries take longer to load than four events take to match."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.cli.commands import PLACES, Commands
from weft.cli.main import app

ROOT = Path(__file__).parents[3]
OTHERS = ("pyspark", "prometheus_client", "nicegui", "weft.workbench", "weft.tuning", "weft.rule_tests", "http.server")
MATCH = """
import sys
from weft.cli.main import app
app(["match", sys.argv[1], "--events", sys.argv[2], "--count"], standalone_mode=False)
print(*[name for name in sys.argv[3:] if name in sys.modules])
"""


def test_match_loads_no_other_commands_libraries() -> None:
    fire = ROOT / "examples" / "fire"
    done = subprocess.run(
        [sys.executable, "-c", MATCH, str(fire / "fire.ceql"), str(fire / "sensors.jsonl"), *OTHERS],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ['{"query": "fire", "count": 2}', ""]


@pytest.mark.parametrize("name", PLACES)
def test_every_command_is_found_and_has_help(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"])
    assert shown.exit_code == 0
    assert f"weft {name} " in shown.output.replace("root", "weft")
    assert Commands()[name].name == name
