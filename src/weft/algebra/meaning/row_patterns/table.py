"""The result of a row pattern over a table: partitions in order, the matches of each in order, and output rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from weft.algebra.meaning.row_patterns.comparisons import order_key
from weft.algebra.meaning.row_patterns.constants import convert, timestamp
from weft.algebra.meaning.row_patterns.search import MOST_STEPS, RowSearch, RowsFound
from weft.algebra.meaning.row_patterns.values import PlainRow, RowView, value_of
from weft.algebra.row_patterns import OrderKey, RowPattern
from weft.errors import BudgetError, InputError

ResultRow = tuple[Any, ...]


def evaluate_rows(query: RowPattern, rows: Sequence[PlainRow], most_steps: int = MOST_STEPS) -> list[ResultRow]:
    """The rows of the result, each in the order of `query.output_columns`.

    Partitions come in the order of their first rows; in each, rows by match, then by their order. Rows with equal
    ORDER BY values keep the order in which they are given.
    """
    return [
        row for partition in partitions(query, rows) for row in _PartitionResult(query, partition, most_steps).rows()
    ]


def partitions(query: RowPattern, rows: Sequence[PlainRow]) -> list[list[PlainRow]]:
    """The rows of each partition, in order; nulls are equal to each other."""
    found: dict[Any, list[PlainRow]] = {}
    for row in rows:
        found.setdefault(tuple(_hashable(row.get(column)) for column in query.partition), []).append(row)
    for partition in found.values():
        for key in reversed(query.order):
            partition.sort(key=lambda row, key=key: _sort_key(row, key), reverse=key.descending)  # type: ignore[misc]
    return list(found.values())


def _hashable(value: Any) -> Any:
    key = order_key(value)
    return key if key is None or isinstance(key, bool | str | tuple) else repr(key)


def _sort_key(row: PlainRow, key: OrderKey) -> tuple[Any, ...]:
    value = row.get(key.column)
    is_first = key.nulls_first != key.descending  # before the order is reversed
    return (0 if is_first else 2,) if value is None else (1, order_key(value))


class _PartitionResult:
    """Looks for matches in one partition from its first row on."""

    def __init__(self, query: RowPattern, rows: list[PlainRow], most_steps: int) -> None:
        self._query = query
        self._rows = rows
        self._number = 0
        self._search = RowSearch(query, len(rows), self._accepts, most_steps)
        self._conditions = {define.variable: define.condition for define in query.conditions}

    def rows(self) -> Iterator[ResultRow]:
        """The rows of the result."""
        start, covered = 0, 0  # rows before `covered` are in a match
        while start < len(self._rows):
            self._number += 1
            found = self._match_at(start)
            if found is None:
                self._number -= 1
                if self._query.rows == "unmatched" and start >= covered:
                    yield self._row(start, None)
                start += 1
                continue
            covered = max(covered, found.end)
            yield from self._shown(found)
            start = self._next(found)

    def _match_at(self, start: int) -> RowsFound | None:
        try:
            return self._search.match_at(start)
        except BudgetError as error:
            hint = "make conditions exclude each other, or bound the pattern by WITHIN or {,n}"
            raise BudgetError(
                f"{error} in {self._place()}: too many ways to match {self._query.name}; {hint}"
            ) from None

    def _accepts(self, start: int, labels: tuple[str, ...]) -> bool:
        """Whether the row that comes last may be mapped to its variable."""
        if not self._is_within(start, start + len(labels) - 1):
            return False
        condition = self._conditions.get(labels[-1])
        view = RowView(self._rows, start, labels, len(labels) - 1, self._number)
        return condition is None or value_of(condition, view) is True

    def _is_within(self, first: int, last: int) -> bool:
        if self._query.within is None:
            return True
        column = self._query.order[0].column
        times = [self._rows[row].get(column) for row in (first, last)]
        if None in times:
            return False
        between = order_key(timestamp(times[1])) - order_key(timestamp(times[0]))
        return bool(between < timedelta(microseconds=self._query.within))

    # ---------------------------------------------------------------- rows of a match

    def _shown(self, found: RowsFound) -> Iterator[ResultRow]:
        mode = self._query.rows
        if mode == "one":
            last = len(found.labels) - 1
            yield self._row(max(found.start, found.end - 1), self._view(found, last))
        elif not found.labels:
            if mode != "omit":
                yield self._row(found.start, self._view(found, -1))
        else:
            for current, is_excluded in enumerate(found.excluded):
                if not is_excluded:
                    yield self._row(found.start + current, self._view(found, current))

    def _view(self, found: RowsFound, current: int) -> RowView:
        return RowView(self._rows, found.start, found.labels, current, self._number)

    def _row(self, row: int, view: RowView | None) -> ResultRow:
        """A row of the result; measures are null where there is no match."""
        measures = {
            measure.name: None if view is None else convert(value_of(measure.value, view), measure.type)
            for measure in self._query.measures
        }
        own = self._rows[row]
        return tuple(measures[name] if name in measures else own.get(name) for name in self._query.output_columns)

    # ---------------------------------------------------------------- where the search goes on

    def _next(self, found: RowsFound) -> int:
        skip = self._query.skip
        if not found.labels or skip.mode == "next":
            return found.start + 1
        if skip.mode == "past last":
            return found.end
        mapped = [i for i, label in enumerate(found.labels) if label in skip.variables]
        if not mapped:
            raise self._failed(f"the match has no row of {skip.name}", "skip to a variable that every match has")
        target = mapped[0] if skip.mode == "first" else mapped[-1]
        if target == 0:
            raise self._failed("the search would start at the match's first row again", "skip to a later row")
        return found.start + target

    def _failed(self, what: str, hint: str) -> InputError:
        name = f"AFTER MATCH SKIP TO {self._query.skip.mode.upper()} {self._query.skip.name}"
        return InputError(f"{name}: {what} ({self._place()}, match {self._number}); {hint}")

    def _place(self) -> str:
        keys = ", ".join(f"{column} = {self._rows[0].get(column)!r}" for column in self._query.partition)
        return f"the partition {keys}" if keys else "the only partition"
