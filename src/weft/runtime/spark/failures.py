"""Failures of Spark that are really a user's mistake, found in a task and wrapped several times on the way."""

from __future__ import annotations

from weft.errors import InputError, UsageError, WeftError
from weft.runtime.spark.shipping import MISSING


def own_error(failure: Exception) -> Exception:
    """The user's mistake as the task said it; any other failure as it is."""
    for line in str(failure).splitlines():
        for kind in (InputError, UsageError):
            _, found, message = line.partition(f"weft.errors.{kind.__name__}: ")
            if found:
                return as_weft(kind, message)
        if MISSING in line:
            return as_weft(UsageError, line[line.index(MISSING) :])
    return failure


def as_weft(kind: type[WeftError], message: str) -> WeftError:
    """A mistake of that kind."""
    return kind(message.strip())
