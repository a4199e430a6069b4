"""What a stream of the user's leaves out, told while it runs; its progress has the counts, if anybody looks."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

from weft.errors import RejectedWarning

_LISTENS = "_weft_listens"
_TEXTS = {
    "late": "of the stream came late and took no part: let it wait longer, by frame.withWatermark(…) or delay=…, "
    "or have them given with rejects=True",
    "unreadable": "of the stream could not be read (rejects=True gives them, with the reasons)",
}


class RejectListener(StreamingQueryListener):  # type: ignore[misc] # pyspark is not checked
    """Warns of late and unreadable events at the end of each trigger that has some, with their exact number."""

    def __init__(self) -> None:
        self.names: set[str] = set()  # of the observations whose streams do not give their rejects
        self._seen: Counter[tuple[str, str]] = Counter()

    def onQueryStarted(self, event: Any) -> None:
        """Nothing is known yet."""

    def onQueryProgress(self, event: Any) -> None:
        """A trigger is over."""
        for name, counts in event.progress.observedMetrics.items():
            if name in self.names:
                self.count(str(event.progress.runId), {kind: counts[kind] for kind in _TEXTS})

    def onQueryIdle(self, event: Any) -> None:
        """Nothing came."""

    def onQueryTerminated(self, event: Any) -> None:
        """It starts with new counts, if it does."""
        for kind in _TEXTS:
            self._seen.pop((str(event.runId), kind), None)

    def count(self, run: str, more: dict[str, int]) -> None:
        """So many more in one trigger of a query."""
        for kind, number in more.items():
            self._seen[run, kind] += number
            seen = self._seen[run, kind]
            if number:
                so_far = f" ({seen:,} so far)" if seen > number else ""
                count = f"{number:,} event{'s' * (number > 1)}{so_far}"
                warnings.warn(f"{count} {_TEXTS[kind]}", RejectedWarning, stacklevel=1)


def listener_of(session: SparkSession) -> RejectListener:
    """The listener of a session, added to it when it is first asked for."""
    found: RejectListener | None = getattr(session, _LISTENS, None)
    if found is None:
        found = RejectListener()
        session.streams.addListener(found)
        setattr(session, _LISTENS, found)
    return found
