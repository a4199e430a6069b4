"""Near firings of rules (TESLA): chosen events for the steps of a rule, with what fails at each.

At each step the same is asked as in `weft.algebra.meaning.rules`, by its own functions; but what is not so becomes a
failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weft.algebra.meaning.rule_values import value_of
from weft.algebra.meaning.rules import Combination, Consumed, are_absent, condition_holds, firings, such, summarized
from weft.algebra.meaning.stream import Happening, positions_of
from weft.algebra.meaning.values import EventDict, ValueScope, attribute_of, evaluate, holds
from weft.algebra.predicates import Attribute, Predicate
from weft.algebra.rules import LookBack, Rule, Summary, Terminator, mentioned, summaries
from weft.algebra.text.program import expression_text, to_text
from weft.algebra.text.rules import absence_text
from weft.algebra.why.failures import (
    Failure,
    Near,
    SearchBudget,
    condition_failure,
    conjuncts,
    extra,
    listed,
    missing,
    shown,
    wrong_type,
)

NearFiring = Near[Combination]


class RuleReading:
    """The ways in which the chosen events can be read as a firing of a rule, among all events it sees."""

    def __init__(self, rule: Rule, seen: Sequence[Happening], chosen: Sequence[Happening]) -> None:
        self._rule = rule
        self._seen = seen
        self._chosen = chosen
        self._wanted = {position for event in chosen for position in event.positions}
        self._at = {event: number for number, event in enumerate(seen)}
        self._consumed_before: list[Consumed] | None = None
        self._nothing: NearFiring = Near({})

    def nears(self, budget: SearchBudget) -> Iterator[NearFiring]:
        """All readings that are cheap enough."""
        for near in self._bound(self._nothing, self._rule.steps, budget):
            used = {position for event in near.found.values() for position in event.positions}
            failures = (*near.failures, *map(extra, sorted(self._wanted - used)))
            if not near.absent:
                failures = (*failures, *self._unmet(near.found))
            whole = Near(near.found, failures, near.absent)
            if near.found and budget.allows(whole.cost):
                yield whole

    def _bound(
        self, near: NearFiring, steps: Sequence[Terminator | LookBack], budget: SearchBudget
    ) -> Iterator[NearFiring]:
        """The combination so far, with an event, or none, for each step that is left."""
        if not budget.allows(near.cost):
            return
        if not steps:
            yield near
            return
        step = steps[0]
        for event in self._chosen:
            if event.type != step.events.type and event in near.found.values():
                continue  # an event may fill two steps, but then it is what both ask for
            failures = (*near.failures, *self._failures(step, event, near))
            grown: NearFiring = Near({**near.found, step.variable: event}, failures, near.absent)
            yield from self._bound(grown, steps[1:], budget)
        gone = missing([step.variable], [step.events.type])
        without = Near(near.found, (*near.failures, gone), near.absent | {step.variable})
        yield from self._bound(without, steps[1:], budget)

    # ------------------------------------------------------------ one step

    def _failures(self, step: Terminator | LookBack, event: Happening, near: NearFiring) -> Iterator[Failure]:
        bound = {**near.found, step.variable: event}
        history = self._history(bound)
        if event.type != step.events.type:
            yield wrong_type(step.variable, step.events.type, event.type, event.positions)
        for condition in (*step.events.static, *step.events.related):
            yield from _unfit(condition, step.variable, event, near)
        if isinstance(step, LookBack) and step.within.anchor not in near.absent:
            yield from _misplaced(step, event, near.found[step.within.anchor])
        for absence in step.absences:
            if not mentioned(absence) & near.absent:
                found = such(absence.events, absence.extent, bound, history)
                if found:
                    others = positions_of(found)
                    wanted = absence_text(absence, to_text)
                    because = f"there is {listed(others)}"
                    yield Failure("unwanted", step.variable, wanted, because, event.positions, others)
        if isinstance(step, LookBack) and not near.absent:
            yield from self._choice(step, event, near.found, history)

    def _history(self, bound: Combination) -> Sequence[Happening]:
        """What came before the terminator."""
        return self._seen[: self._at[bound[self._rule.terminator.variable]]] if self._terminated(bound) else self._seen

    def _terminated(self, bound: Combination) -> bool:
        return self._rule.terminator.variable in bound

    def _choice(
        self, step: LookBack, event: Happening, bound: Combination, history: Sequence[Happening]
    ) -> Iterator[Failure]:
        consumed = self._consumed(bound[self._rule.terminator.variable])
        if (step.variable, event) in consumed:
            yield Failure("choice", step.variable, "not consumed before", "it was", event.positions)
        if step.pick == "each":
            return
        fitting = [
            other
            for other in such(step.events, step.within, bound, history)
            if other is not event
            and (step.variable, other) not in consumed
            and are_absent(step.absences, {**bound, step.variable: other}, history)
        ]
        here = self._at[event]
        ahead = [other for other in fitting if (self._at[other] < here) == (step.pick == "first")]
        if len(ahead) >= (step.count or 1):
            taken = ahead[: step.count] if step.pick == "first" else ahead[-(step.count or 1) :]
            others = positions_of(taken)
            wanted = f"the {step.pick} {'' if step.count == 1 else step.count} {step.events.type}".replace("  ", " ")
            yield Failure("choice", step.variable, wanted, f"that is {listed(others)}", event.positions, others)

    def _consumed(self, terminator: Happening) -> Consumed:
        """What the rule has consumed when an event comes."""
        if not self._rule.consumes:
            return set()
        if self._consumed_before is None:
            self._consumed_before = []
            consumed: Consumed = set()
            for number, now in enumerate(self._seen):
                self._consumed_before.append(set(consumed))
                fired = list(firings(self._rule, now, self._seen[:number], consumed))
                consumed |= {(name, firing[name]) for firing in fired for name in self._rule.consumes}
        return self._consumed_before[self._at[terminator]]

    # ------------------------------------------------------------ the whole

    def _unmet(self, firing: Combination) -> Iterator[Failure]:
        """The conditions on summaries that do not hold."""
        history = self._history(firing)
        for condition in (part for whole in self._rule.conditions for part in conjuncts(whole)):
            if not condition_holds(condition, firing, history):
                positions = positions_of(firing[name] for name in mentioned(condition))
                values = _summary_values(condition, firing, history)
                yield condition_failure(condition, values, positions, " ".join(sorted(mentioned(condition))))


def _unfit(condition: Predicate, variable: str, event: Happening, near: NearFiring) -> Iterator[Failure]:
    scope = ValueScope({None: event.attributes, **{name: other.attributes for name, other in near.found.items()}})
    for part in conjuncts(condition):
        names = mentioned(part)
        if not names & near.absent and not holds(part, scope):
            read = dict.fromkeys(node for node in part.walk() if isinstance(node, Attribute))
            values = ", ".join(f"{expression_text(node)} is {shown(evaluate(node, scope))}" for node in read)
            positions = [*event.positions, *positions_of(near.found[name] for name in names)]
            yield condition_failure(part, values, positions, " ".join(sorted({variable, *names})))


def _misplaced(step: LookBack, event: Happening, anchor: Happening) -> Iterator[Failure]:
    elapsed = anchor.end - event.end
    positions = tuple(sorted({*event.positions, *anchor.positions}))
    if elapsed <= 0:
        wanted = f"{step.variable} before {step.within.anchor}"
        because = f"{step.variable} is at {event.end}, {step.within.anchor} at {anchor.end}"
        yield Failure("order", f"{step.variable} {step.within.anchor}", wanted, because, positions)
    elif elapsed > step.within.ticks:
        wanted = f"within {step.within.ticks} from {step.within.anchor}"
        yield Failure("bound", step.variable, wanted, f"it is {elapsed} before", positions)


def _summary_values(condition: Predicate, firing: Combination, history: Sequence[Happening]) -> str:
    events: Mapping[str | None, EventDict] = {name: event.attributes for name, event in firing.items()}
    parts: dict[str, str] = {}
    for summary in summaries(condition):
        parts[expression_text(summary)] = shown(value_of(summary, summarized(summary, firing, history), events))
    for node in _outside_summaries(condition):
        parts[expression_text(node)] = shown(attribute_of(events[node.variable], node.name))
    return ", ".join(f"{text} is {value}" for text, value in parts.items())


def _outside_summaries(node: object) -> Iterator[Attribute]:
    if isinstance(node, Summary):
        return
    if isinstance(node, Attribute):
        yield node
    elif hasattr(node, "children"):
        for child in node.children():
            yield from _outside_summaries(child)
