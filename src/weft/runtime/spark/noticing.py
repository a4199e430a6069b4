"""Warnings about a batch, which are known after the first action on its matches, and shown then.

Matches are a frame, so nothing is computed until an action. So the actions of frames and of their writers are watched;
the name of an observation in the plan shows whether its matches were part of the computation.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from weft.algebra.query import Program
from weft.errors import DataWarning, RejectedWarning, callers_level
from weft.runtime.spark.compat import is_frame, is_observed
from weft.runtime.spark.packing.letters import OTHER
from weft.runtime.spark.streams.streaming import COUNTED, observed
from weft.runtime.watching.census import SEEN, doubts_of, is_census, tied_doubt, types_of

_PREFIX = "weft_doubts_"
_WATCHED = "_weft_actions_watched"
_LIMITED = frozenset({"show", "take", "head", "first", "isEmpty", "tail"})  # Spark may not work out all for these
_OF_FRAMES = ("collect", "count", "toPandas", "toArrow", "foreach", "foreachPartition", *sorted(_LIMITED))
_OF_WRITERS = ("save", "saveAsTable", "insertInto", "parquet", "json", "csv", "orc", "text", "xml", "jdbc")
_MOST_PENDING = 64
_COUNTERS = "counters"
_LISTENER_TIMEOUT_S = 2.0  # seconds until Spark's listeners have heard of a finished action
_inside = threading.local()
_pending: list[Noticed] = []


@dataclass(frozen=True)
class Noticed:
    """An observation of a batch whose matches have not been computed yet."""

    name: str
    found: Observation
    program: Program | None
    rejects: bool  # whether they are given to the user anyway
    tells: Callable[[dict[str, Any]], None] | None = None  # instead of what a program's matches show
    of_frame: bool = True  # whether events come from a frame, whose partitions have no order of their own
    types: Callable[[], Iterable[str]] | None = None  # of the first events, where Spark reads them
    filtered: bool = False  # whether Spark filters events by what the program reads


class Counts:
    """How many matches, late and unreadable events a batch had; known after its first action."""

    def __init__(self, item: Noticed, left_out: Sequence[str] = ()) -> None:
        self._item = item
        self._names = {*COUNTED, *left_out}
        self._counted: dict[str, Any] | None = None  # by an action that Spark did not observe

    @property
    def get(self) -> dict[str, Any]:
        """The numbers by name; waits for the first action."""
        found = _values(self._item) if self._counted is None else self._counted
        values = dict.fromkeys(self._names, 0) | found
        return {name: value for name, value in values.items() if name in self._names}

    @contextmanager
    def telling(self) -> Iterator[Callable[[dict[str, Any]], None]]:
        """While an action runs that Spark does not observe: takes what it counted, and tells the user of it."""

        def tell(counted: dict[str, Any]) -> None:
            self._counted = {"tied": 0, **counted}
            if not self._item.of_frame:
                self._counted["tied"] = 0
            if self._item in _pending:
                _pending.remove(self._item)
                _tell(self._item, self._counted, limited=False)

        outer = getattr(_inside, "action", False)
        _inside.action = True
        try:
            yield tell
        finally:
            _inside.action = outer


def noticed(
    output: DataFrame,
    program: Program,
    *,
    rejects: bool,
    of_frame: bool = True,
    left_out: Sequence[str] = (),
    types: Callable[[], Iterable[str]] | None = None,
    filtered: bool = False,
) -> tuple[DataFrame, Counts]:
    """Return the same rows, counted; warnings are shown after the first action that computes them.

    `rejects`: the user is given the events that cannot be read. `of_frame`: events come from a frame, whose partitions
    have no order of their own. `left_out`: the counters of what limits leave out by query. `types`: asks for those of
    the first events; `filtered`: Spark filters events by what the program reads.
    """
    name = _PREFIX + uuid.uuid4().hex
    item = Noticed(name, Observation(name), program, rejects, of_frame=of_frame, types=types, filtered=filtered)
    told = F.when(F.col("query").isNull() & F.col("reason").isNull(), F.col("rejected"))
    if hasattr(output, "_jdf"):
        # Each match passes here, so little is worked out for it: what lanes count is added up in this process.
        frame = output.observe(
            item.found,
            F.count("query").alias("matches"),
            F.count("reason").alias("unreadable"),
            F.min("reason").alias("reason"),
            F.array_join(F.collect_list(told), "\n").alias(_COUNTERS),
        )
    else:
        frame = _observed_on_connect(output, item, told, types_of(program), left_out)
    _pending.append(item)
    del _pending[:-_MOST_PENDING]
    watch_actions(frame)
    return frame, Counts(item, left_out)


def _observed_on_connect(
    output: DataFrame, item: Noticed, told: Column, types: Sequence[str], left_out: Sequence[str]
) -> DataFrame:
    """The same rows, with counters added up by the server: its observations have no lists."""
    counters = F.from_json(told, "map<string,bigint>")

    def total(counter: str) -> Column:
        return F.coalesce(F.sum(F.try_element_at(counters, F.lit(counter))), F.lit(0))

    return observed(
        output,
        item.found,
        (total("tied") if item.of_frame else F.count_if(F.lit(False))).alias("tied"),
        F.min("reason").alias("reason"),
        F.min(told).alias("one"),
        F.max(told).alias("other"),
        *(total(SEEN + name).alias(SEEN + name) for name in types),
        left_out=left_out,
    )


def _values(item: Noticed) -> dict[str, Any]:
    """What was observed by name, with the sums of the lanes' counters."""
    values = dict(item.found.get)
    if _COUNTERS not in values:  # of some lane: the names of what comes
        for text in (values.get("one"), values.get("other")):
            values |= {name: count for name, count in json.loads(text or "{}").items() if is_census(name)}
        return values
    totals: Counter[str] = Counter()
    for text in values.pop(_COUNTERS).splitlines():
        totals.update({name: count for name, count in json.loads(text).items() if isinstance(count, int)})
    if not item.of_frame:
        del totals["tied"]
    return {"tied": 0, **totals, **values}


