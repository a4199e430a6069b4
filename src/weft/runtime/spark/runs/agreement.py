"""What a run and its checkpoint agree on, and which run a sink belongs to: written once, read at each start."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from weft.errors import UsageError

OWNER = ".weft-run"  # in a sink, the id of the run that writes to it
NEW_RUN = "a run that has not been started"


def agreed(checkpoint: str, mine: Mapping[str, object]) -> dict[str, Any]:
    """What the checkpoint says of its run; if it is new, what this one says, and an id."""
    place = _place(checkpoint)
    try:
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, json.dumps({**mine, "run": uuid4().hex}))
        kept = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the checkpoint {checkpoint} cannot be used: weft/run.json: {error}") from None
    return kept if isinstance(kept, dict) else {}


def read_note(checkpoint: str) -> dict[str, Any] | None:
    """What the checkpoint says of its run, or None if it is new."""
    return agreed(checkpoint, {}) if _place(checkpoint).exists() else None


def check_agreement(checkpoint: str, kept: Mapping[str, object], mine: Mapping[str, object]) -> None:
    """Refuse a checkpoint of another version, or of a run that reads something else."""
    if kept.get("format") != mine["format"] or not mine.keys() <= kept.keys():
        raise UsageError(
            f"the checkpoint {checkpoint} was made by another version of weft, whose state this one cannot read: "
            "use another folder"
        )
    if kept["reading"] != mine["reading"]:
        raise UsageError(
            f"the checkpoint {checkpoint} belongs to a run with other columns or sources: use another folder for this "
            "one"
        )


def note(checkpoint: str, kept: Mapping[str, object]) -> None:
    """Let the checkpoint say this of its run."""
    try:
        write_whole(_place(checkpoint), json.dumps(kept))
    except OSError as error:
        raise UsageError(f"the checkpoint {checkpoint} cannot be used: {error.strerror}") from None


def has_begun(checkpoint: str) -> bool:
    """Whether a trigger was completed: before that there is no state."""
    commits = Path(checkpoint) / "spark" / "commits"
    return commits.is_dir() and any(path.name.isdigit() for path in commits.iterdir())


def _place(checkpoint: str) -> Path:
    return Path(checkpoint) / "weft" / "run.json"


def claim_sink(sink: Path, checkpoint: str, kept: Mapping[str, Any]) -> dict[str, Any]:
    """Make a folder of a sink, and that this run's, or refuse it; return what the checkpoint says now."""
    try:
        is_mine = check_sink(sink, checkpoint, kept)
        sink.mkdir(parents=True, exist_ok=True)
        if not is_mine:
            write_whole(sink / OWNER, str(kept["run"]))
    except OSError as error:
        raise _unusable(sink, error) from None
    claimed = {**kept, "sink": str(sink.absolute())}
    if claimed != kept:
        note(checkpoint, claimed)
    return claimed


def check_sink(sink: Path, checkpoint: str, kept: Mapping[str, Any]) -> bool:
    """Whether a sink is this run's already; refused if it is another's, or was removed.

    A run from the start on a sink with matches would write them once more. No run is called NEW_RUN. A checkpoint
    without the run's id is older than ids.
    """
    run = kept.get("run")
    try:
        place = sink / OWNER
        owner = place.read_text(encoding="utf-8").strip() if place.exists() else None
        if run is None or owner == run:
            return True
        if owner is None and kept.get("sink") == str(sink.absolute()) and has_begun(checkpoint):
            raise removed(sink)
        if owner is not None or any(sink.glob("matches-*")):
            raise UsageError(
                f"the sink {sink} has matches of another run than the checkpoint {checkpoint}, "
                "and all would be there twice: use the checkpoint they were made with, or another folder for these"
            )
        return False
    except OSError as error:
        raise _unusable(sink, error) from None


def removed(sink: Path) -> UsageError:
    """What to say of a sink that is not there any more."""
    return UsageError(
        f"the sink {sink} was removed after the run had begun, and the matches in it are gone: put it back and start "
        "the run again, or begin anew with another sink and another checkpoint"
    )


def _unusable(sink: Path, error: OSError) -> UsageError:
    return UsageError(f"the sink {sink} cannot be used: {error.strerror}")


def write_whole(place: Path, text: str) -> None:
    """Write a file that appears under its name only when all of it is on the disk."""
    part = place.with_name(f"{place.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(place)
