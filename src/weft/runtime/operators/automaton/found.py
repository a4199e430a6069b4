"""Matches in the form that the kernel writes, and its output buffers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.kernels.automaton import tecs
from weft.runtime.data.buffers import room
from weft.runtime.data.events import Int64s

MOST_MATCHES, MOST_POSITIONS = 1 << 15, 1 << 17  # in one piece, so that it fits into the processor's cache


@dataclass(frozen=True)
class Found:
    """Matches in the form that the kernel writes; `events` are indexes into the batch."""

    events: Int64s
    firsts: Int64s
    starts: Int64s
    offsets: Int64s
    positions: Int64s
    labels: npt.NDArray[np.int32]


def joined(parts: list[Found]) -> Found:
    """Concatenate several pieces."""
    if len(parts) == 1:
        return parts[0]
    offsets = [np.zeros(1, np.int64)]
    for part in parts:
        offsets.append(part.offsets[1:] + offsets[-1][-1])
    none = np.empty(0, np.int64)
    return Found(
        np.concatenate([part.events for part in parts] or [none]),
        np.concatenate([part.firsts for part in parts] or [none]),
        np.concatenate([part.starts for part in parts] or [none]),
        np.concatenate(offsets),
        np.concatenate([part.positions for part in parts] or [none]),
        np.concatenate([part.labels for part in parts] or [np.empty(0, np.int32)]),
    )


def take_output(output: tecs.Output, control: Int64s) -> tuple[Found, tecs.Output]:
    """Take the written matches, and return them with a buffer for further ones.

    A well-filled buffer is passed on and the next one is larger; otherwise its content is copied.
    """
    count, used = int(control[tecs.OUT_MATCHES]), int(control[tecs.OUT_POSITIONS])
    control[[tecs.OUT_MATCHES, tecs.OUT_POSITIONS, tecs.GROUP]] = 0
    matches, positions = len(output.events), len(output.positions)
    found = Found(
        output.events[:count],
        output.firsts[:count],
        output.starts[:count],
        output.offsets[: count + 1],
        output.positions[:used],
        output.labels[:used],
    )
    if 2 * count > matches or 2 * used > positions:
        most = max(positions, min(2 * positions, MOST_POSITIONS))
        return found, empty_output(min(2 * matches, MOST_MATCHES), most)
    return Found(*(part.copy() for part in vars(found).values())), output


def empty_output(matches: int, positions: int | None = None) -> tecs.Output:
    """Allocate buffers for `matches` matches, and `positions` positions or four per match."""
    most = positions or 4 * matches
    offsets = room(matches + 1, np.int64)
    offsets[0] = 0
    return tecs.Output(
        room(matches, np.int64),
        room(matches, np.int64),
        room(matches, np.int64),
        offsets,
        room(most, np.int64),
        room(most, np.int32),
    )
