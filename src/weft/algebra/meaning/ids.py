"""The id of a match: 128 bits made of its query and of the identities of its events, in plain arithmetic.

An event's identity with respect to a query consists of its type, start, end, the values of its identity attributes
(those that the query mentions, or those of `key`), and its rank among the events that agree on all of these and on
what the query mentions.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence

from weft.algebra.analysis.feeding import feeders, mentioned_below
from weft.algebra.definition import Definition
from weft.algebra.meaning.match import Match
from weft.algebra.meaning.stream import Happening
from weft.algebra.meaning.values import attribute_of
from weft.algebra.meaning.words import SEED, WORD, canonical, hash_bytes, hash_key, hash_value

STEPS = (0x9E3779B97F4A7C15, 0xD1342543DE82EF95)
Identity = tuple[int, int, int, int]  # the hash of type and attributes, start, end, rank


class Ids:
    """The ids of the matches of a program over a stream."""

    def __init__(self, queries: Sequence[Definition], stream: Sequence[Happening], key: Sequence[str] = ()) -> None:
        self._queries = queries
        self._fed = [bool(own) for own in feeders(queries)]
        names = mentioned_below(queries)
        self._identities = [_identities(stream, own, tuple(key) or own) for own in names]

    def id_of(self, number: int, match: Match) -> str:
        """The id of a match of a query, as 32 hexadecimal digits."""
        known = self._identities[number]
        halves = []
        for half, seed in enumerate(_words_of(*self._queries[number].origin)):
            total = 0
            for position in match.positions:
                names = sorted(name for name, positions in match.bindings.items() if position in positions)
                total += _mixed(_of_event(known[position], half), half, [_words_of(*names)[0]])
            last = 0
            if match.key is not None:
                last = hash_key(value for _, value in match.key)
            elif match.ends_apart and not self._fed[number] and match.last not in match.positions:
                last = _of_event(known[match.last], half)
            words = [match.start, match.end, len(match.positions), total % WORD, last]
            halves.append(_mixed(seed, half, words))
        return "".join(f"{word:016x}" for word in halves)


def _identities(stream: Sequence[Happening], names: tuple[str, ...], key: tuple[str, ...]) -> list[Identity]:
    """The identity of each event of the input."""
    ranks: Counter[object] = Counter()
    found: list[Identity] = []
    for event in stream:
        values = [canonical(attribute_of(event.attributes, name)) for name in (*key, *names)]
        alike = (event.type, event.start, event.end, *values)
        word = hash_bytes((event.type or "").encode(), SEED)
        for name in sorted(key):
            word = hash_value(attribute_of(event.attributes, name), word)
        found.append((word, event.start, event.end, ranks[alike]))
        ranks[alike] += 1
    return found


def _of_event(identity: Identity, half: int) -> int:
    word, *others = identity
    return _mixed(word, half, others)


def _mixed(state: int, half: int, words: Sequence[int]) -> int:
    for word in words:
        state = _finalised((state * STEPS[half] + word) % WORD)
    return state


def _finalised(word: int) -> int:
    """The finaliser of SplitMix64."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def _words_of(*parts: str | int) -> tuple[int, int]:
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
