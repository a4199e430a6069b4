"""What every task of one run of weft on Spark must know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from weft.plan.operators import Plan
from weft.runtime.order import Reading
from weft.runtime.spark.lanes import Lane, lanes_of, spread


@dataclass(frozen=True)
class Job:
    """A plan, its lanes and how events are read; sent to the tasks by value. `empty`: match nothing, to measure the rest."""

    plan: Plan
    lanes: tuple[Lane, ...]
    reading: Reading
    empty: bool = False

    @cached_property
    def query_names(self) -> list[str]:
        """The names of the queries in their order."""
        return [operator.query.name for operator in self.plan.queries]


def job_of(plan: Plan, reading: Reading, shares: int, *, empty: bool = False) -> Job:
    """The job of a plan, over `shares` lanes for each group of queries with a key."""
    reading = replace(reading, columns=frozenset(plan.columns), catalog=plan.program.catalog)
    return Job(plan, spread(lanes_of(plan, shares)), reading, empty)
