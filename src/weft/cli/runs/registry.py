"""`weft list`, `weft show` and `weft stop`: the runs on this machine that have a name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

import typer

from weft.cli.console import say, say_json
from weft.errors import UsageError, plural
from weft.running import registry
from weft.runtime.watching.left_out import WAYS, by_query

Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name, as given to `weft run --name`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def list_runs(as_json: AsJson = False) -> None:
    """List the runs that have a name: their state, uptime and counts."""
    found = registry.entries()
    if as_json:
        say_json([entry.to_json() for entry in found], indent=2)
        return
    if not found:
        say("no runs: start one with `weft run … --name NAME --detach`", err=True)
        return
    rows: list[tuple[str, ...]] = [("NAME", "STATE", "UPTIME", "EVENTS", "MATCHES", "LATE", "UNREADABLE")]
    for entry in found:
        counts = [f"{entry.status.get(key, 0):,}" for key in ("events", "matches", "late", "unreadable")]
        rows.append((entry.name, entry.state, uptime(entry), *counts))
    widths = [max(len(row[column]) for row in rows) for column in range(7)]
    for row in rows:
        say("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())


def show(name: Name, as_json: AsJson = False, log: Annotated[int, typer.Option(help="Lines of the log.")] = 5) -> None:
    """Show a run: what it runs, what it did, the matches of each query, and the end of its log."""
    entry = registry.entry(name)
    if as_json:
        say_json({**entry.to_json(), "history": entry.history()}, indent=2)
        return
    about, status = entry.about, entry.status
    lines: dict[str, Any] = {
        "state": entry.state,
        "process": about.get("pid"),
        "uptime": uptime(entry),
        "programs": ", ".join(about.get("programs", ())),
        "sources": ", ".join(about.get("sources", ())),
        "sink": about.get("sink"),
        "checkpoint": about.get("checkpoint"),
        "listens": about.get("listen"),
        **{key: f"{status.get(key, 0):,}" for key in ("triggers", "events", "matches", "late", "unreadable")},
        **{WAYS[way][1]: f"{status[way]:,}" for way in WAYS if status.get(way)},
    }
    last = status.get("last_trigger") or {}
    lines |= {
        key.replace("_", " "): last.get(key) for key in ("seconds", "lag", "held", "waiting", "behind", "state_bytes")
    }
    lines["problem"] = status.get("problem")
    shown = {key: value for key, value in lines.items() if value not in (None, "")}
    for key, value in shown.items():
        say(f"{key:<12} {round(value, 3) if isinstance(value, float) else value}")
    for query in status.get("queries") or ():
        say(query_line(query, about, status))
    for one in status.get("operators") or ():
        say(f"  {one['name']}: {one['received']:,} received, {one['emitted']:,} emitted, {one['waiting']:,} waiting")
    for type_, figure in (status.get("statistics") or {}).get("rates", {}).items():
        say(f"  {type_}: {figure['value']:,.4g} a second")
    if entry.log.exists():
        for line in entry.log.read_text(encoding="utf-8", errors="replace").splitlines()[-log:] if log else ():
            say(f"| {line}")


def query_line(query: str, about: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """What a query found, how far partial matches came, what limits left out of it, and whether it fell silent."""
    own = status["queries"][query]
    steps = (about.get("steps") or {}).get(query, ())
    reached = [f"{step} {(status.get('steps') or {}).get(part, 0):,}" for step, part in steps]
    left_out = by_query(status.get("left_out") or {}, status["queries"])
    told = [*reached, plural(own["matches"], "match", "matches"), *(str(one) for one in left_out if one.query == query)]
    silence = own.get("silent_for")
    doubt = f"  silent for {timedelta(seconds=int(silence))}, longer than ever before" if silence else ""
    return f"  {query}: {', '.join(told)}{doubt}"


def stop(name: Name) -> None:
    """Stop a run after the trigger in progress. Started again with its checkpoint, it resumes where it stopped."""
    if not registry.stop(name):
        raise UsageError(f"{name} is still busy; it ends when its trigger is done, or try again")
    say(f"{name} has ended")


def uptime(entry: registry.Entry) -> str:
    """How long a run has been going, or went on."""
    started = entry.about.get("started")
    if started is None:
        return "-"
    end = time.time() if entry.is_running else entry.status.get("ended", started)
    return str(timedelta(seconds=max(0, int(end - started))))
