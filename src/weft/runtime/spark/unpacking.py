"""What a worker keeps of the work that it was sent: many tasks of one query get the same."""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import Any

_KEPT = 8


@lru_cache(maxsize=_KEPT)
def unpacked(packed: bytes) -> Any:
    """The value in some bytes; equal bytes give the same value again, with what it has worked out meanwhile."""
    return pickle.loads(packed)
