"""What Spark says of the machines that runs use: executors, cores, memory, tasks; and this machine."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from weft.running.registry import Entry

PATIENCE = 2.0  # seconds for an answer
LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class Executor:
    """One process of Spark's that runs tasks."""

    run: str
    id: str
    host: str
    cores: int
    memory_used: int
    memory: int
    active_tasks: int
    completed_tasks: int
    failed_tasks: int


@dataclass(frozen=True)
class Overview:
    """Executors of all runs whose Spark can be asked; the runs whose Spark cannot; and this machine."""

    executors: list[Executor] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    cores: int = 0
    load: float = 0.0


def overview(entries: Sequence[Entry]) -> Overview:
    """Ask the Spark of each run that goes on."""
    executors: list[Executor] = []
    unknown: list[str] = []
    for entry in (entry for entry in entries if entry.is_running):
        address = entry.about.get("spark_ui")
        found = None if address is None else _executors(entry.name, str(address))
        if found is None:
            unknown.append(entry.name)
        else:
            executors += found
    return Overview(executors, unknown, os.cpu_count() or 1, os.getloadavg()[0])


def _executors(run: str, address: str) -> list[Executor] | None:
    """From Spark's own interface, which is asked on this machine only."""
    if urlsplit(address).hostname not in LOCAL:
        return None
    try:
        (application, *_) = _asked(f"{address}/api/v1/applications")
        found = _asked(f"{address}/api/v1/applications/{application['id']}/executors")
    except (OSError, ValueError, KeyError, urllib.error.URLError):
        return None
    return [
        Executor(
            run,
            str(one["id"]),
            str(one["hostPort"]),
            int(one["totalCores"]),
            int(one["memoryUsed"]),
            int(one["maxMemory"]),
            int(one["activeTasks"]),
            int(one["completedTasks"]),
            int(one["failedTasks"]),
        )
        for one in found
    ]


def _asked(address: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        found = json.load(answer)
    if not isinstance(found, list):
        raise ValueError("not a list")
    return found
