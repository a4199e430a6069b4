"""What Spark says of the machines that runs use: executors, cores, memory, tasks; and this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.running.registry import Entry


@dataclass(frozen=True)
class Executor:
    """One process of Spark's that runs tasks; memory in bytes."""

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
    """Executors of all runs that go on; the runs that have said nothing of theirs; and this machine."""

    executors: list[Executor] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    cores: int = 0
    load: float = 0.0
    memory: int = 0
    memory_free: int = 0


def overview(entries: Sequence[Entry]) -> Overview:
    """What runs that go on have registered of their executors."""
    executors: list[Executor] = []
    unknown: list[str] = []
    for entry in (entry for entry in entries if entry.is_running):
        told = entry.about.get("executors")
        if told:
            executors += [_executor(entry.name, one) for one in told]
        else:
            unknown.append(entry.name)
    return Overview(executors, unknown, os.cpu_count() or 1, os.getloadavg()[0], *_memory())


def _executor(run: str, told: Mapping[str, Any]) -> Executor:
    numbers = ("cores", "memory_used", "memory", "active_tasks", "completed_tasks", "failed_tasks")
    return Executor(run, str(told.get("id", "")), str(told.get("host", "")), *(int(told.get(n) or 0) for n in numbers))


def _memory() -> tuple[int, int]:
    """Return the total memory and what processes can still get of it, in bytes, or zeros where unknown."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        total, unused = page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0, 0
    return total, _available() or unused


def _available() -> int:
    """Return the unused memory and what the system's cache of files would give up, where Linux says so; else 0."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)
