"""Queries that are deployed and removed over one stream of events, each with state since its deployment.

A deployment adds operators to the matcher, which read events from then on; running queries keep their state and their
results. Rules of all deployments share tables, since they read each other's events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.algebra.query import AnyQuery, Program
from weft.algebra.stored import CLASSES
from weft.errors import UsageError
from weft.optimizer.pipeline import DEFAULT, Choices
from weft.plan.forms.replanning import CostReplanner, has_choice
from weft.plan.planner import plan
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.adapting import Adapting
from weft.runtime.execution.layer_state import with_name
from weft.runtime.execution.matcher import NO_NAMES, NOTHING, Matcher
from weft.runtime.watching.measuring import Sampling
from weft.runtime.watching.triggers import OperatorStats
from weft.statistics import Statistics
from weft.stored import Plain, from_plain, to_plain


@dataclass(eq=False)
class Deployed:
    """One running query: its permanent number, and the attributes that its deployment reads."""

    query: AnyQuery
    number: int
    columns: tuple[str, ...]


SETTLED = 1 << 10  # events after which is counted what passes
MOST_SAMPLED = 64  # queries whose conditions are
MOST_WATCHED = 128  # deployments whose queries may change their form: each measures rates of its own


class Deployments:
    """All deployed queries, in the order of deployment."""

    def __init__(self, choices: Choices = DEFAULT) -> None:
        self._choices = choices._replace(grows=True)
        self.present: list[Deployed] = []
        self.columns: frozenset[str] = frozenset()  # the attributes that some query reads
        self._adapting: list[tuple[Adapting, list[Deployed]]] = []  # with the queries that each may change
        self._matcher = Matcher(NOTHING)
        self._key: tuple[str, ...] = ()
        self._next = 0  # the number of the next query
        self._unit = "ms"
        self._sampling: Sampling | None = None
        self._unsampled = 0  # events since queries came or went

    def identify_by(self, key: tuple[str, ...]) -> None:
        """Identify events by these attributes instead of those in queries."""
        self._key = key
        self._matcher.identify_by(key)

    comes_by_end = True  # the matches of one query, batch by batch
    lane_count = 1

    def check(self, program: Program, added: Sequence[AnyQuery] = (), gone: Collection[Deployed] = ()) -> None:
        """Reject a program that cannot be planned, once other queries are removed."""
        plan(self._choices.applied(program), statistics=self._choices.statistics)

    def deploy(self, program: Program) -> list[Deployed]:
        """Deploy the queries of a program, which read events from now on; an error changes nothing."""
        self.check_readers(program.queries)
        self._unit = program.time_unit
        running = {deployed.number: deployed.query for deployed in self.present}
        chosen = plan(self._choices.applied(program), running, self._next, statistics=self._choices.statistics)
        self._matcher.extend(chosen)
        added = [
            Deployed(query, number, chosen.columns) for number, query in enumerate(program.queries, start=self._next)
        ]
        self._next += len(added)
        self._watch(program, added)
        self._note([*self.present, *added])
        return added

    def _watch(self, program: Program, added: list[Deployed]) -> None:
        """Let new queries adapt, and report the types that they read to the existing ones."""
        for adapting, _ in self._adapting:
            adapting.add_readers({type_ for query in program.queries for type_ in query.reads})
        if len(self._adapting) < MOST_WATCHED and any(map(has_choice, program.queries)):
            adapting = Adapting(self._matcher, CostReplanner(self._choices))
            adapting.watch(program, [deployed.number for deployed in added], [d.query for d in self.present])
            self._adapting.append((adapting, added))

    def remove(self, gone: Collection[Deployed]) -> None:
        """Remove queries."""
        leaving = set(gone)
        kept = [deployed for deployed in self.present if deployed not in leaving]
        _check_followers(kept, gone)
        numbers = {deployed.number for deployed in gone}
        self._matcher.remove(numbers.union(*(adapting.drop(numbers) for adapting, _ in self._adapting)))
        self._adapting = [(adapting, own) for adapting, own in self._adapting if not leaving.issuperset(own)]
        self._note(kept)

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Emit the matches that are final with a batch; the iterator must be exhausted."""
        for adapting, watched in self._adapting:
            adapting.look(batch)
            for deployed in watched:
                deployed.number = adapting.renumbered(deployed.number)
        self._next = max(self._next, self._matcher.next_number)
        self._sample(batch)
        return self._matcher.push(batch)

    def _sample(self, batch: EventBatch) -> None:
        """Start sampling events once queries have been running for a while, as starting takes time."""
        self._unsampled += len(batch)
        if self._sampling is None and self._unsampled >= SETTLED:
            few = tuple(deployed.query for deployed in self.present[:MOST_SAMPLED])
            program = Program("", few, time_unit=self._unit)
            self._sampling = Sampling(program, self._choices.applied(program))
        if self._sampling is not None:
            self._sampling.look(batch)

    @property
    def statistics(self) -> Statistics:
        """The statistics of events since queries were last deployed or removed."""
        return Statistics(origin="measured") if self._sampling is None else self._sampling.statistics()

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """Emit the matches that are final because no later event ends before this time; exhaust the iterator."""
        return self._matcher.advance(time)

    def finish(self) -> list[MatchBatch]:
        """Emit all pending matches: the stream has ended."""
        return self._matcher.finish()

    def oldest(self) -> int | None:
        """Return the first position that a later match may contain, or None."""
        return self._matcher.oldest()

    def operator_stats(self) -> list[OperatorStats]:
        """Return the statistics of operators."""
        return self._matcher.operator_stats()

    @property
    def state_bytes(self) -> int:
        """The bytes of memory that all queries use, by count."""
        return self._matcher.state_bytes

    def bytes_of_query(self, name: str) -> int:
        """Return the bytes that one query uses."""
        return self._matcher.bytes_of_query(name)

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """Evict the oldest partial matches of queries that exceed `limit` bytes."""
        return self._matcher.drop_oldest(limit, names)

    def seconds_of_query(self, name: str) -> float:
        """Return the seconds spent for one query since the first call."""
        return self._matcher.seconds_of_query(name)

    @property
    def counters(self) -> dict[str, int]:
        """All counters, including those of removed queries."""
        counted = Counter(self._matcher.counters)
        for adapting, _ in self._adapting:
            counted.update(adapting.counters)
        return dict(counted)

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""
        return self._matcher.snapshot()

    def structure(self) -> Plain:
        """Return the deployed queries and their structure as plain data, which `restore` needs besides the pages."""
        places = {id(deployed): place for place, deployed in enumerate(self.present)}
        return {
            "present": [[to_plain(one.query), one.number, list(one.columns)] for one in self.present],
            "next": self._next,
            "matcher": self._matcher.structure(),
            "adapting": [
                [adapting.saved(), [places[id(one)] for one in own if id(one) in places]]
                for adapting, own in self._adapting
            ],
        }

    def restore(
        self, structure: Plain, pages: Mapping[str, bytes], time_unit: str, names: Mapping[str, str] = NO_NAMES
    ) -> None:
        """Restore deployments from their structure and pages; queries are renamed by `names`."""
        self._unit = time_unit
        self._matcher = Matcher.rebuilt(structure["matcher"], pages, names)
        self._matcher.identify_by(self._key)
        self._next = structure["next"]
        present = [
            Deployed(with_name(from_plain(query, CLASSES), names), number, tuple(columns))
            for query, number, columns in structure["present"]
        ]
        self._adapting = []
        for saved, places in structure["adapting"]:
            own = [present[place] for place in places]
            others = [one.query for one in present if one not in own]
            adapting = Adapting(self._matcher, CostReplanner(self._choices))
            program = Program("", tuple(one.query for one in own), time_unit=time_unit)
            adapting.watch(program, [one.number for one in own], others)
            adapting.resume(saved)
            self._adapting.append((adapting, own))
        self._note(present)

    def _note(self, present: list[Deployed]) -> None:
        self.present, self._sampling, self._unsampled = present, None, 0
        self.columns = frozenset().union(*{deployed.columns for deployed in present})

    def check_readers(self, added: Iterable[AnyQuery]) -> None:
        """Refuse types that running queries already read. Rules see each other's events regardless of order."""
        for query in added:
            for deployed in self.present:
                reader = deployed.query
                if query.defines in reader.reads and not (query.is_rule and reader.is_rule):
                    raise UsageError(
                        f"{reader.name!r} is deployed already and looks at {query.defines!r}, which would come after "
                        f"it: remove {reader.name!r}, then deploy both"
                    )


def _check_followers(kept: Iterable[Deployed], gone: Collection[Deployed]) -> None:
    """Refuse to remove queries that remaining ones read, except rules read by rules."""
    for deployed in kept:
        reader = deployed.query
        for other in gone:
            if other.query.defines in reader.reads and not (other.query.is_rule and reader.is_rule):
                raise UsageError(
                    f"{reader.name!r} looks at {other.query.defines!r}: remove {reader.name!r} first, or both at once"
                )
