"""What every task of one run of weft on Spark must know."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from weft.algebra.query import Program
from weft.errors import UsageError
from weft.optimizer.pipeline import Choices
from weft.plan.operators import Plan
from weft.plan.partitioning.by_key import ByKey
from weft.plan.partitioning.by_match import ByMatch
from weft.plan.partitioning.by_rank import ByRank
from weft.plan.partitioning.by_slice import BySlice, usual
from weft.plan.partitioning.splits import Lane
from weft.plan.properties import ALL_FIELDS, columns_without_fields
from weft.runtime.data.shape import Shape
from weft.runtime.lanes.sieve import Sieve
from weft.runtime.limits.guarding import NO_LIMITS, Limits
from weft.runtime.reading.order import Reading
from weft.runtime.spark.jobs.generations import Generation
from weft.runtime.spark.jobs.lane_ids import spread
from weft.runtime.watching.tallies import Tallying
from weft.stored import canonical_text

if TYPE_CHECKING:
    from weft.runtime.spark.files.batches import Reader


UNLIMITED = "budgets and shedding are for queries that run whole: leave out the strategy 'placed'"
NOT_PLACED = "the strategy 'placed' is for whole inputs: in a stream each query runs whole"
MOST_COUNTERS = 200  # each is a column that Spark adds up


@dataclass(frozen=True)
class Seed:
    """What a lane knows that has seen all triggers so far, and none of the events: how far the stream has come."""

    head: bytes
    runs: tuple[bytes, ...]  # those that wait, without events


@dataclass(frozen=True)
class Job:
    """A plan, its lanes and how events are read; sent to the tasks by value.

    `streaming`: events may turn out to be late. `empty`: match nothing, to measure the rest. `shape`: that of results;
    None: rows of MATCH_SCHEMA. `limits`: what it may take. `adapts`: the program as it was written, and how it was
    rewritten, if lanes may change its form while they run.
    """

    plan: Plan
    lanes: tuple[Lane, ...]
    reading: Reading
    streaming: bool = False
    empty: bool = False
    shape: Shape | None = None
    limits: Limits = NO_LIMITS
    adapts: tuple[Program, Choices] | None = None
    readers: Mapping[str, Reader] | None = None  # of files, by format: late events are looked up there
    topics: Mapping[int, str] = field(default_factory=dict)  # sources that are no files, and what they are called
    generations: tuple[Generation, ...] = ()  # of a run whose program has changed; else all lanes are of the plan
    partitions: int = 0  # how many there are for grouped data, if not as many as lanes
    record: str | None = None  # what runs, as lanes of a DataFrame keep it with their state
    seed: Seed | None = None  # where lanes begin that have no state yet
    positions: bool = True  # whether positions are told
    jump: int | None = None  # ticks that an event of a stream may be ahead of the others before time follows it
    tallies: bool = False  # whether statistics of a stream's events are told
    counted: frozenset[str] = frozenset()  # queries whose matches are counted, and not told
    bounds: tuple[int, ...] = ()  # between time ranges of a whole input, in which positions are counted
    is_anonymous: bool = False  # whether neither ids nor rejected events are told, so that conditions alone read events

    @cached_property
    def counts_positions(self) -> bool:
        """Whether lanes need positions in the whole input, because they are shown or queries depend on them."""
        by_event = any(isinstance(lane.split, BySlice) and lane.split.unit == "events" for lane in self.lanes)
        shown = self.positions or self.stages > 1
        return shown or by_event or any(query.counts_events for query in self.plan.queries)

    @property
    def stages(self) -> int:
        """How many stages its lanes have; those of later ones read what those before them send."""
        return 1 + max((lane.stage for lane in self.lanes), default=0)

    @property
    def counts_by_range(self) -> bool:
        """Whether time ranges of a whole input order their events before lanes are given theirs."""
        return self.counts_positions and not self.streaming and len(self.lanes) > 1

    @property
    def leaving_out(self) -> Plan | None:
        """The plan of a stream that may leave out events which no query can use, or None if it may not."""
        plans = [own.plan for own in self.generations] or [self.plan]
        kept = self.counts_positions or self.reading.key or self.adapts or not self.limits.is_none or len(plans) > 1
        return None if kept or not self.streaming else plans[0]

    @cached_property
    def sieve(self) -> Sieve | None:
        """What leaves them out."""
        return None if self.leaving_out is None else Sieve(self.leaving_out)

    @cached_property
    def tallying(self) -> Tallying | None:
        """What counts a stream's events, if that is asked for; it lives as long as the worker has the job."""
        return Tallying(self.plan.program, apart=True) if self.tallies else None

    @property
    def left_out(self) -> list[str]:
        """The counters of what the limits leave out by query; none where there would be very many."""
        names = [] if self.limits.is_none else self.limits.guard(self.plan.queries).counter_names
        return names if len(names) <= MOST_COUNTERS else []

    @cached_property
    def query_names(self) -> list[str]:
        """The names of the queries in their order."""
        return [query.name for query in self.plan.queries]

    def beginnings(self, lane: Lane) -> tuple[int, str]:
        """How many lanes began with a lane, and how work is shared out to them, as a short text."""
        generation = self.generation_of(lane)
        lanes = self.lanes if generation is None else generation.lanes
        ways = canonical_text([(lane.split, lane.queries, lane.share, lane.shares) for lane in lanes])
        return len(lanes), hashlib.blake2b(ways.encode(), digest_size=8).hexdigest()

    @property
    def finds(self) -> tuple[object, ...]:
        """What the state of a lane is for: queries, and what ids are made of."""
        changes = [
            (own.numbers, own.gone, dict(own.names), dict(own.since), dict(own.until)) for own in self.generations
        ]
        return self.plan.queries, self.reading.key, changes, self.positions, self.counts_positions

    def generation_of(self, lane: Lane) -> Generation | None:
        """The generation that a lane belongs to, if there were several programs."""
        return next((own for own in self.generations if lane.queries[0] in own.numbers), None)

    @property
    def has_keys(self) -> bool:
        """Whether keys are shared out to several lanes."""
        return any(isinstance(lane.split, ByKey) and lane.shares > 1 for lane in self.lanes)

    def lane_named(self, lane_id: int) -> Lane:
        """The lane that Spark knows by this id."""
        return next(lane for lane in self.lanes if lane.id == lane_id)

    def has_lane(self, lane_id: int) -> bool:
        """Whether there is such a lane, still."""
        return any(lane.id == lane_id for lane in self.lanes)

    def reports_late(self, lane: Lane) -> bool:
        """Whether this lane reports its late events: those of the first queries do, of copies one."""
        first = self.lanes[0]
        is_first = (lane.split, lane.queries) == (first.split, first.queries)
        return is_first and (lane.share == 0 or not lane.split.copies)


