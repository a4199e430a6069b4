"""Stream order (end, start, rank of the source, arrival) by radix sort: linear for any number of sorted runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel, device_no_refcount, kernel
from weft.kernels.signatures import Read

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

WORD = 64  # bits
FEW = 4096  # events below which counting few buckets is worth more passes


@device_no_refcount
def _bits(value: int | np.uint64) -> int:
    """Return the number of bits of a number."""
    bits = 0
    rest = np.uint64(value)
    while rest:
        rest >>= np.uint64(1)
        bits += 1
    return bits


@kernel
def words_of(
    ends: Read[Int64s], starts: Read[Int64s], ranks: Int64s, begins: Int64s, stops: Int64s
) -> tuple[UInt64s, int, int]:
    """Encode events in ranges of places as words whose order is stream order.

    Return the words, how many of their last bits are the event's place, and how many bits they have. Of two events with
    equal end the shorter starts later, so a word has the end, the difference to the longest length, the rank (`ranks`
    may be empty) and the place. There are no words if they would be too long.
    """
    low, high = ends[begins[0]], ends[begins[0]]
    short, long = np.uint64(ends[begins[0]] - starts[begins[0]]), np.uint64(0)
    most, count = 0, 0
    for part in range(len(begins)):
        some_ends = ends[begins[part] : stops[part]]
        some_starts = starts[begins[part] : stops[part]]
        for at in range(len(some_ends)):
            low = min(low, some_ends[at])
            high = max(high, some_ends[at])
            span = np.uint64(some_ends[at] - some_starts[at])
            short = min(short, span)
            long = max(long, span)
        count += len(some_ends)
    for at in range(len(ranks)):
        most = max(most, ranks[at])
    place_bits = _bits(len(ends) - 1)
    rank_bits = _bits(most)
    span_bits = _bits(long - short)
    bits = place_bits + rank_bits + span_bits + _bits(high - low)
    if bits > WORD:
        return np.empty(0, np.uint64), place_bits, bits
    words = np.empty(count, np.uint64)
    filled = 0
    for part in range(len(begins)):
        first = begins[part]
        some_ends = ends[first : stops[part]]
        some_starts = starts[first : stops[part]]
        some_words = words[filled : filled + len(some_ends)]
        for at in range(len(some_ends)):
            more = long - np.uint64(some_ends[at] - some_starts[at])
            word = np.uint64(some_ends[at] - low) << np.uint64(span_bits) | more
            some_words[at] = word << np.uint64(rank_bits + place_bits) | np.uint64(first + at)
        if len(ranks):
            for at in range(len(some_ends)):
                some_words[at] |= np.uint64(ranks[first + at]) << np.uint64(place_bits)
        filled += len(some_ends)
    return words, place_bits, bits


@kernel
def order_of(words: UInt64s, place_bits: int, bits: int) -> Int64s:
    """Return the places in the order of their words, by radix sort; `words` is overwritten."""
    count = len(words)
    width = 8 if count < FEW else 11
    mask = np.uint64((1 << width) - 1)
    other = np.empty(count, np.uint64)
    for shift in range(place_bits, bits, width):
        buckets = np.zeros((1 << width) + 1, np.int64)
        for at in range(count):
            buckets[np.int64(words[at] >> np.uint64(shift) & mask) + 1] += 1
        for digit in range(1 << width):
            buckets[digit + 1] += buckets[digit]
        for at in range(count):
            bucket = np.int64(words[at] >> np.uint64(shift) & mask)
            other[buckets[bucket]] = words[at]
            buckets[bucket] += 1
        words, other = other, words
    order = np.empty(count, np.int64)
    places = np.uint64((1 << place_bits) - 1)
    for at in range(count):
        order[at] = np.int64(words[at] & places)
    return order


@bare_kernel
def pass_of(ends: Read[Int64s], passed: int, delay: int) -> tuple[int, int, bool]:
    """Compute how a batch advances the front of its source.

    Return the new front, how many events arrived after the front had passed them, and whether ends ascend.
    """
    late = 0
    ascending = True
    for at in range(1, len(ends)):
        ascending &= ends[at - 1] <= ends[at]
    if ascending:
        while late < len(ends) and ends[late] < passed:
            late += 1
        return max(passed, ends[-1] - delay), late, True
    for at in range(len(ends)):
        late += ends[at] < passed
        passed = max(passed, ends[at] - delay)
    return passed, late, False
