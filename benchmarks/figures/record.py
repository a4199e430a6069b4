"""What is known of the figures in a folder: which were run, at which scale, from which sources, and their outcomes."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = "figures.json"


@dataclass
class FigureRecord:
    """The outcomes of one run of all figures; saved after each, so that a run can be resumed."""

    folder: Path
    scale: float
    commit: str
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, scale: float) -> FigureRecord:
        """What a folder has of this scale and these sources; of others nothing counts."""
        record, path = cls(folder, scale, commit_of(Path(__file__).parent)), folder / NAME
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            if (found.get("scale"), found.get("commit")) == (scale, record.commit):
                record.figures = found["figures"]
        return record

    def has(self, figure: Any) -> bool:
        """Whether a figure was run, and its files are there."""
        return figure.id in self.figures and (self.folder / f"{figure.id}.csv").is_file()

    def add(self, outcome: Any, seconds: float) -> None:
        """Keep the outcome of a figure."""
        self.figures[outcome.figure.id] = {"holds": outcome.holds, "seconds": round(seconds, 1)}
        found = {"scale": self.scale, "commit": self.commit, "figures": self.figures}
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / NAME).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    @property
    def held(self) -> int:
        """How many figures have the expected shape."""
        return sum(one["holds"] for one in self.figures.values())

    @property
    def seconds(self) -> float:
        """How long all took together."""
        return sum(float(one["seconds"]) for one in self.figures.values())


def commit_of(folder: Path) -> str:
    """The commit of the sources, with a mark if they were changed since; empty where there is no git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
