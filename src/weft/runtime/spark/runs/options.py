"""How a continuous run goes, as its user says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from weft.algebra.query import Program
from weft.errors import UsageError
from weft.optimizer.pipeline import Choices
from weft.runtime.limits.guarding import NO_LIMITS, Limits
from weft.runtime.reading.fronts import MAX_JUMP
from weft.runtime.reading.idleness import IdleAfter
from weft.statistics import Statistics

Until = Literal["stopped", "read", "complete"]
FILES_PER_TRIGGER, BYTES_PER_TRIGGER = 1000, 1 << 28
MAX_AHEAD = 86_400.0  # seconds


@dataclass(frozen=True)
class RunOptions:
    """Options of a continuous run.

    `until`: "stopped" runs until it is stopped; "read" ends when the files that are there are read, and events
    behind the watermark stay in the checkpoint; "complete" then declares the stream complete, so that they
    are matched too: after that every event is late.
    An event waits until every source has passed its time. `idle_after`: a source without a new file for that many
    seconds is not waited for. "rate": the time of one event by the rate that the program declares for it, one second
    at least, or its longest pause between two files so far; a source without a rate is waited for. When all are silent
    nothing waits, and time has come as far as the last event and no further: what comes afterwards in order is not
    late.
    """

    sink: str  # a folder, kafka://HOST:PORT/TOPIC or delta:PATH
    checkpoint: str
    rejects: str | None = None  # a folder; `rejects` inside the sink's, or the checkpoint's, unless it is said
    time: str = "ts"
    type: str = "type"
    order: tuple[str, ...] = ()  # columns that decide between equal times
    key: tuple[str, ...] = ()  # columns that ids are made of, instead of positions
    delay: int = 0
    strategy: str | None = None
    lanes: int | None = None
    partitions: int | None = None  # tasks that lanes share as long as the checkpoint lives; as many as lanes at first
    statistics: Statistics | None = None  # what it is planned by
    adapts: tuple[Program, Choices] | None = None  # see `Job`
    until: Until = "stopped"
    every: str = "1 second"  # how often new files are looked for
    idle_after: IdleAfter = "rate"
    files_per_trigger: int | None = FILES_PER_TRIGGER
    bytes_per_trigger: int | None = BYTES_PER_TRIGGER
    settle: float = 0.0  # seconds for which a file must not have changed before it is read
    # Events that are read in a second, at most: from all sources (a trigger is one file), or from each by its name (a
    # trigger has one file of each of these).
    rate: float | Mapping[str, float] | None = None
    max_ahead: float | None = MAX_AHEAD  # seconds by which an event may be ahead of the clock; None: any
    max_jump: float | None = MAX_JUMP  # seconds by which an event may be ahead of the others (see `Front`); None: any
    format: Literal["jsonl", "parquet"] = "jsonl"
    limits: Limits = NO_LIMITS  # each lane has its part of them
    kafka: Mapping[str, str] = field(default_factory=dict)  # options of Spark's connector, for all topics
    packages: tuple[str, ...] = ()  # Maven coordinates, for a session that is made for the run
    jars: tuple[str, ...] = ()  # likewise, paths
    positions: bool = False  # whether matches are written with their positions and bindings
    counted: frozenset[str] = frozenset()  # the names of queries whose matches are counted, and not written

    def __post_init__(self) -> None:
        number = 1.0 if self.idle_after in (None, "rate") else float(self.idle_after or 0)
        if number <= 0 or (self.idle_after not in (None, "rate") and self.until != "stopped"):
            raise UsageError(
                "idle_after is a number of seconds above 0 for runs that go on until they are stopped, 'rate' or None"
            )
        for rate in self.rate.values() if isinstance(self.rate, Mapping) else [self.rate]:
            if rate is not None and rate <= 0:
                raise UsageError(f"rate is a number of events in a second above 0, not {rate}")
        for name in ("files_per_trigger", "bytes_per_trigger", "settle", "max_ahead", "max_jump"):
            given = getattr(self, name)
            if given is not None and (given < 0 or (given == 0 and name.endswith("per_trigger"))):
                raise UsageError(f"{name} must not be {given}")
