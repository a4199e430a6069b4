"""Arrays of whole numbers as pages of bytes, so that only pages that changed are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from weft.runtime.events import Int64s

PAGE = 1 << 16  # bytes


def array_pages(arrays: Mapping[str, Int64s]) -> Iterator[tuple[str, bytes]]:
    """The pages of arrays: `name/number`."""
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).view(np.uint8)
        for begin in range(0, max(len(content), 1), PAGE):
            yield f"{name}/{begin // PAGE}", content[begin : begin + PAGE].tobytes()


def read_arrays(pages: Mapping[str, bytes]) -> dict[str, Int64s]:
    """The arrays that pages were made of, to be written to."""
    parts: dict[str, dict[int, bytes]] = {}
    for page, content in pages.items():
        name, slash, number = page.rpartition("/")
        if slash:
            parts.setdefault(name, {})[int(number)] = content
    return {
        name: np.frombuffer(bytearray(b"".join(part for _, part in sorted(own.items()))), np.int64)
        for name, own in parts.items()
    }
