"""weft finds patterns of events: in files, in tables and in live streams, on one core and on Spark."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.algebra.query import Program
    from weft.api import (
        ProgramWarning,
        compile,
        count,
        detect,
        explain,
        match,
        measure,
        rows,
    )
    from weft.client.answers import Published, Remote, ServiceError
    from weft.client.asynchronous import AsyncClient
    from weft.client.connecting import connect
    from weft.client.connection import Client, RemoteSubscription
    from weft.detection import Detection, timeline
    from weft.errors import (
        BudgetError,
        DataWarning,
        Diagnostic,
        InputError,
        ManyMatchesWarning,
        ProgramError,
        RejectedWarning,
        UsageError,
        WeftError,
    )
    from weft.live_programs.matches import Deployment, Matches
    from weft.live_programs.program import LiveProgram
    from weft.live_programs.starting import live
    from weft.pattern import AfterMatch, Pattern, coalesce, e, function, step
    from weft.plan.changes import Change
    from weft.plots import Plot, plot
    from weft.reasons import Explanation, Failure, Reasons, funnel, why
    from weft.runtime.data.events import Rejected
    from weft.runtime.data.matches import Match
    from weft.runtime.limits.budgets import Budget
    from weft.runtime.limits.shedding import Shed
    from weft.runtime.live.subscriptions import Subscription
    from weft.runtime.reading.arrivals import Heartbeat
    from weft.runtime.spark.session import spark_session
    from weft.sql_tables.programs import register
    from weft.sql_tables.queries import row_pattern, sql
    from weft.statistics import Statistics
    from weft.tuning.tune import Tuning, tune

__all__ = [
    "AfterMatch",
    "AsyncClient",
    "Budget",
    "BudgetError",
    "Change",
    "Client",
    "DataWarning",
    "Deployment",
    "Detection",
    "Diagnostic",
    "Explanation",
    "Failure",
    "Heartbeat",
    "InputError",
    "LiveProgram",
    "ManyMatchesWarning",
    "Match",
    "Matches",
    "Pattern",
    "Plot",
    "Program",
    "ProgramError",
    "ProgramWarning",
    "Published",
    "Reasons",
    "Rejected",
    "RejectedWarning",
    "Remote",
    "RemoteSubscription",
    "ServiceError",
    "Shed",
    "Statistics",
    "Subscription",
    "Tuning",
    "UsageError",
    "WeftError",
    "coalesce",
    "compile",
    "connect",
    "count",
    "detect",
    "e",
    "explain",
    "function",
    "funnel",
    "live",
    "match",
    "measure",
    "plot",
    "register",
    "row_pattern",
    "rows",
    "spark_session",
    "sql",
    "step",
    "timeline",
    "tune",
    "why",
]

# Where each name is from. A name is loaded when it is asked for: processes that Spark starts need few of them, and
# whoever imports one of our modules imports this one first.
_MODULES = {
    "weft.algebra.query": ("Program",),
    "weft.api": (
        "ProgramWarning",
        "compile",
        "count",
        "detect",
        "explain",
        "match",
        "measure",
        "rows",
    ),
    "weft.client.answers": ("Published", "Remote", "ServiceError"),
    "weft.client.asynchronous": ("AsyncClient",),
    "weft.client.connecting": ("connect",),
    "weft.client.connection": ("Client", "RemoteSubscription"),
    "weft.detection": ("Detection", "timeline"),
    "weft.errors": (
        "BudgetError",
        "DataWarning",
        "Diagnostic",
        "InputError",
        "ManyMatchesWarning",
        "ProgramError",
        "RejectedWarning",
        "UsageError",
        "WeftError",
    ),
    "weft.live_programs.matches": ("Deployment", "Matches"),
    "weft.live_programs.program": ("LiveProgram",),
    "weft.live_programs.starting": ("live",),
    "weft.pattern": ("AfterMatch", "Pattern", "coalesce", "e", "function", "step"),
    "weft.plan.changes": ("Change",),
    "weft.plots": ("Plot", "plot"),
    "weft.tuning.tune": ("Tuning", "tune"),
    "weft.reasons": ("Explanation", "Failure", "Reasons", "funnel", "why"),
    "weft.runtime.limits.budgets": ("Budget",),
    "weft.runtime.data.events": ("Rejected",),
    "weft.runtime.data.matches": ("Match",),
    "weft.runtime.reading.arrivals": ("Heartbeat",),
    "weft.runtime.live.subscriptions": ("Subscription",),
    "weft.runtime.limits.shedding": ("Shed",),
    "weft.runtime.spark.session": ("spark_session",),
    "weft.sql_tables.programs": ("register",),
    "weft.sql_tables.queries": ("row_pattern", "sql"),
    "weft.statistics": ("Statistics",),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def _warn_of_the_other_weft() -> None:
    """Warn if the unrelated distribution `weft` is installed into the same folder: its files replace some of ours."""
    other = next(Path(__file__).parents[1].glob("weft-*.dist-info"), None)
    if other is not None:
        warnings.warn(
            f"another package that is also imported as 'weft' is installed ({other.stem}): files of the two overwrite "
            "each other. Run `pip uninstall weft weft-cep`, then `pip install weft-cep`",
            RuntimeWarning,
            stacklevel=2,
        )


_warn_of_the_other_weft()


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("weft-cep")
    if name not in _PLACES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    found = getattr(import_module(_PLACES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
