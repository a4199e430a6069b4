"""What commands load: a match of a few events needs neither pandas nor the engines that it does not run."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from weft.cli.commands import PLACES, summaries

ORDERS = Path(__file__).parents[3] / "examples" / "orders"
RUN = """
import json, sys
sys.argv = ["weft", *sys.argv[1:]]
from weft.__main__ import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def loaded_by(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("language", ["ceql", "eql"])
def test_a_match_in_a_file_loads_what_it_runs_only(language: str):
    loaded = loaded_by("match", str(ORDERS / f"paid.{language}"), "--events", str(ORDERS / "orders.jsonl"))
    others = {"ceql": "weft.runtime.operators.joins.operator", "eql": "weft.runtime.operators.automaton.operator"}
    assert "weft.runtime.execution.matcher" in loaded
    assert not loaded & {"pandas", "pyspark", "yaml", "duckdb", "rich", "weft.algebra.meaning", others[language]}


def test_help_loads_no_command():
    assert not loaded_by("--help") & {"numba", "pyarrow", "weft.cli.match", "weft.cli.runs.run"}


def test_summaries_are_what_the_commands_say_of_themselves():
    for name, command in summaries().items():
        module, function = PLACES[name].split(":")
        text = inspect.getdoc(getattr(import_module(module), function)) or ""
        assert command.help == text.splitlines()[0]


def test_pandas_that_is_loaded_later_is_known_to_arrow():
    text = (
        "import sys; from weft.cli.loading import hide_pandas_from_arrow; hide_pandas_from_arrow()\n"
        "import pyarrow as pa\n"
        "pa.array([1, None]); assert 'pandas' not in sys.modules\n"
        "import pandas as pd\n"
        "print(pa.table(pd.DataFrame({'a': [1]})).to_pandas()['a'].tolist())"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1]"
