"""Windows as start keys and horizons: a match can end at an event if its start key is at least the event's horizon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.numbers import EXACT
from weft.algebra.query import OUTVOTED, Query, Window
from weft.runtime.data.events import Column, EventBatch, Int64s, number_of_digits

Mask = npt.NDArray[np.bool_]
Exact = int | float | Fraction
Values = npt.NDArray[Any]  # integers, floats, or Python's numbers
NEVER = np.iinfo(np.int64).min  # the key of an event at which no match starts or ends


def window_of(query: Query) -> Window | None:
    """Return the window in which partial matches are followed; with sessions it is longer by their gap."""
    if query.window is None or query.session is None:
        return query.window
    return replace(query.window, amount=query.window.amount + query.session)


class Doubt(NamedTuple):
    """Whether the largest value is doubted, the largest before it (None: there is none), and how many speak against."""

    is_on: bool
    before: Any
    against: int


NO_DOUBT = Doubt(False, None, 0)


class WindowKeys:
    """Computes start keys and horizons of events. Horizons never decrease, also across batches.

    Values of a window attribute never decrease either, except for events out of order. A key is the rank of a value
    among those seen, so that it is exact for all numbers; values that a window may still reach are stored.
    """

    def __init__(self, window: Window | None) -> None:
        self._window = window
        self._horizon = int(NEVER)
        self._seen: Values = np.empty(0, np.int64)  # increasing values of the window attribute
        self._forgotten = 0  # number of removed values before these
        self._doubt = NO_DOUBT

    @property
    def follows_attribute(self) -> bool:
        """Whether events can be out of the order of a window attribute."""
        return self._window is not None and self._window.unit == "attribute"

    def keys(self, batch: EventBatch, exists: Mask) -> tuple[Int64s, Int64s, Mask | None]:
        """Return keys and horizons of a batch, and a mask of the events out of order, or None."""
        window = self._window
        if window is None:
            return batch.starts, np.full(len(batch), NEVER, np.int64), None
        if window.unit == "time":
            return batch.starts, batch.ends - int(window.amount), None
        if window.unit == "events":
            positions = batch.positions if batch.latest is None else batch.latest
            return positions, positions - int(window.amount), None
        return self._attribute_keys(batch, exists, window)

    def _attribute_keys(self, batch: EventBatch, exists: Mask, window: Window) -> tuple[Int64s, Int64s, Mask | None]:
        keys, horizons = np.full(len(batch), NEVER, np.int64), np.full(len(batch), self._horizon, np.int64)
        column = batch.columns.get(window.attribute or "")
        if column is None or column.numbers is None:
            return keys, horizons, None
        rows = np.flatnonzero(~np.asarray(column.numbers.is_null()) & exists)
        self._seen, values = alike(self._seen, _numbers(column, rows), window.amount)
        if not math.isinf(window.doubts_above):
            self._seen, values = alike(self._seen, values, window.doubts_above)
        late, done = np.zeros(len(batch), bool), 0
        while done < len(rows):
            is_late, count = self._split_late(values[done:], window.doubts_above)
            here = slice(done, done + count)
            late[rows[here]] = is_late[:count]
            self._number(rows[here][~is_late[:count]], values[here][~is_late[:count]], keys, horizons)
            done += count
            if done < len(rows):  # a value was wrong: start over, so that no match spans it
                self._forgotten, self._seen = self._forgotten + len(self._seen), self._seen[:0]
        return keys, np.maximum.accumulate(horizons), late

    def _number(self, rows: Int64s, values: Values, keys: Int64s, horizons: Int64s) -> None:
        """Set the keys and horizons of rows whose values do not decrease."""
        if not len(rows):
            return
        assert self._window is not None
        latest = np.concatenate((self._seen[-1:], values))[-len(values) - 1 : -1]
        new = np.concatenate((np.ones(len(values) - len(latest), bool), values[-len(latest) :] > latest))
        known = self._forgotten + len(self._seen)
        self._seen = np.concatenate((self._seen, values[new]))
        keys[rows] = known - 1 + np.cumsum(new)
        horizons[rows] = self._forgotten + np.searchsorted(self._seen, _lowest(values, self._window.amount))
        self._horizon = max(self._horizon, int(horizons[rows].max()))
        self._seen, self._forgotten = self._seen[self._horizon - self._forgotten :], self._horizon

    def _split_late(self, values: Values, jump: float) -> tuple[Mask, int]:
        """Return a mask of the late values, and how many values precede one that starts over (see `in_order`)."""
        known = self._seen[-1:]
        if self._doubt.before is not None and not np.can_cast(np.asarray(self._doubt.before).dtype, values.dtype):
            known, values = _objects(known), _objects(values)
        tops = np.maximum.accumulate(np.concatenate((known, values)))
        previous = tops[:-1] if len(known) else np.concatenate((values[:1], tops[:-1]))
        late = values < previous
        group = np.cumsum(~late)  # a value in order and the late ones after it; 0: late ones of an earlier batch
        heads = np.flatnonzero(~late)
        before = np.concatenate((values[:1] if self._doubt.before is None else [self._doubt.before], previous[heads]))
        first = np.concatenate(([self._doubt.before is None], np.zeros(len(heads), bool)))
        believes = math.isinf(jump)
        ahead = np.zeros(len(heads), bool) if believes else _lowest(values[heads], jump) > previous[heads]
        doubted = np.concatenate(([self._doubt.is_on], ahead))
        if not len(known) and len(heads):
            first[1], doubted[1] = True, not believes
        against = late & doubted[group] & (first[group] | (values >= before[group]))
        so_far = np.cumsum(against)
        begins = np.concatenate(([0], so_far[heads]))
        so_far = so_far - begins[group] + np.where(group == 0, self._doubt.against, 0)
        wrong = np.flatnonzero(against & (so_far >= OUTVOTED))
        if len(wrong):
            return late, int(wrong[0])
        last = int(group[-1])
        self._doubt = Doubt(bool(doubted[last]), None if first[last] else before[last], int(so_far[-1]))
        return late, len(values)

    def snapshot(self) -> list[Any]:
        """Return the state: horizon, number of removed values, stored values, doubt."""
        values = [str(value) for value in self._seen.tolist()]
        before = None if self._doubt.before is None else str(self._doubt.before)
        return [self._horizon, self._forgotten, values, [self._doubt.is_on, before, self._doubt.against]]

    def restore(self, kept: Sequence[Any]) -> None:
        """Restore the state from a snapshot."""
        self._horizon, self._forgotten, seen, (is_on, before, against) = kept
        self._seen = _narrowed([_number(text) for text in seen])
        self._doubt = Doubt(is_on, None if before is None else _number(before), against)


def alike(seen: Values, values: Values, amount: float) -> tuple[Values, Values]:
    """Convert two arrays of numbers to integers or floats if these are exact enough, else to Python's numbers."""
    if not len(seen):
        seen = seen.astype(values.dtype)
    both = (seen, values)
    if all(part.dtype == np.int64 for part in both) and amount == int(amount) and amount < 2**63:
        return both
    if amount < EXACT // 2 and all(part.dtype != object and np.all(np.abs(part) < EXACT // 2) for part in both):
        return seen.astype(np.float64), values.astype(np.float64)
    return _objects(seen), _objects(values)


