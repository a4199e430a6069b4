"""`weft.live`: start a program in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from weft.api import Known, Programs
from weft.described import described
from weft.described.checking import check
from weft.live_programs.program import LiveProgram
from weft.live_programs.queue import WhenFull
from weft.runtime.data.events import Rejected
from weft.runtime.limits.budgets import Given
from weft.runtime.limits.shedding import Shed
from weft.runtime.options import Options
from weft.runtime.reading.fronts import MAX_JUMP


@described(
    strategy="`key` (the default): the work of queries that have a key is split by it, others are whole in one lane; "
    "`query`: all are.",
    lanes="How many lanes share the work; as many as `threads` unless it is given.",
    threads="How many lanes work on a batch at once; as many as `lanes` unless it is given.",
)
def live(
    program: Programs | None = None,
    *,
    time: str = "ts",
    type: str = "type",
    rejects: list[Rejected] | None = None,
    order: str | Sequence[str] = (),
    key: str | Sequence[str] = (),
    optimize: bool = True,
    statistics: Known = None,
    budget: Given = None,
    shed: Shed | None = None,
    queue: int | None = None,
    when_full: WhenFull = "wait",
    strategy: Literal["key", "query"] | None = None,
    lanes: int | None = None,
    threads: int | None = None,
    max_jump: float | None = MAX_JUMP,
) -> LiveProgram:
    """Start a program in this process: push events, and deploy and remove queries while it runs.

    With `with weft.live(program) as running:` the stream ends with the block; `finish` ends it otherwise.
    """
    given = locals()
    check(given)
    running = LiveProgram(Options.of(given), rejects, queue, when_full)
    if program is not None:
        running.deploy(program)
    return running


live.load = LiveProgram.load  # type: ignore[attr-defined] # next to what it belongs to
