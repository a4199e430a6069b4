"""State cut into pages: what only grows is written as it grows, the rest where it differs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from weft.runtime.events import Int64s
from weft.runtime.state.pages import PageStore

ITEMS = 1024  # on a page: numbers, texts or events

Array = npt.NDArray[Any]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Growing:
    """A part of the state that is only added to: items `first` to `count`, and how some of them become bytes."""

    name: str
    first: int
    count: int
    content: Callable[[int, int], bytes]

    def page(self, number: int) -> bytes:
        """The items whose numbers belong to a page."""
        return self.content(max(number * ITEMS, self.first), min((number + 1) * ITEMS, self.count))


def text_pages(name: str, texts: Sequence[str]) -> dict[str, bytes]:
    """Texts as small parts of a state."""
    return {
        f"{name}/{low // ITEMS}": json.dumps(texts[low : low + ITEMS]).encode() for low in range(0, len(texts), ITEMS)
    }


def growing_array(name: str, array: Array) -> Growing:
    """An array that is only added to."""
    return Growing(name, 0, len(array), lambda low, high: array[low:high].tobytes())


class Paging:
    """Tells which pages of a state changed since they were given out last."""

    def __init__(self) -> None:
        self._store = PageStore()
        self._saved: dict[str, int] = {}  # of what grows, how much was given out

    def changes(
        self, small: Mapping[str, bytes], arrays: Iterable[tuple[str, Array]], growing: Iterable[Growing] = ()
    ) -> dict[str, bytes | None]:
        """The changed pages of a state: small parts as they are, arrays that change anywhere, and what grows."""
        pages, kept = dict(small), []
        for name, array in arrays:
            for number in range(0, len(array), ITEMS):
                pages[f"{name}/{number // ITEMS}"] = array[number : number + ITEMS].tobytes()
        for part in growing:
            saved = self._saved.get(part.name, 0)
            for number in range(part.first // ITEMS, -(-part.count // ITEMS)):
                if (number + 1) * ITEMS <= saved:
                    kept.append(f"{part.name}/{number}")
                else:
                    pages[f"{part.name}/{number}"] = part.page(number)
            self._saved[part.name] = part.count
        return self._store.changes(pages.items(), kept)

    def renumbered(self) -> None:
        """What grew has changed, and must be looked at again."""
        self._saved.clear()

    def load(self, pages: Mapping[str, bytes], growing: Iterable[Growing] = ()) -> None:
        """Take pages, and what they say of what grows, as given out."""
        self._store.load(pages)
        self._saved = {part.name: part.count for part in growing}


class Pages:
    """Reads what was cut into pages."""

    def __init__(self, pages: Mapping[str, bytes]) -> None:
        self._pages = pages
        self._names: dict[str, list[str]] = {}
        for name in pages:
            self._names.setdefault(name.rpartition("/")[0], []).append(name)

    def contents(self, name: str) -> Iterable[bytes]:
        """The pages of a part, in their order."""
        names = sorted(self._names.get(name, ()), key=lambda page: int(page.rpartition("/")[2]))
        return (self._pages[page] for page in names)

    def numbers(self, name: str) -> Int64s:
        """An array of whole numbers, to be written to."""
        return self.array(name, np.int64)

    def array(self, name: str, dtype: type[Number]) -> npt.NDArray[Number]:
        """An array of numbers of a kind, to be written to."""
        return np.frombuffer(bytearray(b"".join(self.contents(name))), dtype)

    def texts(self, name: str) -> list[str]:
        """Texts, page after page of them as JSON."""
        return [text for page in self.contents(name) for text in json.loads(page)]