def job_of(
    plan: Plan,
    reading: Reading,
    shares: int,
    *,
    partitions: int | None = None,
    streaming: bool = False,
    empty: bool = False,
    shape: Shape | None = None,
    adapts: tuple[Program, Choices] | None = None,
    positions: bool = True,
) -> Job:
    """Return the job of a plan, with `shares` lanes for queries that can be split.

    `partitions`: how many there are for grouped data; by default one per lane. `positions`: whether they
    are shown.
    """
    if streaming and plan.placed:
        raise UsageError(NOT_PLACED)
    program = plan.program
    sources = tuple(source.type for source in program.inputs)
    shown = frozenset[str]() if shape is None else frozenset(shape.input.names)
    reading = replace(reading_columns(reading, plan, shape), catalog=program.catalog, sources=sources, shown=shown)
    lanes = tuple(replace(lane, split=usual(lane.split)) for lane in plan.lanes_for(shares))
    lanes = spread(lanes, partitions or len(lanes))
    return Job(
        plan, lanes, reading, streaming, empty, shape, adapts=adapts, partitions=partitions or 0, positions=positions
    )


def reading_columns(reading: Reading, plan: Plan, shape: Shape | None) -> Reading:
    """The reading of what a plan reads: of `SELECT *` nothing where results take it from the events that they show."""
    lean = shape is not None and shape.fields is not None
    columns = columns_without_fields(plan.program.queries, plan.columns) if lean else frozenset(plan.columns)
    return replace(reading, columns=columns - {ALL_FIELDS}, all_fields=ALL_FIELDS in columns)


def limited(job: Job, limits: Limits) -> Job:
    """The job within limits. Lanes that share out the matches of the same events must see and keep the same."""
    if job.plan.placed and not limits.is_none:
        raise UsageError(UNLIMITED)
    guard = limits.guard(job.plan.queries)  # what is wrong with them shows now
    copied = next((lane.split.strategy for lane in job.lanes if lane.split.copies and lane.shares > 1), None)
    if guard.shedder is not None and copied is not None:
        raise UsageError(
            f"lanes of the strategy {copied!r} must see the same events, so none are shed: use the strategy 'one'"
        )
    dealt = (lane.split.strategy for lane in job.lanes if isinstance(lane.split, ByRank | ByMatch) and lane.shares > 1)
    if guard.drops and (strategy := next(dealt, None)) is not None:
        raise UsageError(
            f"lanes of the strategy {strategy!r} share out the matches of what each of them keeps, so nothing is "
            "dropped of it: use the strategy 'key' or 'one', or a budget that stops"
        )
    return replace(job, limits=limits)


def successive_job(job: Job, program: Program, generations: tuple[Generation, ...], seed: Seed | None) -> Job:
    """A job of several generations, for what is left of them; `job` has the reading and the shape."""
    plans = [generation.plan for generation in generations]
    names = frozenset(name for plan in plans for name in plan.columns)
    types = [plan.relevant_types for plan in plans]
    known = [own for own in types if own is not None]
    whole = replace(
        job.plan,
        program=program,
        layers=(),
        lanes=(),
        columns=tuple(sorted(names)),
        relevant_types=frozenset().union(*known) if len(known) == len(types) else None,
    )
    lanes = tuple(lane for generation in generations for lane in generation.lanes_left)
    reading = replace(job.reading, columns=names - {ALL_FIELDS}, all_fields=ALL_FIELDS in names)
    return replace(job, plan=whole, lanes=lanes, reading=reading, generations=generations, seed=seed, adapts=None)
