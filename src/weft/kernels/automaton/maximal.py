"""MAX: the matches that end at one event whose positions are not strictly contained in another's."""

from __future__ import annotations

from weft.kernels.automaton.enumerate import OPEN
from weft.kernels.automaton.tecs import (
    COUNTED,
    CURRENT,
    EMITTED,
    FINAL,
    GROUP,
    OUT_MATCHES,
    OUT_POSITIONS,
    STACK,
    Int64s,
    Output,
)
from weft.kernels.jit import device_no_refcount


@device_no_refcount
def begin_again(output: Output, control: Int64s) -> None:
    """Discard the matches of the current event, since there is no space for all of them."""
    matches = control[GROUP]
    control[COUNTED] -= control[OUT_MATCHES] - matches
    control[OUT_MATCHES], control[OUT_POSITIONS] = matches, output.offsets[matches]
    control[FINAL], control[STACK], control[CURRENT], control[EMITTED] = 0, 0, OPEN, 0


@device_no_refcount
def _is_within(output: Output, one: int, other: int) -> bool:
    """Whether the positions of a match, ascending, are a proper subset of those of another one."""
    at, end = output.offsets[one], output.offsets[one + 1]
    there, stop = output.offsets[other], output.offsets[other + 1]
    if end - at >= stop - there:
        return False
    while at < end and there < stop:
        if output.positions[at] == output.positions[there]:
            at += 1
        there += 1
    return bool(at == end)


@device_no_refcount
def keep_maximal(output: Output, control: Int64s) -> None:
    """Drop the matches of the current event that are strictly contained in another of them."""
    begin, end = control[GROUP], control[OUT_MATCHES]
    if end - begin < 2:
        return
    for match in range(begin, end):  # `firsts` of dropped matches is negative until all are compared
        for other in range(begin, end):
            if _is_within(output, match, other):
                output.firsts[match] = -1
                break
    to, used = begin, output.offsets[begin]
    for match in range(begin, end):
        if output.firsts[match] < 0:
            continue
        output.events[to], output.firsts[to] = output.events[match], output.firsts[match]
        output.starts[to] = output.starts[match]
        low, high = output.offsets[match], output.offsets[match + 1]
        for k in range(low, high):
            output.positions[used], output.labels[used] = output.positions[k], output.labels[k]
            used += 1
        to += 1
        output.offsets[to] = used
    control[COUNTED] -= end - to
    control[OUT_MATCHES], control[OUT_POSITIONS] = to, used
