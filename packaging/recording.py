"""Record a short session in a terminal as docs/terminal.svg: the commands are run, and what they print is shown."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "weft init fraud",
    "cd fraud",
    "cat card_fraud.ceql",
    "weft match card_fraud.ceql --events payments.jsonl",
    "weft test .",
)
FONT = "@font-face"  # rich links fonts on the network; the picture must need none


def record() -> str:
    """Run the commands one after the other and return the picture."""
    console = Console(record=True, width=100, file=io.StringIO())
    folder = Path(tempfile.mkdtemp())
    for command in COMMANDS:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        if command.startswith("cd "):
            folder /= command[3:]
            continue
        words = command.split()
        run = [sys.executable, "-m", *words] if words[0] == "weft" else words
        done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True)
        console.print(Text(done.stdout.rstrip()))
    return console.export_svg(title="weft")


def without_fonts(svg: str) -> str:
    """Leave out the rules that would load a font from elsewhere."""
    while (start := svg.find(FONT)) >= 0:
        svg = svg[:start] + svg[svg.index("}", start) + 1 :]
    return svg


if __name__ == "__main__":
    (ROOT / "docs" / "terminal.svg").write_text(without_fonts(record()), encoding="utf-8")
