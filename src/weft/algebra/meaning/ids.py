"""The id of a match: 128 bits made of its query, interval, positions and variables, in plain arithmetic."""

from __future__ import annotations

import hashlib
import json

from weft.algebra.definition import Definition
from weft.algebra.meaning.match import Match

WORD = 2**64
STEPS = (0x9E3779B97F4A7C15, 0xD1342543DE82EF95)


def id_of(query: Definition, match: Match) -> str:
    """The id, as 32 hexadecimal digits."""
    words = [match.first, match.last, len(match.positions)]
    for position in match.positions:
        names = sorted(name for name, positions in match.bindings.items() if position in positions)
        words += [position, _words_of(*names)[0]]
    return "".join(
        f"{_mixed(seed, step, words):016x}" for seed, step in zip(_words_of(*query.origin), STEPS, strict=True)
    )


def _mixed(state: int, step: int, words: list[int]) -> int:
    for word in words:
        state = _finalised((state * step + word) % WORD)
    return state


def _finalised(word: int) -> int:
    """The finaliser of SplitMix64."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def _words_of(*parts: str | int) -> tuple[int, int]:
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
