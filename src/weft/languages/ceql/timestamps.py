"""Moments as written, `2024-05-01 12:30:00.5`, in ticks of event time."""

from __future__ import annotations

from datetime import UTC, datetime

from weft.languages.durations import TICKS
from weft.languages.findings import Findings
from weft.source import Span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ticks_at(text: str, time_unit: str, span: Span, findings: Findings) -> int:
    """The ticks from 1970 to a moment, which is in UTC unless it says otherwise; rounded down."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        hint = "write a date, or a date and a time of day: TIMESTAMP '2024-05-01 12:30:00'"
        findings.error("bad-timestamp", f"{text!r} is no moment", span, hint)
        return 0
    passed = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    nanoseconds = (passed.days * 86400 + passed.seconds) * TICKS["s"] + passed.microseconds * TICKS["us"]
    return nanoseconds // TICKS[time_unit]