def _objects(values: Values) -> Values:
    found = np.empty(len(values), object)
    found[:] = [exactly(value) for value in values.tolist()]
    return found


def _lowest(values: Values, amount: float) -> Values:
    """Return the least value at which a match may start that ends at each value."""
    if values.dtype == np.float64:
        return values - float(amount)
    if values.dtype == np.int64:
        reach, least = int(amount), np.iinfo(np.int64).min
        return np.where(values >= least + reach, values - reach, least)
    found = np.empty(len(values), object)
    found[:] = [lower_by(value, amount) for value in values]
    return found


def exactly(number: int | float | Decimal | Fraction) -> Exact:
    """Convert a number to a form with its exact value: floats and decimals below 2**53 become floats."""
    if isinstance(number, int | Fraction) or not math.isfinite(number):
        return number if not isinstance(number, Decimal) else float(number)
    return float(number) if -EXACT < number < EXACT else Fraction(number)


def lower_by(number: Exact, amount: float) -> Exact:
    """Subtract an amount: with floats if both are small and one is a float, else exactly."""
    if isinstance(number, float) and not math.isfinite(number):
        return number
    if isinstance(number, int) and amount == int(amount):
        return number - int(amount)
    if -EXACT < number < EXACT and amount < EXACT:
        return float(number) - float(amount)
    return Fraction(number) - Fraction(amount)


def _numbers(column: Column, rows: Int64s) -> Values:
    """Return the numbers of rows, exact where the column has digits."""
    numbers = column.numbers
    assert numbers is not None
    taken = numbers.take(pa.array(rows))
    if column.exact is None or column.exact.take(pa.array(rows)).null_count == len(rows):
        return np.asarray(taken)
    digits = column.exact.take(pa.array(rows)).to_pylist()
    found = [
        near if text is None else number_of_digits(text) for near, text in zip(taken.to_pylist(), digits, strict=True)
    ]
    values = np.empty(len(found), object)
    values[:] = [exactly(value) for value in found]
    return values


def _number(text: str) -> Exact:
    if "/" in text:
        return Fraction(text)
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _narrowed(numbers: list[Exact]) -> Values:
    if all(isinstance(number, int) and abs(number) < 2**63 for number in numbers):
        return np.array(numbers, np.int64)
    if all(isinstance(number, float) for number in numbers):
        return np.array(numbers, np.float64)
    found = np.empty(len(numbers), object)
    found[:] = numbers
    return found
