"""A lane of a stream whose queries may change their form at the beginning of a trigger."""

from __future__ import annotations

import json
from collections.abc import Mapping

from weft.errors import UsageError
from weft.optimizer.pipeline import DEFAULT
from weft.plan.forms.replanning import CostReplanner
from weft.plan.partitioning.splits import Lane
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.adapting import Adapting
from weft.runtime.execution.changing import watched as watched_lane
from weft.runtime.execution.matcher import Matcher
from weft.runtime.spark.jobs.job import Job
from weft.runtime.store.pages import FOREIGN
from weft.stored import Plain


class Changing:
    """Watches the events of a lane's matcher. Lanes change on their own, each by the rates of its events."""

    def __init__(self, job: Job, lane: Lane, matcher: Matcher, saved: Plain = None, watched: Plain = None) -> None:
        self._matcher = matcher
        self._numbers: list[int] = list(lane.queries) if saved is None else saved["numbers"]
        self._base = str(Matcher(job.plan, lane).fingerprint) if saved is None else saved["base"]
        if job.adapts is None:
            self._adapting = Adapting(matcher, CostReplanner(DEFAULT))
        else:
            written, choices = job.adapts
            self._adapting = watched_lane(matcher, lane, written, CostReplanner(choices), self._numbers)
        if saved is not None or watched is not None:
            self._adapting.resume(watched if saved is None else saved["adapting"])
        if job.adapts is None:
            self._adapting.stop()

    @property
    def changes(self) -> int:
        """How often the form has changed since the stream began."""
        return self._adapting.changes

    @property
    def refused(self) -> int:
        """How often another form would have been cheaper of a query that cannot change."""
        return self._adapting.refused

    def look(self, batch: EventBatch, *, first: bool) -> None:
        """Take note of events before the matcher sees them: by the `first` of a trigger the form may change."""
        if not first:
            self._adapting.pass_by(len(batch))
            return
        self._adapting.look(batch)
        self._numbers = [self._adapting.renumbered(number) for number in self._numbers]

    def watched(self) -> Plain:
        """Return the measurements so far, from which `restored` continues in any process."""
        return self._adapting.saved()

    def saved(self) -> str | None:
        """What `restored` needs besides the pages of the matcher, or None if its form is that of the plan."""
        if not self.changes:
            return None
        return json.dumps(
            {
                "base": self._base,
                "numbers": self._numbers,
                "adapting": self._adapting.saved(),
                "matcher": self._matcher.structure(),
            }
        )


def restored(
    job: Job, lane: Lane, pages: Mapping[str, bytes], saved: str | None, watched: Plain = None
) -> tuple[Matcher, Changing | None]:
    """The matcher of a lane as its pages have it, and who watches it."""
    if saved is None:
        matcher = Matcher.restore(job.plan, pages, lane)
        return matcher, Changing(job, lane, matcher, watched=watched) if job.adapts else None
    form = json.loads(saved)
    if form["base"] != str(Matcher(job.plan, lane).fingerprint):
        raise UsageError(FOREIGN)
    matcher = Matcher.rebuilt(form["matcher"], pages, lane=lane)
    return matcher, Changing(job, lane, matcher, form)


def gone_layers(matcher: Matcher, names: list[str], prefix: str) -> list[str]:
    """The names of pages that belong to layers which are there no more."""
    present = {layer.number for layer in matcher.layers}
    layered = [name for name in names if name.startswith(f"{prefix}layer/")]
    return [name for name in layered if int(name.removeprefix(f"{prefix}layer/").split("/")[0]) not in present]
