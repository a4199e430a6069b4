"""Numbers that neither a 64-bit integer nor a float represents exactly: digits as text, beside the nearest float.

The nearest float has the value of a decimal of up to 15 digits (`weft.algebra.numbers`), so only numbers with more
digits are handled here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.numbers import NAMED_DIGITS, worth
from weft.runtime.data.events import Column, number_of_digits

Mask = npt.NDArray[np.bool_]
MOST_DIGITS = 76  # that Arrow's decimals have
# Larger numbers are floats, whatever they come in: Python itself refuses to read integers of thousands of digits.
_WHOLE = rf"^-?(0|[1-9][0-9]{{0,{MOST_DIGITS - 1}}})$"
_PLAIN = rf"^-?(0|[1-9][0-9]{{0,{MOST_DIGITS - 1}}})(\.[0-9]+)?$"


def exact_column(digits: pa.Array) -> Column:
    """Convert digits to a column of numbers: integers if all fit, else floats with the digits beside them."""
    if pc.all(pc.match_substring_regex(digits, _WHOLE)).as_py() is not False:
        try:
            return Column(numbers=digits.cast(pa.int64()))
        except pa.ArrowInvalid:
            pass
    return Column(numbers=digits.cast(pa.float64()), exact=digits)


def floats_with_digits(texts: pa.Array, floats: pa.Array) -> Column:
    """Return floats with the digits of the texts that a float would format differently."""
    whole = pc.match_substring_regex(texts, _WHOLE)
    changed = pc.and_(pc.match_substring_regex(texts, _PLAIN), pc.not_equal(texts, floats.cast(pa.string())))
    kept = pc.fill_null(pc.or_(whole, changed), False)
    if not pc.any(kept).as_py():
        return Column(numbers=floats)
    return Column(numbers=floats, exact=pc.if_else(kept, texts, pa.scalar(None, pa.string())))


def as_floats(column: Column) -> Column:
    """Convert a column of integers to floats with their digits."""
    numbers = column.numbers
    if numbers is None or not pa.types.is_integer(numbers.type):
        return column
    digits = numbers.cast(pa.string())
    return Column(digits.cast(pa.float64()), column.texts, column.booleans, column.others, digits)


def whole_numbers(column: Column) -> tuple[Mask, npt.NDArray[np.int64]]:
    """Return where the digits of a column are a 64-bit integer, and that integer."""
    assert column.exact is not None
    whole = pc.fill_null(pc.match_substring_regex(column.exact, _WHOLE), False)
    digits = pc.if_else(whole, column.exact, pa.scalar("0"))
    try:
        numbers = digits.cast(pa.int64())
    except pa.ArrowInvalid:  # one is too large
        found = [int(text) for text in digits.to_pylist()]
        fits = [-(2**63) <= number < 2**63 for number in found]
        numbers = pa.array([number if fit else 0 for number, fit in zip(found, fits, strict=True)], pa.int64())
        whole = pc.and_(whole, pa.array(fits))
    return whole.to_numpy(zero_copy_only=False), numbers.to_numpy()


def numbers_of(is_whole: Mask, known: Mask, wholes: npt.NDArray[np.int64], floats: npt.NDArray[np.float64]) -> Column:
    """Build a column of integers and floats; integers keep their digits if there are floats."""
    if is_whole[known].all():
        return Column(pa.array(wholes, mask=~known))
    digits = pa.array(wholes, mask=~(known & is_whole)).cast(pa.string())
    numbers = np.where(is_whole, wholes.astype(np.float64), floats)
    return Column(pa.array(numbers, mask=~known), exact=digits if digits.null_count < len(digits) else None)


def unnamed_rows(column: Column) -> npt.NDArray[np.int64]:
    """Return the rows whose exact number differs from the float stored with it."""
    digits, numbers = column.exact, column.numbers
    if digits is None or numbers is None or digits.null_count == len(digits):
        return np.empty(0, np.int64)
    long = pc.greater(pc.binary_length(digits), NAMED_DIGITS)
    rows = np.flatnonzero(long.fill_null(False).to_numpy(zero_copy_only=False))
    if not len(rows):
        return rows
    own, near = digits.take(pa.array(rows)), numbers.take(pa.array(rows))
    differs = pc.not_equal(own, near.cast(pa.string())).to_numpy(zero_copy_only=False)
    texts, values = (part.filter(pa.array(differs)).to_pylist() for part in (own, near))
    known = {text: number_of_digits(text) != worth(value) for text, value in zip(texts, values, strict=True)}
    unnamed: npt.NDArray[np.int64] = rows[differs][[known[text] for text in texts]]
    return unnamed


def nearest(number: int | Decimal) -> float:
    """Return the nearest float of a number, or infinity beyond all floats."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def decimal_text(number: int | Decimal) -> str:
    """Encode a number for the machine (`weft.kernels.machine.decimals`)."""
    near = nearest(number)
    side = "<" if number < worth(near) else ">"
    digits = f"{number:f}" if isinstance(number, Decimal) else str(number)
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{np.float64(near).view(np.uint64):016x}{side}{digits}"


