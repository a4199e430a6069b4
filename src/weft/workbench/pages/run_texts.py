"""What is said of a run, as texts: its counts, its queries, its checkpoint, whether it keeps up, and its matches."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from weft.errors import plural
from weft.running.changing import ProgramChange
from weft.workbench.following import CheckpointInfo, FoundMatch
from weft.workbench.run_info import LaneInfo, OperatorInfo, QueryInfo, RunDetail, RunInfo

BEHIND = 0.9  # busy for a larger share of the time than this, a run does not keep up with its input
MOST_FIELDS = 8  # of a match


def run_row(run: RunInfo) -> dict[str, Any]:
    """A run as texts, by name of the reading."""
    summary = run.summary
    counts = {name: f"{getattr(summary, name):,}" for name in ("events", "matches", "late", "unreadable", "waiting")}
    return {
        "name": run.name,
        "where": run.where,
        "state_of": run.state,
        "uptime": str(timedelta(seconds=int(summary.uptime))),
        "rate": f"{summary.rate:,.1f}",
        "lag": "–" if summary.lag is None else f"{summary.lag:,}",
        "oldest": f"{summary.behind:,}",
        "state": size_text(summary.state_bytes),
        **counts,
    }


def query_text(query: QueryInfo) -> str:
    """Return the number of matches of a query, and of omitted ones."""
    last = "" if query.last is None else f", the last {_ago(query.last)} ago"
    return "; ".join([f"{plural(query.matches, 'match', 'matches')}{last}", *query.left_out])


def change_text(change: ProgramChange | None) -> str:
    """What became of the last change of a run's program."""
    if change is None:
        return ""
    what = "refused, and the previous program keeps running" if change.refused else "changed"
    return f"{what}, {_ago(change.at)} ago:\n{change.told}"


def size_text(count: int) -> str:
    """Bytes, readably."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} B"


def operator_row(one: OperatorInfo) -> dict[str, Any]:
    """Operators as texts."""
    return {"name": one.name, **{key: f"{getattr(one, key):,}" for key in ("received", "emitted", "waiting")}}


def lane_row(lane: LaneInfo) -> dict[str, Any]:
    """A lane as texts."""
    return {
        "lane": lane.lane,
        "events": f"{lane.taken:,}",
        "load": f"{lane.load:.0%}",
        "held": f"{lane.held:,}",
        "waiting": f"{lane.waiting:,}",
        "state": size_text(lane.state_bytes),
    }


def pressure_text(found: RunDetail) -> str:
    """Describe whether a run keeps up with its input, and its backlog."""
    held, is_here = found.info.summary.held, found.info.where == "here"
    parts = [f"{found.replayed[0]:,} of {plural(found.replayed[1], 'event')} replayed"] if found.replayed else []
    if found.info.state == "running":
        parts.append("input comes faster than it is matched" if found.busy > BEHIND else "it keeps up with its input")
    if held:
        parts.append(f"{plural(held, 'event')} {'due' if is_here else 'waiting for the watermark'}")
    return "; ".join(parts)


def checkpoint_text(checkpoint: CheckpointInfo | None) -> str:
    """Where a run keeps its progress, and how far it has committed."""
    if checkpoint is None:
        return ""
    if not checkpoint.is_here:
        return f"checkpoint {checkpoint.place}: it is not on this machine"
    if checkpoint.at is None:
        return f"checkpoint {checkpoint.place}: nothing is committed yet"
    told = f"trigger {checkpoint.trigger} committed {_ago(checkpoint.at)} ago, {size_text(checkpoint.size)}"
    return f"checkpoint {checkpoint.place}: {told}"


def match_row(number: int, match: FoundMatch) -> dict[str, Any]:
    """A match of a run as texts."""
    fields = list(match.event.items())
    shown = [f"{name}={value}" for name, value in fields[:MOST_FIELDS]] + ["…"] * (len(fields) > MOST_FIELDS)
    return {
        "number": number,
        "found_at": time.strftime("%H:%M:%S", time.localtime(match.at)),
        "query": match.query,
        "start": str(match.start),
        "end": str(match.end),
        "event": ", ".join(shown),
    }


def _ago(at: float) -> str:
    return str(timedelta(seconds=max(0, int(time.time() - at))))
