"""Information about a current or past run: plain, typed values, the same for runs in process and on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.running.changing import ProgramChange
from weft.runtime.watching.left_out import by_query
from weft.workbench.following import CheckpointInfo, FoundMatch

HOUR = 3600.0
POINTS = 120  # of a chart of the last hour


@dataclass(frozen=True)
class QueryInfo:
    """A query: its matches, when the last came (seconds since 1970), and how long it is silent, if longer than ever.

    `left_out` says what a budget or shedding left out of it.
    """

    name: str
    matches: int
    last: float | None = None
    silent_for: float | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class OperatorInfo:
    """Operators that run together: events received, matches emitted, in all lanes, and how much waits there."""

    name: str
    received: int
    emitted: int
    waiting: int


@dataclass(frozen=True)
class LaneInfo:
    """A lane after the last trigger: events taken, and its part of what all lanes took."""

    lane: int
    taken: int
    load: float
    held: int
    waiting: int
    behind: int
    state_bytes: int


@dataclass(frozen=True)
class RunSummary:
    """Counts since a run started, `rate` of the last minute, and how it stands after its last trigger.

    `lag` are ticks from the watermark to the latest event; `behind` is how many events ago the oldest one came that a
    match still waits for; `waiting` how much is kept that may still become part of a match.
    """

    started: float | None = None
    uptime: float = 0.0
    events: int = 0
    matches: int = 0
    late: int = 0
    unreadable: int = 0
    triggers: int = 0
    busy: float = 0.0
    rate: float = 0.0
    lag: int | None = None
    held: int = 0
    waiting: int = 0
    behind: int = 0
    state_bytes: int = 0
    queries: list[QueryInfo] = field(default_factory=list)
    operators: list[OperatorInfo] = field(default_factory=list)
    lanes: list[LaneInfo] = field(default_factory=list)


@dataclass(frozen=True)
class RunInfo:
    """A program that runs, or ran: `where` is `here` (in this process) or `spark`; `change` is the last one."""

    name: str
    where: str
    state: str
    summary: RunSummary
    problem: str | None = None
    change: ProgramChange | None = None


@dataclass(frozen=True)
class Point:
    """The triggers of some seconds of the last hour: when they ended, and how many seconds `ago` before the last."""

    at: float
    ago: float
    rate: float
    matches: float
    late: int
    lag: int | None
    waiting: int
    behind: int
    state_bytes: int


@dataclass(frozen=True)
class RunDetail:
    """A run with its last hour and the end of its log.

    `funnels`: how many partial matches reached each step; `matches`: the newest ones, newest first, or `sink` says
    where they go instead; `busy`: the share of the last minute that triggers took.
    """

    info: RunInfo
    funnels: dict[str, list[tuple[str, int]]]
    history: list[Point]
    log: list[str]
    matches: list[FoundMatch] = field(default_factory=list)
    checkpoint: CheckpointInfo | None = None
    busy: float = 0.0
    sink: str = ""
    replayed: tuple[int, int] | None = None  # of a replay: events that it has given, and all of them


def summary_of(told: Mapping[str, Any], uptime: float | None = None) -> RunSummary:
    """From what a run says of itself."""
    last = told.get("last_trigger") or {}
    counts = {name: int(told.get(name) or 0) for name in ("events", "matches", "late", "unreadable", "triggers")}
    stands = {name: int(last.get(name) or 0) for name in ("held", "waiting", "behind", "state_bytes")}
    queries = told.get("queries") or {}
    left_out: dict[str, tuple[str, ...]] = {}
    for one in by_query(told.get("left_out") or {}, queries):
        left_out[one.query] = (*left_out.get(one.query, ()), str(one))
    return RunSummary(
        started=told.get("started"),
        uptime=float(told.get("uptime") or 0.0) if uptime is None else uptime,
        busy=float(told.get("busy") or 0.0),
        rate=float(told.get("rate") or 0.0),
        lag=last.get("lag"),
        queries=[
            QueryInfo(name, own["matches"], own.get("last"), own.get("silent_for"), left_out.get(name, ()))
            for name, own in queries.items()
        ],
        operators=[OperatorInfo(**one) for one in told.get("operators") or ()],
        lanes=_lanes(last.get("lanes") or ()),
        **counts,
        **stands,
    )


def _lanes(lanes: Sequence[Mapping[str, Any]]) -> list[LaneInfo]:
    taken = sum(lane["taken"] for lane in lanes) or 1
    return [
        LaneInfo(
            lane["lane"],
            lane["taken"],
            lane["taken"] / taken,
            lane["held"],
            sum(operator[3] for operator in lane.get("operators", ())),
            lane["behind"],
            lane["state_bytes"],
        )
        for lane in lanes
    ]


def last_hour(triggers: Sequence[Mapping[str, Any]]) -> list[Point]:
    """The triggers of the last hour, those of the same seconds put together so that there are not too many."""
    if not triggers:
        return []
    now = triggers[-1]["at"]
    recent = [trigger for trigger in triggers if trigger["at"] > now - HOUR]
    width = max((now - recent[0]["at"]) / POINTS, 0.001)
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for trigger in recent:
        groups.setdefault(int((now - trigger["at"]) / width), []).append(trigger)
    ordered = [groups[number] for number in sorted(groups, reverse=True)]
    # Nothing tells how long events came in before the first trigger: as long as before the next, not only as it worked.
    pause = ordered[1][-1]["at"] - ordered[0][-1]["at"] if len(ordered) > 1 else 1.0
    begun = recent[0]["at"] - max(recent[0].get("seconds", 0.0), pause)
    points: list[Point] = []
    for group in ordered:
        points.append(_point(group, now, max(group[-1]["at"] - begun, 0.001)))
        begun = group[-1]["at"]
    return points


def _point(group: Sequence[Mapping[str, Any]], now: float, seconds: float) -> Point:
    last = group[-1]
    return Point(
        at=last["at"],
        ago=now - last["at"],
        rate=sum(trigger["events"] for trigger in group) / seconds,
        matches=sum(sum(trigger["matches"].values()) for trigger in group) / seconds,
        late=sum(trigger["late"] for trigger in group),
        lag=last.get("lag"),
        waiting=last.get("waiting", 0),
        behind=last.get("behind", 0),
        state_bytes=last.get("state_bytes", 0),
    )
