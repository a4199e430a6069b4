"""`weft.tune`: all splits of a pattern, simulated side by side, and the one with the least goal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Literal

from weft.algebra.analysis.dependencies import why_whole
from weft.algebra.query import Program
from weft.algebra.situations import SituationQuery
from weft.described import described
from weft.errors import UsageError
from weft.optimizer.rules.split_sequence import split_sequence, splits_of
from weft.optimizer.splits import quick_split
from weft.plan.keyed import KeyedSequence
from weft.plan.operators import SituationOp
from weft.plan.planner import plan
from weft.statistics import TICKS_PER_SECOND, Statistics
from weft.tuning.goal import Estimate, TuningPoint, best_by_alpha, coefficient_of, estimate, goal, pareto
from weft.tuning.simulation import Measured, Simulation
from weft.tuning.streams import RATE, Domain, Seed, Simulated

RUNS = 121  # more than 120, so that intervals can be told
PILOTS = 12
EVENTS = 4000
MORE = 4  # times as many runs, at most, when the two best cannot be told apart
FIRST_LOOK = 32  # events of the shortest stream whose sets are counted before anything is simulated
MOST_SETS = 1_000  # for each event: a run with more takes too much time and memory

Json = dict[str, object]


Latency = Literal["mean", "p99"]
LATENCIES: tuple[Latency, ...] = ("mean", "p99")


class NothingToTune(UsageError):
    """No split of the program makes a difference."""


@dataclass(frozen=True)
class Alternative:
    """A split, what it reached, and how many events were looked at: for each event, and at an event with sets."""

    split: str
    early: int
    throughput: Estimate
    latency: Estimate
    goal: Estimate
    looked: float
    looked_late: float
    runs: int


@dataclass(frozen=True)
class Tuning:
    """All splits of a pattern; `clear` when the best one's interval is apart from the next one's."""

    pattern: str
    alpha: float
    latency: Latency
    coefficient: float
    alternatives: tuple[Alternative, ...]
    pareto: tuple[str, ...]
    by_alpha: Mapping[float, str]
    chosen: str
    clear: bool
    quick: str

    def to_json(self) -> Json:
        """As JSON values."""
        return {
            "pattern": self.pattern,
            "alpha": self.alpha,
            "latency": self.latency,
            "coefficient": self.coefficient,
            "alternatives": [
                {
                    "split": one.split,
                    "throughput": one.throughput._asdict(),
                    "latency_ms": one.latency._asdict(),
                    "g": one.goal._asdict(),
                    "looked_per_event": one.looked,
                    "looked_per_set": one.looked_late,
                    "runs": one.runs,
                }
                for one in self.alternatives
            ],
            "pareto": list(self.pareto),
            "by_alpha": {str(alpha): split for alpha, split in self.by_alpha.items()},
            "chosen": self.chosen,
            "clear": self.clear,
            "quick": self.quick,
        }


@described(
    program="A compiled program.",
    pattern="The name of the pattern, where the program has several.",
    latency="Which latency counts: of all sets in the mean, or what 99 of 100 take at most.",
    alpha="1 looks at latency only, 0 at throughput only.",
    rates="Events per second, by type; 50 where none are given.",
    domains="The least and greatest value of attributes, by name or `Type.name`; 0 to 100 where none are given.",
    distribution="How events are spread in time: `poisson` or another of `weft tune --help`.",
    events="How many events each simulated stream has.",
    runs="How many streams are simulated for each split.",
    coefficient="Puts both objectives on one scale; without it pilot runs do.",
    more="How many further runs may decide between splits that are close.",
    seed="Of the random streams.",
    progress="A function that is called with the number of runs that are done, and of all.",
)
def tune(
    program: Program,
    pattern: str | None = None,
    *,
    alpha: float = 0.5,
    latency: Latency = "mean",
    rates: Mapping[str, float] | None = None,
    domains: Mapping[str, Domain] | None = None,
    distribution: str = "poisson",
    events: int = EVENTS,
    runs: int = RUNS,
    coefficient: float | None = None,
    more: int = MORE,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Tuning:
    """Simulate every split of a pattern over the same random streams, and choose one.

    Every split finds the same matches, which each run checks.
    """
    if not 0 <= alpha <= 1:
        raise UsageError(f"alpha is between 0 (throughput) and 1 (latency), not {alpha:g}")
    if latency not in LATENCIES:
        raise UsageError(f"latency is 'mean' or 'p99', not {latency!r}")
    if runs < 2 or events < 1 or seed < 0:
        raise UsageError("at least two runs of at least one event are needed, and a seed of at least 0")
    query = pattern_of(program, pattern)
    splits = named_splits(query)
    stream = _stream(program, rates or {}, domains or {}, distribution)
    simulations = {
        name: Simulation(plan(_split(program, query, early)), query.name, stream, events)
        for name, early in splits.items()
    }
    _require_few_sets(next(iter(simulations.values())), events)
    trials = {name: _Trials(simulation, latency) for name, simulation in simulations.items()}
    scale = coefficient if coefficient is not None else _pilots(trials, min(PILOTS, runs), seed)
    _run_all(trials, runs, seed, progress)
    _agree(trials)
    goals = {name: trial.goal(alpha, scale) for name, trial in trials.items()}
    best, *others = sorted(goals, key=lambda name: goals[name].mean)
    for _ in range(more if others else 0):
        if not goals[best].overlaps(goals[others[0]]):
            break
        pair = {name: trials[name] for name in (best, others[0])}
        _run_all(pair, len(trials[best].measured) + runs, seed, progress)
        goals |= {name: trial.goal(alpha, scale) for name, trial in pair.items()}
        best, *others = sorted(goals, key=lambda name: goals[name].mean)
    points = {name: trial.point for name, trial in trials.items()}
    statistics = Statistics(rates={**dict.fromkeys(stream.rates, RATE), **stream.rates})
    early = quick_split(replace(query.situation, split=0), statistics).split
    return Tuning(
        pattern=query.name,
        alpha=alpha,
        latency=latency,
        coefficient=scale,
        alternatives=tuple(trial.result(name, splits[name], goals[name]) for name, trial in trials.items()),
        pareto=tuple(pareto(points)),
        by_alpha=best_by_alpha(points, scale),
        chosen=best,
        clear=not others or not goals[best].overlaps(goals[others[0]]),
        quick=next(name for name, blocks in splits.items() if blocks == early),
    )


# ---------------------------------------------------------------- what is tried


def pattern_of(program: Program, name: str | None) -> SituationQuery:
    """The pattern that is tuned: that of a name, or the only one that can be split."""
    found = [query for query in program.queries if isinstance(query, SituationQuery)]
    named = [query for query in found if query.name == name]
    if name is not None and not named:
        known = ", ".join(query.name for query in found) or "none"
        raise UsageError(f"there is no pattern {name!r}; there are: {known}")
    able = named or [query for query in found if len(splits_of(query.situation)) > 1]
    if len(able) > 1:
        raise UsageError(f"several patterns can be split: name one of {', '.join(query.name for query in able)}")
    if not able or len(splits_of(able[0].situation)) < 2:
        raise NothingToTune(f"no pattern can be split: {_why_whole(found)}")
    if any(op.query is able[0] and isinstance(op.way, KeyedSequence) for op in _situations(program)):
        raise NothingToTune(f"{able[0].name!r} runs on the kernel of equal keys, which is as fast with any split")
    return able[0]


def _why_whole(queries: Sequence[SituationQuery]) -> str:
    reasons = {query.name: why_whole(query.situation) for query in queries}
    return "; ".join(f"{name}: {why}" for name, why in reasons.items() if why) or "there is none"


def _situations(program: Program) -> list[SituationOp]:
    return [op for op in plan(program).operators if isinstance(op, SituationOp)]


def named_splits(query: SituationQuery) -> dict[str, int]:
    """How many blocks each split works out early, by how it is written."""
    blocks = len(splits_of(query.situation))
    return {f"{early}:{blocks - early}": early for early in splits_of(query.situation)}


def _split(program: Program, query: SituationQuery, early: int) -> Program:
    other = replace(query, situation=split_sequence(query.situation, early))
    return replace(program, queries=tuple(other if one is query else one for one in program.queries))


def _stream(
    program: Program, rates: Mapping[str, float], domains: Mapping[str, Domain], distribution: str
) -> Simulated:
    if distribution not in ("poisson", "uniform"):
        raise UsageError(f"events come poisson or uniform, not {distribution!r}")
    chosen = plan(program)
    defined = {query.name for query in program.queries}
    types = sorted((chosen.relevant_types or frozenset()) - defined)
    unknown = sorted(set(rates).difference(types))
    if unknown:
        raise UsageError(f"rates of types that the program does not read: {', '.join(unknown)}")
    ticks = TICKS_PER_SECOND.get(program.time_unit, 1000.0)
    all_rates = {type_: rates.get(type_, RATE) for type_ in types}
    kind = "poisson" if distribution == "poisson" else "uniform"
    return Simulated(all_rates, chosen.columns, domains, kind, ticks)  # type: ignore[arg-type]


# ---------------------------------------------------------------- runs


def _require_few_sets(simulation: Simulation, events: int) -> None:
    """Refuse a pattern with so many sets that its runs would not end: count them in longer and longer streams."""
    length = min(FIRST_LOOK, events)
    while (found := simulation.sets_in(length)) <= MOST_SETS * length:
        if length == events:
            return
        length = min(2 * length, events)
    raise UsageError(
        f"{length:,} simulated events have {found:,} sets already: narrow the context, use the policies repeated first "
        "or last and consumption consume, or give larger domains or fewer events"
    )


class _Trials:
    """The runs of one split so far."""

    def __init__(self, simulation: Simulation, latency: Latency) -> None:
        self._simulation = simulation
        self._latency = latency
        self.measured: list[Measured] = []

    def run(self, seed: Seed) -> None:
        found = self._simulation.run(seed)
        self.measured.append(found if self._latency == "mean" else replace(found, latency=found.slowest))

    @property
    def with_sets(self) -> list[Measured]:
        return [one for one in self.measured if not isnan(one.latency)]

    @property
    def point(self) -> TuningPoint:
        own = self.with_sets
        return TuningPoint(estimate([one.latency for one in own]).mean, estimate([one.throughput for one in own]).mean)

    def goal(self, alpha: float, coefficient: float) -> Estimate:
        return estimate([goal(one.latency, one.throughput, alpha, coefficient) for one in self.with_sets])

    def result(self, name: str, early: int, reached: Estimate) -> Alternative:
        own = self.with_sets
        return Alternative(
            split=name,
            early=early,
            throughput=estimate([one.throughput for one in own]),
            latency=estimate([one.latency for one in own]),
            goal=reached,
            looked=estimate([one.looked for one in own]).mean,
            looked_late=estimate([one.looked_late for one in own]).mean,
            runs=len(self.measured),
        )


def _run_all(trials: Mapping[str, _Trials], runs: int, seed: int, progress: Callable[[int, int], None]) -> None:
    """Run each split with the same seeds, in turn, so that what the machine does meanwhile is the same for all."""
    first = min(len(trial.measured) for trial in trials.values())
    for number in range(first, runs):
        for trial in trials.values():
            trial.run((seed, number))
        progress(number + 1, runs)


def _pilots(trials: Mapping[str, _Trials], runs: int, seed: int) -> float:
    """The coefficient by some runs, which are not counted: they compile kernels and fill caches."""
    for number in range(runs):
        for trial in trials.values():
            trial.run((seed, number, 1))
    found = [trial.point for trial in trials.values() if trial.with_sets]
    for trial in trials.values():
        trial.measured.clear()
    if not found:
        raise UsageError("no set was found in the pilot runs: give more events, other rates or smaller domains")
    return coefficient_of(found)


def _agree(trials: Mapping[str, _Trials]) -> None:
    whole, *others = trials.values()
    if len(whole.with_sets) < 2:
        raise UsageError("hardly any set was found: give more events, other rates or smaller domains")
    for trial in others:
        for one, other in zip(whole.measured, trial.measured, strict=False):
            assert one.found == other.found, "a split found other matches than the whole: please report this"
