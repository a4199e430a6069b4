"""State in named pages of bytes; a snapshot contains the pages that changed.

Growing parts are written as they grow, other parts where they differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from weft.errors import UsageError
from weft.runtime.data.events import Int64s

FORMAT = 4  # of all pages: another number for another layout, which this one cannot read
FOREIGN = "the saved state belongs to another program or version: start with a new checkpoint"
ITEMS = 1024  # on a page: numbers, texts or events
WORTH_FORGETTING = 64  # events: before so many are saved, those that do not matter any more are given up

Array = npt.NDArray[Any]
Number = TypeVar("Number", bound=np.generic)
AnyPage = TypeVar("AnyPage", bytes, bytes | None)


@dataclass(frozen=True)
class Growing:
    """A growing part of the state: items `first` to `count`, and how to encode a range of them as bytes."""

    name: str
    first: int
    count: int
    content: Callable[[int, int], bytes]

    def page(self, number: int) -> bytes:
        """Return the items whose numbers belong to a page."""
        return self.content(max(number * ITEMS, self.first), min((number + 1) * ITEMS, self.count))


def text_pages(name: str, texts: Sequence[str]) -> dict[str, bytes]:
    """Encode texts as small parts of a state."""
    return {
        f"{name}/{low // ITEMS}": json.dumps(texts[low : low + ITEMS]).encode() for low in range(0, len(texts), ITEMS)
    }


def by_page(items: Int64s) -> Iterable[tuple[int, Int64s]]:
    """Group items, whose first column has ascending numbers, by page."""
    pages, begins = np.unique(items[:, 0] // ITEMS, return_index=True)
    return zip(pages.tolist(), np.split(items, begins[1:]), strict=False)


def growing_array(name: str, array: Array) -> Growing:
    """Describe an array that is only appended to."""
    return Growing(name, 0, len(array), lambda low, high: array[low:high].tobytes())


class Paging:
    """Tracks the written pages, to find those that changed since."""

    def __init__(self) -> None:
        self._digests: dict[str, bytes] = {}
        self._saved: dict[str, int] = {}  # of what grows, how much was given out

    def changes(
        self,
        small: Mapping[str, bytes],
        arrays: Iterable[tuple[str, Array]] = (),
        growing: Iterable[Growing] = (),
        kept: Iterable[str] = (),
    ) -> dict[str, bytes | None]:
        """Return the changed pages of a state, or None for deleted ones.

        Small parts are compared as a whole, arrays may change anywhere, and growing parts only at the end. `kept` are
        unchanged pages.
        """
        pages, digests = dict(small), {name: self._digests[name] for name in kept}
        for name, array in arrays:
            for number in range(0, len(array), ITEMS):
                pages[f"{name}/{number // ITEMS}"] = array[number : number + ITEMS].tobytes()
        for part in growing:
            saved = self._saved.get(part.name, 0)
            for number in range(part.first // ITEMS, -(-part.count // ITEMS)):
                page = f"{part.name}/{number}"
                if (number + 1) * ITEMS <= saved:
                    digests[page] = self._digests[page]
                else:
                    pages[page] = part.page(number)
            self._saved[part.name] = part.count
        digests |= {name: _digest(page) for name, page in pages.items()}
        changed: dict[str, bytes | None] = {
            name: page for name, page in pages.items() if self._digests.get(name) != digests[name]
        }
        changed.update(dict.fromkeys(self._digests.keys() - digests.keys()))
        self._digests = digests
        return changed

    def renumbered(self) -> None:
        """Mark growing parts as changed, so that they are compared again."""
        self._saved.clear()

    def load(self, pages: Mapping[str, bytes], growing: Iterable[Growing] = ()) -> None:
        """Mark pages as written, including those of growing parts."""
        self._digests = {name: _digest(page) for name, page in pages.items()}
        has_pages = (part for part in growing if f"{part.name}/{part.first // ITEMS}" in pages)
        self._saved = {part.name: part.count for part in has_pages}


def _digest(page: bytes) -> bytes:
    return hashlib.blake2b(page, digest_size=12).digest()


class Pages:
    """Reads a state that was split into pages."""

    def __init__(self, pages: Mapping[str, bytes]) -> None:
        self._pages = pages
        self._names: dict[str, list[str]] = {}
        for name in pages:
            self._names.setdefault(name.rpartition("/")[0], []).append(name)

    def numbered(self, name: str) -> list[tuple[int, bytes]]:
        """Return the pages of a part in order, each with the number of its first possible item."""
        found = {page.rpartition("/")[2]: self._pages[page] for page in self._names.get(name, ())}
        if not all(map(str.isdigit, found)):
            raise UsageError(FOREIGN)
        return sorted((int(number) * ITEMS, page) for number, page in found.items())

    def contents(self, name: str) -> list[bytes]:
        """Return the pages of a part in order."""
        return [page for _, page in self.numbered(name)]

    def numbers(self, name: str) -> Int64s:
        """Return a writable array of integers."""
        return self.array(name, np.int64)

    def array(self, name: str, dtype: type[Number]) -> npt.NDArray[Number]:
        """Return a writable array of numbers of a kind."""
        return np.frombuffer(bytearray(b"".join(self.contents(name))), dtype)

    def texts(self, name: str) -> list[str]:
        """Return texts from their JSON pages."""
        return [text for page in self.contents(name) for text in json.loads(page)]


def pages_under(prefix: str, pages: Mapping[str, AnyPage]) -> dict[str, AnyPage]:
    """Add a prefix to the names of pages."""
    return {prefix + name: page for name, page in pages.items()}


def pages_below(prefix: str, pages: Mapping[str, AnyPage]) -> dict[str, AnyPage]:
    """Select the pages whose names have the prefix, and remove it."""
    return {name[len(prefix) :]: page for name, page in pages.items() if name.startswith(prefix)}
