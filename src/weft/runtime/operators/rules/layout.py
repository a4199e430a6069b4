"""Layout of the event store: numbers of types, of the attributes of each that rules read, and of join keys.

Numbers only grow: rules that are added later do not change existing ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weft.kernels.rules import tables as t
from weft.runtime.data.events import Int64s


@dataclass
class TypeLayout:
    """The layout of the events of one type."""

    columns: dict[str, int] = field(default_factory=dict)
    chains: dict[tuple[int, ...], int] = field(default_factory=dict)  # chain ids, by the columns of the key
    marks: dict[tuple[int, str], int] = field(default_factory=dict)  # by rule and consuming variable


class Layout:
    """All numbers by name."""

    def __init__(self) -> None:
        self.types: dict[str, int] = {}
        self.kept: list[TypeLayout] = []
        self.attributes: dict[str, int] = {}  # of all types: the columns of a batch
        self._chains = 0

    def type(self, name: str) -> int:
        """Return the number of a type."""
        number = self.types.setdefault(name, len(self.types))
        if number == len(self.kept):
            self.kept.append(TypeLayout())
        return number

    def column(self, type_: int, attribute: str) -> int:
        """Return the number of an attribute among the stored ones of a type."""
        self.attributes.setdefault(attribute, len(self.attributes))
        columns = self.kept[type_].columns
        return columns.setdefault(attribute, len(columns))

    def chain(self, type_: int, columns: tuple[int, ...]) -> int:
        """Return the number of the chain of a type's events by a key."""
        chains = self.kept[type_].chains
        if columns not in chains:
            chains[columns] = self._chains
            self._chains += 1
        return chains[columns]

    def mark(self, type_: int, variable: tuple[int, str]) -> int:
        """Return the mark of the events of a type that a variable of a rule consumes."""
        marks = self.kept[type_].marks
        return marks.setdefault(variable, len(marks))

    @property
    def mark_words(self) -> int:
        """The words for the marks of an event of any type: the valid ones, and as many tentative ones."""
        return 2 * max((-(-len(kept.marks) // 64) for kept in self.kept), default=0)

    @property
    def width(self) -> int:
        """The words for the values of an event of any type."""
        return 2 * max((len(kept.columns) for kept in self.kept), default=0)

    def lay(self, types: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Write the ranges of each type into the table of types; return columns, chains, and columns of chains."""
        columns = [self.attributes[name] for kept in self.kept for name in kept.columns]
        keys = [(id_, key) for kept in self.kept for key, id_ in kept.chains.items()]
        chain_columns = [column for _, key in keys for column in key]
        ends = np.cumsum([len(key) for _, key in keys], dtype=np.int64)
        chains = np.array([(id_, 0, len(key)) for id_, key in keys], np.int64).reshape(-1, t.CHAIN)
        chains[:, t.C_BEGIN], chains[:, t.C_END] = ends - chains[:, t.C_END], ends
        table = types.reshape(-1, t.KIND_OF_EVENT)
        table[:, t.COLUMNS_END] = np.cumsum([len(kept.columns) for kept in self.kept])
        table[:, t.COLUMNS_AT] = np.append(0, table[:-1, t.COLUMNS_END])
        table[:, t.CHAINS_END] = np.cumsum([len(kept.chains) for kept in self.kept])
        table[:, t.CHAINS_AT] = np.append(0, table[:-1, t.CHAINS_END])
        return np.array(columns, np.int64), chains.ravel(), np.array(chain_columns, np.int64)
