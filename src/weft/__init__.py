"""weft finds patterns of events: in files, in tables and in live streams, on one core and on Spark."""

from weft.algebra.query import Program
from weft.api import ProgramWarning, RejectedWarning, compile, count, detect, explain, match
from weft.errors import Diagnostic, InputError, ProgramError, UsageError, WeftError
from weft.runtime.events import Rejected
from weft.runtime.matches import Match

__all__ = [
    "Diagnostic",
    "InputError",
    "Match",
    "Program",
    "ProgramError",
    "ProgramWarning",
    "Rejected",
    "RejectedWarning",
    "UsageError",
    "WeftError",
    "compile",
    "count",
    "detect",
    "explain",
    "match",
]
