"""URIs of sources and sinks: `scheme:place?option=value`, as users and programs write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

_SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):(?P<rest>.*)", re.DOTALL)
LOCAL = frozenset({"file", "folder", "python", "delta"})  # schemes that need no `//`
TYPE = "type"  # the option that every source has


@dataclass(frozen=True)
class Uri:
    """A parsed URI. `place` is the part between the scheme and the options, without leading slashes."""

    text: str
    scheme: str
    place: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def type(self) -> str | None:
        """The type of events that have none, from `?type=NAME`."""
        return self.options.get(TYPE)

    @property
    def host(self) -> str:
        """The host of `HOST:PORT/PATH`; brackets of an IPv6 address are left out."""
        return self.place.partition("/")[0].rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int | None:
        """The port of `HOST:PORT/PATH`; None if there is none, or it is no number."""
        digits = self.place.partition("/")[0].rpartition(":")[2]
        return int(digits) if digits.isascii() and digits.isdigit() and int(digits) < 1 << 16 else None

    @property
    def path(self) -> str:
        """What follows `HOST:PORT/`."""
        return self.place.partition("/")[2]

    def __str__(self) -> str:
        return self.text


def as_uri(text: str | Path) -> Uri | None:
    """The URI that a text is, or None for a plain path. A file that has such a name is a file."""
    if isinstance(text, Path):
        return None
    found = _SCHEME.fullmatch(text)
    if found is None or not (found["rest"].startswith("//") or found["scheme"] in LOCAL) or _is_there(text):
        return None
    rest, _, query = found["rest"].partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    return Uri(text, found["scheme"], rest.removeprefix("//"), options)


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False
