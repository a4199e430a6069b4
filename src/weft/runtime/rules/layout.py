"""What is kept of events: numbers for types, for the attributes of each that rules read, and for keys they join by.

Numbers only grow: rules that are added later change none that were given before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weft.kernels import rule_tables as t
from weft.runtime.events import Int64s


@dataclass
class Kept:
    """What is kept of the events of one type."""

    columns: dict[str, int] = field(default_factory=dict)
    chains: dict[tuple[int, ...], int] = field(default_factory=dict)  # by the columns of the key: the chain's id
    marks: dict[tuple[int, int], int] = field(default_factory=dict)  # by the rule and its step that consumes them


class Layout:
    """Numbers by name."""

    def __init__(self) -> None:
        self.types: dict[str, int] = {}
        self.kept: list[Kept] = []
        self.attributes: dict[str, int] = {}  # of all types: the columns of a batch
        self._chains = 0

    def type(self, name: str) -> int:
        """The number of a type."""
        number = self.types.setdefault(name, len(self.types))
        if number == len(self.kept):
            self.kept.append(Kept())
        return number

    def column(self, type_: int, attribute: str) -> int:
        """The number of an attribute among those that are kept of a type."""
        self.attributes.setdefault(attribute, len(self.attributes))
        columns = self.kept[type_].columns
        return columns.setdefault(attribute, len(columns))

    def chain(self, type_: int, columns: tuple[int, ...]) -> int:
        """The number of the chain of a type's events by a key."""
        chains = self.kept[type_].chains
        if columns not in chains:
            chains[columns] = self._chains
            self._chains += 1
        return chains[columns]

    def mark(self, type_: int, step: tuple[int, int]) -> int:
        """The mark of the events of a type that a step consumes."""
        marks = self.kept[type_].marks
        return marks.setdefault(step, len(marks))

    @property
    def mark_words(self) -> int:
        """Words for the marks of an event of any type: those that count, and as many for those that are about to."""
        return 2 * max((-(-len(kept.marks) // 64) for kept in self.kept), default=0)

    @property
    def width(self) -> int:
        """Words for the values of an event of any type."""
        return 2 * max((len(kept.columns) for kept in self.kept), default=0)

    def lay(self, types: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Write down for each type where its columns and chains are; these: columns, chains, columns of chains."""
        columns: list[int] = []
        chains: list[int] = []
        chain_columns: list[int] = []
        table = types.reshape(-1, t.KIND_OF_EVENT)
        for number, kept in enumerate(self.kept):
            table[number, t.COLUMNS_AT] = len(columns)
            columns += [self.attributes[name] for name in kept.columns]
            table[number, t.COLUMNS_END] = len(columns)
            table[number, t.CHAINS_AT] = len(chains) // t.CHAIN
            for key, id_ in kept.chains.items():
                chains += [id_, len(chain_columns), len(chain_columns) + len(key)]
                chain_columns += key
            table[number, t.CHAINS_END] = len(chains) // t.CHAIN
        return np.array(columns, np.int64), np.array(chains, np.int64), np.array(chain_columns, np.int64)
