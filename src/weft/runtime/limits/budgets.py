"""Budgets: how much state, time and output a program may use, and the action at the limit."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from weft.errors import UsageError, did_you_mean

Action = Literal["stop", "shed", "sample", "drop-oldest"]
ACTIONS: tuple[Action, ...] = get_args(Action)
SIZES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
EVERYTHING = "*"  # all queries together
# What can be done about each limit.
SUITS: Mapping[str, tuple[Action, ...]] = {
    "state_bytes": ("stop", "shed", "drop-oldest"),
    "matches_per_event": ("stop", "sample"),
    "matches_per_batch": ("stop", "sample"),
    "seconds_per_batch": ("stop", "shed"),
}
_WRITTEN = {
    "state": "state_bytes",
    "matches-per-event": "matches_per_event",
    "matches": "matches_per_batch",
    "seconds": "seconds_per_batch",
}


@dataclass(frozen=True)
class Budget:
    """Limits, and the action when they are exceeded.

    `state_bytes`: the size of the state; `matches_per_event`, `matches_per_batch`: how many matches are emitted that
    one event, or the events of one batch (a push, a trigger), complete; `seconds_per_batch`: for the work on a batch.
    `action`: `stop` with a message; `shed` events, as `weft.Shed` does; `sample` matches; `drop-oldest` partial ones.
    `as_text`: it was written in the notation of `--budget`, which messages then use.
    """

    state_bytes: int | None = None
    matches_per_event: int | None = None
    matches_per_batch: int | None = None
    seconds_per_batch: float | None = None
    action: Action = "stop"
    as_text: bool = field(default=False, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise UsageError(f"at a limit one can {', '.join(ACTIONS)}, not {self.action!r}")
        limits = self.limits
        if not limits:
            raise UsageError(f"a budget has a limit: {', '.join(map(self._named, SUITS))}")
        for name, limit in limits.items():
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < math.inf:
                raise UsageError(f"{self._named(name)} is a number above 0, not {limit!r}")
            if self.action not in SUITS[name]:
                suited = " or ".join(SUITS[name])
                raise UsageError(f"{self.action!r} does not help with {self._named(name)}: choose {suited}")

    def choice(self, action: Action) -> str:
        """Return how the user writes an action in the notation of this budget.

        Args:
            action: The action at the limit.
        """
        return f"then={action}" if self.as_text else f"action={action!r}"

    def _named(self, limit: str) -> str:
        """Return the name of a limit, as the user wrote it."""
        return next(word for word, name in _WRITTEN.items() if name == limit) if self.as_text else limit

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by name."""
        given = {item.name: getattr(self, item.name) for item in fields(self) if item.name in SUITS}
        return {name: limit for name, limit in given.items() if limit is not None}


Budgets = Mapping[str, tuple[Budget, ...]]  # by query; EVERYTHING: for all together
Given = Budget | Sequence[Budget] | Mapping[str, Budget | Sequence[Budget]] | None
NO_BUDGET: Budgets = {}


def budgets_of(given: Given, names: Sequence[str]) -> Budgets:
    """Normalise budgets of a user: one or several for all queries together, or by a query's name."""
    if given is None:
        return NO_BUDGET
    by_name: Mapping[str, Any] = given if isinstance(given, Mapping) else {EVERYTHING: given}
    found: dict[str, tuple[Budget, ...]] = {}
    for name, own in by_name.items():
        budgets = tuple(own) if isinstance(own, Sequence) else (own,)
        if not all(isinstance(budget, Budget) for budget in budgets):
            raise UsageError("a budget is a weft.Budget, several of them, or such by the names of queries")
        if name != EVERYTHING and name not in names:
            raise UsageError(f"there is a budget for {name!r}, and no such query; {did_you_mean(name, names)}")
        if name != EVERYTHING:
            _check_named(name, budgets)
        found[name] = budgets
    return found


def _check_named(name: str, budgets: Sequence[Budget]) -> None:
    """Reject an action for one query that applies to all queries together."""
    for budget in budgets:
        if budget.action == "shed":
            raise UsageError(
                f"events are shed for all queries together, which see the same: not for {name!r}; "
                f"choose {budget.choice('stop')} or {budget.choice('drop-oldest')}"
            )


def budget_from_text(text: str) -> tuple[str, Budget]:
    """Parse `[QUERY:]state=100MB,matches=1000,then=sample` to the name of a query (or `*`) and its budget."""
    name, colon, rest = text.rpartition(":")
    parts: dict[str, Any] = {}
    for item in rest.split(","):
        key, equals, value = item.strip().partition("=")
        if key == "then" and equals:
            parts["action"] = value
        elif key in _WRITTEN and equals:
            parts[_WRITTEN[key]] = _number(key, value)
        else:
            known = ", ".join(f"{word}=…" for word in _WRITTEN)
            raise UsageError(
                f"--budget takes {known} and then={'|'.join(ACTIONS)}, with commas between them, not {item.strip()!r}"
            )
    return (name if colon else EVERYTHING), Budget(**parts, as_text=True)


def _number(key: str, text: str) -> float:
    found = re.fullmatch(r"([0-9][0-9_.]*)\s*([a-z]*)", text.strip().lower())
    units = SIZES if key == "state" else {"": 1, "s": 1} if key == "seconds" else {"": 1}
    try:
        if found is None:
            raise ValueError
        number = float(found[1].replace("_", "")) * units[found[2]]
        return number if key == "seconds" else int(number)
    except (ValueError, KeyError):
        example = {"state": "100MB", "seconds": "2.5"}.get(key, "1000")
        raise UsageError(f"--budget {key}={text} is no number: write it as in {key}={example}") from None
