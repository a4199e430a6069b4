"""What a stream of the user's leaves out, told while it runs; its progress has the counts, if anybody looks."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from weft.errors import RejectedWarning

_LISTENS = "_weft_listens"
_TEXTS = {
    "late": "of the stream came late and took no part: let it wait longer, by frame.withWatermark(…) or delay=…, "
    "or have them given with rejects=True",
    "unreadable": "of the stream could not be read (rejects=True gives them, with the reasons)",
}


class RejectListener:
    """Warns of late and unreadable events at the end of each trigger that has some, with their exact number."""

    def __init__(self) -> None:
        self.names: set[str] = set()  # of the observations whose streams do not give their rejects
        self._seen: Counter[tuple[str, str]] = Counter()

    @property
    def _jlistener(self) -> Any:
        """The listener as Java knows it: PySpark's would turn each event into Python objects, for 0.1 s of CPU."""
        if not hasattr(self, "_java"):
            self._java = SparkContext._jvm.PythonStreamingQueryListenerWrapper(JavaListener(self))
        return self._java

    def forget(self, run: str) -> None:
        """Forget the counts of a query that has ended: it starts with new ones, if it does."""
        for kind in _TEXTS:
            self._seen.pop((run, kind), None)

    def count(self, run: str, more: dict[str, int]) -> None:
        """So many more in one trigger of a query."""
        for kind, number in more.items():
            self._seen[run, kind] += number
            seen = self._seen[run, kind]
            if number:
                so_far = f" ({seen:,} so far)" if seen > number else ""
                count = f"{number:,} event{'s' * (number > 1)}{so_far}"
                warnings.warn(f"{count} {_TEXTS[kind]}", RejectedWarning, stacklevel=1)


class JavaListener:
    """Receives the events of queries as Java objects, and asks them only for the counts."""

    def __init__(self, listener: RejectListener) -> None:
        self._listener = listener

    def onQueryStarted(self, event: Any) -> None:
        """Ignore it: nothing is known yet."""

    def onQueryProgress(self, event: Any) -> None:
        """Take the counts of a trigger that is over."""
        progress = event.progress()
        found = progress.observedMetrics()
        for name in self._listener.names.intersection(found.keySet()):
            counts = found.get(name)
            self._listener.count(progress.runId().toString(), {kind: int(counts.getAs(kind)) for kind in _TEXTS})

    def onQueryIdle(self, event: Any) -> None:
        """Ignore it: nothing came."""

    def onQueryTerminated(self, event: Any) -> None:
        """Forget what is known of the query."""
        self._listener.forget(event.runId().toString())

    class Java:
        """The interface of Spark's that it is."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def listener_of(session: SparkSession) -> RejectListener:
    """The listener of a session, added to it when it is first asked for."""
    found: RejectListener | None = getattr(session, _LISTENS, None)
    if found is None:
        found = RejectListener()
        session.streams.addListener(found)
        setattr(session, _LISTENS, found)
    return found
