"""Programs that nobody wrote: our own, mutated, and random bytes. Whatever they are, weft compiles or refuses them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

TESTS = Path(__file__).parents[1]
_TOKENS = re.compile(r"\w+|\s+|[^\w\s]")
_MARKS = ("", "0", "-1", "1e999", "9" * 25, ".5", *"'\"`()[]{};:|\\@!+*/%", "$x", "=>", "--", "/*", "*/", "//", "\n")
_HOSTILE = ("\x00", "\x1b[31m", "é", "\u202e", "0 ms")
_WORDS = ("NOT", "AND", "OR", "WITHIN", "NULL", "TRUE", "FILTER", "WHERE", "FROM", "SELECT", "AS")
_NAMES = ("define", "from", "within", "prev", "len", "dur", "A", "a.x")
_ODD = (*_MARKS, *_HOSTILE, *_WORDS, *_NAMES)


@cache
def known_programs() -> tuple[tuple[str, str], ...]:
    """The language and text of every program in our cases."""
    found = []
    for path in sorted((TESTS / "vectors_own").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            text = case.get("program") or case.get("query") or case.get("sql")
            if isinstance(text, str):
                found.append(("sql" if "sql" in case else path.stem, text))
    return tuple(dict.fromkeys(found))


def programs(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """So many languages and texts."""
    chance = Random(seed)
    known = known_programs()
    for _ in range(count):
        language, text = chance.choice(known)
        if chance.random() < 0.05:
            yield language, chance.randbytes(chance.randrange(60)).decode("latin-1")
        else:
            yield language, mutated(chance, text, chance.choice(known)[1])


def mutated(chance: Random, text: str, other: str) -> str:
    """The text with a few tokens left out, doubled, swapped, replaced by odd ones, or by those of another text."""
    tokens, spare = _TOKENS.findall(text), _TOKENS.findall(other)
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        at = chance.randrange(len(tokens) + 1)
        end = min(len(tokens), at + chance.choice((1, 1, 1, 3, 10)))
        match chance.randrange(6):
            case 0:
                del tokens[at:end]
            case 1:
                tokens[at:at] = tokens[at:end] * chance.choice((1, 1, 30))
            case 2:
                tokens[at:end] = reversed(tokens[at:end])
            case 3:
                tokens[at:end] = [chance.choice(_ODD)]
            case 4:
                tokens.insert(at, chance.choice(_ODD))
            case _:
                begin = chance.randrange(len(spare))
                tokens[at:end] = spare[begin : begin + chance.randrange(12)]
    return "".join(tokens)
