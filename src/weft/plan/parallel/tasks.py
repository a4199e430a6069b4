"""How many tasks a program takes at its rates: components and a model in, tasks for each component and lanes out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weft.algebra.query import Program
from weft.errors import plural
from weft.plan.parallel.model import Model
from weft.plan.parallel.rates import MOST_MEMBERS, Component, components_of
from weft.statistics import Statistics

MOST_LANES = 1024  # that are proposed
INDENT = " " * 12


@dataclass(frozen=True)
class Task:
    """A component with its tasks: as the model has them, and whole ones."""

    component: Component
    exact: float
    count: int


def tasks_of(components: Sequence[Component], model: Model) -> list[Task]:
    """The tasks of each component. Those of sources depend on how many tasks they send copies to."""
    found: dict[int, Task] = {}
    for place, component in reversed(list(enumerate(components))):
        sent = component.rate_in
        if component.kind == "source":
            sent = _sent(place, components, found, model)
        found[place] = _task(component, sent, model)
    return [found[place] for place in range(len(components))]


def _task(component: Component, rate: float, model: Model) -> Task:
    form = model.form(component.kind)
    if form is None:
        return Task(component, 0.0, 0)
    exact = form.tasks(rate, model.margin, component.window, component.replicated)
    fits = form.scaled(rate, component.window) <= form.one_task_takes(model.margin)
    if component.kind == "greedy iteration" or fits:
        return Task(component, exact, 1)
    return Task(component, exact, max(2, math.ceil(min(exact, MOST_LANES))))


def _sent(place: int, components: Sequence[Component], tasks: dict[int, Task], model: Model) -> float:
    """What a source sends in a second; a copy is cheaper than an event that is dealt to one of several."""
    sent = 0.0
    for number, component in enumerate(components):
        for stream in component.streams:
            if stream.sender == place:
                copies = tasks[number].count / model.ratio if stream.is_replicated else 1.0
                sent += stream.rate * copies
    return sent


def lanes_for(program: Program, model: Model, statistics: Statistics | None = None) -> int:
    """How many lanes keep up with the program's rates: the sum of all tasks, rounded at the end."""
    tasks = tasks_of(components_of(program, statistics), model)
    return lanes_of(tasks)


def lanes_of(tasks: Sequence[Task]) -> int:
    """So many workers, each with one task at a time."""
    return max(1, math.ceil(min(sum(task.exact for task in tasks), MOST_LANES)))


def rates_json(program: Program, model: Model, statistics: Statistics | None = None) -> dict[str, Any]:
    """Rates and tasks of each component, as JSON values."""
    tasks = tasks_of(components_of(program, statistics), model)
    told = [
        {
            "kind": task.component.kind,
            "name": task.component.name,
            "in": task.component.rate_in,
            "out": task.component.rate_out,
            "tasks": task.count,
            "exact": task.exact,
        }
        for task in tasks
    ]
    return {
        "model": model.name,
        "components": told,
        "tasks": sum(task.exact for task in tasks),
        "lanes": lanes_of(tasks),
    }


def rates_lines(program: Program, model: Model, statistics: Statistics | None = None) -> Iterator[str]:
    """Rates and tasks of each component, for people."""
    tasks = tasks_of(components_of(program, statistics), model)
    made = f", made {model.date} on {model.cores} cores" if model.date else ""
    yield f"  rates     events per second, and tasks by the model {model.name}{made}"
    names = [f"{task.component.kind} ({task.component.name})" for task in tasks]
    width = min(max(map(len, names), default=0), 60)
    yield f"{INDENT}{'':{width}}  {'in':>12}  {'out':>12}  tasks"
    for name, task in zip(names, tasks, strict=True):
        rates = f"{task.component.rate_in:>12,.0f}  {task.component.rate_out:>12,.0f}"
        yield f"{INDENT}{name:{width}}  {rates}  {task.count:>5}  ({task.exact:.3f})"
    total = sum(task.exact for task in tasks)
    yield f"{INDENT}{total:.2f} tasks in all: {plural(lanes_of(tasks), 'lane')}"
    if any(task.component.kind == "any iteration" for task in tasks):
        yield f"{INDENT}a run that nothing bounds is taken to have {MOST_MEMBERS} members"