def notice_later(output: DataFrame, counted: Column, tells: Callable[[dict[str, Any]], None]) -> DataFrame:
    """Return the same rows; after the first action that computes them, the counts are reported."""
    name = _PREFIX + uuid.uuid4().hex
    item = Noticed(name, Observation(name), None, False, tells)
    frame = output.observe(item.found, counted)
    _pending.append(item)
    del _pending[:-_MOST_PENDING]
    watch_actions(frame)
    return frame


def watch_actions(frame: DataFrame) -> None:
    """Ensure that warnings are shown, whichever action computes the matches."""
    for kind, names in ((type(frame), _OF_FRAMES), (type(frame.write), _OF_WRITERS)):
        if not getattr(kind, _WATCHED, False):
            for name in names:
                if hasattr(kind, name):
                    setattr(kind, name, _watched(getattr(kind, name), name))
            setattr(kind, _WATCHED, True)


def _watched(action: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(action)
    def acted(of: Any, *given: Any, **named: Any) -> Any:
        if not _pending or getattr(_inside, "action", False):
            return action(of, *given, **named)
        _inside.action = True
        try:
            result = action(of, *given, **named)
        finally:
            _inside.action = False
        frame = of if is_frame(of) else getattr(of, "_df", None)
        for item in [item for item in _pending if _is_worked_out(item, frame)]:
            _pending.remove(item)
            _tell(item, _values(item), limited=name in _LIMITED)
        return result

    return acted


def _is_worked_out(item: Noticed, frame: Any) -> bool:
    """Whether an action on the frame has given the observation its values."""
    if hasattr(item.found, "_result"):  # Spark Connect: the answer to the action brings them
        return bool(item.found._result)
    if frame is None or item.name not in frame._jdf.queryExecution().logical().toString():
        return False
    latest = time.monotonic() + _LISTENER_TIMEOUT_S
    while not is_observed(item.found):
        if time.monotonic() > latest:
            return False
        time.sleep(0.005)
    return True


def _tell(item: Noticed, values: dict[str, Any], *, limited: bool) -> None:
    if item.tells is not None:
        item.tells(values)
    if item.program is None:
        return
    unread = values["unreadable"]
    if unread and not item.rejects:
        count = f"{unread:,} event{'s' * (unread > 1)}"
        message = f"{count} could not be read; one of the reasons: {values['reason']} (rejects=True gives them)"
        warnings.warn(message, RejectedWarning, stacklevel=callers_level())
    doubts = doubts_of_frame(item.program, values, item.types, filtered=item.filtered, limited=limited)
    for doubt in [*doubts, *tied_doubt(values["tied"])]:
        warnings.warn(doubt, DataWarning, stacklevel=callers_level())


def doubts_of_frame(
    program: Program,
    values: dict[str, Any],
    types: Callable[[], Iterable[str]] | None,
    *,
    filtered: bool,
    limited: bool = False,
) -> list[str]:
    """What the counters of a batch say that is probably not meant; `limited`: perhaps not all was looked at.

    `types` and `filtered`: see `noticed`.
    """
    counts = {name: count for name, count in values.items() if is_census(name) and count}
    named = [SEEN + name for name in types_of(program)]
    has_others = counts.pop(SEEN + OTHER, 0) > 0  # whose types only Spark has seen
    if values.get("matches") and (limited or filtered):
        counts |= dict.fromkeys(named, 1)
    if types is not None and (filtered or has_others) and not counts.keys() >= set(named):
        first = {SEEN + name: 1 for name in types()}
        counts |= first
        if filtered:
            values = {**values, "events": len(first)}  # those that were filtered are not counted
    return doubts_of(program, counts, values, filtered=filtered)
