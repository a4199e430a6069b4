"""`weft.live`: start a program in this process."""

from __future__ import annotations

from collections.abc import Sequence

from weft.api import Known, Programs, as_columns, choices
from weft.arguments import check
from weft.live_programs.program import LiveProgram
from weft.live_programs.queue import WhenFull
from weft.runtime.data.events import Rejected
from weft.runtime.lanes.sharing import Sharing
from weft.runtime.limits.budgets import Given
from weft.runtime.limits.guarding import Limits
from weft.runtime.limits.shedding import Shed
from weft.runtime.reading.fronts import MAX_JUMP


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
    lanes: int | None = None,
    threads: int | None = None,
    max_jump: float | None = MAX_JUMP,
) -> LiveProgram:
    """Start a program in this process: push events, and deploy and remove queries while it runs.

    With `with weft.live(program) as running:` the stream ends with the block. Events that cannot be read take no
    part: they are appended to `rejects`, or warned about if it is None. `order` names columns that decide between
    equal times of one push, `key` those that ids are made of instead of positions; for these, `optimize`,
    `statistics`, `budget` and `shed` see `detect`.

    With `queue`, at most that many events wait for a thread that matches them, and `push` does not wait for matches.
    When the queue is full, `push` waits, or (`when_full="drop"`) events are left out where that never invents a match.

    With `lanes`, queries that do not feed each other are divided among that many lanes, which process a batch
    concurrently in `threads` (each number defaults to the other one). The matches are the same.

    An event more than `max_jump` seconds ahead of those before it is set aside until further events confirm it, so that
    it does not make them late; `finish` matches what is left (None: every event is matched at once).
    """
    check(locals())
    by, ids = as_columns(order), as_columns(key)
    sharing = Sharing(lanes=lanes, threads=threads)
    chosen, limits = choices(optimize, statistics), Limits(budget, shed)
    running = LiveProgram(
        time,
        type,
        rejects,
        chosen,
        by,
        ids,
        limits,
        queue,
        when_full,
        lanes=sharing.number,
        threads=sharing.threads,
        max_jump=max_jump,
    )
    if program is not None:
        running.deploy(program)
    return running


live.load = LiveProgram.load  # type: ignore[attr-defined] # next to what it belongs to