def with_digits(column: Column, digits: pa.Array) -> Column:
    """Add the digits of some rows to a column of numbers."""
    floats = as_floats(column)
    numbers = digits.cast(pa.float64())
    if floats.numbers is not None:
        numbers = pc.coalesce(numbers, floats.numbers)
    exact = digits if floats.exact is None else pc.coalesce(digits, floats.exact)
    return Column(numbers, column.texts, column.booleans, column.others, exact)


def digits_at(column: Column, rows: npt.NDArray[np.int64]) -> list[int | Decimal]:
    """Return the numbers of rows that have digits."""
    texts = column.exact.take(pa.array(rows)).to_pylist() if column.exact is not None else []
    return [number_of_digits(text) for text in texts]


def mapped(column: Column, rows: npt.NDArray[np.int64], result: Callable[[int | Decimal], int]) -> list[int]:
    """Evaluate a function once for each number of the rows with digits."""
    known: dict[str, int] = {}
    found = []
    for text in column.exact.take(pa.array(rows)).to_pylist() if column.exact is not None else []:
        if text not in known:
            known[text] = result(number_of_digits(text))
        found.append(known[text])
    return found


def shown(column: Column, count: int) -> pa.Array:
    """Convert a column to one array; a union if there are values of several kinds."""
    kinds = [*shown_parts(column), column.texts, column.booleans]
    present = [values for values in kinds if values is not None and values.null_count < len(values)]
    if len(present) < 2:
        return present[0] if present else pa.nulls(count, pa.string())
    plain = [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in present]
    types = np.select([np.asarray(values.is_valid()) for values in plain], range(len(plain)), 0).astype(np.int8)
    return pa.UnionArray.from_sparse(pa.array(types), plain)


def shown_parts(column: Column) -> list[pa.Array]:
    """Return the numbers of a column as arrays, each null where another has the value; decimals with their scale."""
    numbers, digits = column.numbers, column.exact
    if numbers is None or digits is None or digits.null_count == len(digits):
        return [] if numbers is None else [numbers]
    rest = pc.if_else(digits.is_valid(), pa.scalar(None, numbers.type), numbers)
    parts = [] if rest.null_count == len(rest) else [rest]
    point = pc.find_substring(digits, ".")
    scales = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(pc.binary_length(digits), point), 1))
    for scale in sorted(pc.unique(scales).drop_null().to_pylist()):
        own = pc.if_else(pc.equal(scales, scale), digits, pa.scalar(None, pa.string()))
        parts.append(_shown(own, scale))
    return parts


def _shown(digits: pa.Array, scale: int) -> pa.Array:
    if scale == 0:
        try:
            return digits.cast(pa.int64())
        except pa.ArrowInvalid:
            pass
    longest = pc.max(pc.binary_length(digits)).as_py()
    kind = pa.decimal128(38, scale) if longest <= 38 else pa.decimal256(76, scale)
    try:
        return digits.cast(kind)
    except pa.ArrowInvalid:  # an exponent, or more digits than there is room for
        return digits.cast(pa.float64())
