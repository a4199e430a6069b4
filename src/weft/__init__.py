"""weft finds patterns of events: in files, in tables and in live streams, on one core and on Spark."""

from weft.algebra.query import Program
from weft.api import ProgramWarning, RejectedWarning, compile, count, detect, explain, match
from weft.errors import Diagnostic, InputError, ProgramError, UsageError, WeftError
from weft.live_program import Deployment, LiveProgram, Matches, live
from weft.pattern import AfterMatch, Pattern, coalesce, e
from weft.runtime.events import Rejected
from weft.runtime.matches import Match
from weft.runtime.reading.arrivals import Heartbeat
from weft.runtime.subscriptions import Subscription

__all__ = [
    "AfterMatch",
    "Deployment",
    "Diagnostic",
    "Heartbeat",
    "InputError",
    "LiveProgram",
    "Match",
    "Matches",
    "Pattern",
    "Program",
    "ProgramError",
    "ProgramWarning",
    "Rejected",
    "RejectedWarning",
    "Subscription",
    "UsageError",
    "WeftError",
    "coalesce",
    "compile",
    "count",
    "detect",
    "e",
    "explain",
    "live",
    "match",
]
