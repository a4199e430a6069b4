"""Near matching sets of situations (EPN): chosen events in the slots of a pattern, with what fails there.

What a slot, an order, an assertion and a context ask is asked as in `weft.algebra.meaning.situations`; which policies
keep a set from being selected is found by selecting without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from weft.algebra.meaning.partitions import key_of, partitions
from weft.algebra.meaning.situations import Candidate, is_seen, read_of, satisfies, selected_in
from weft.algebra.meaning.stream import Happening, positions_of
from weft.algebra.meaning.values import ValueScope, attribute_of, holds
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.predicates import And, Attribute, IsNull, Or, Predicate
from weft.algebra.situations import Participant, Situation, SituationQuery
from weft.algebra.terms import mentioned
from weft.algebra.text.program import expression_text
from weft.algebra.text.situations import context_text
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
from weft.algebra.why.keys import KEY, same_key

NearSet = Near[Candidate]
OTHER = "\0other"  # an attribute of all events that are not chosen


class SituationReading:
    """The ways in which the chosen events can be read as a matching set, among all events a situation sees."""

    def __init__(self, query: SituationQuery, seen: Sequence[Happening], chosen: Sequence[Happening]) -> None:
        # Conditions are divided, so that each can fail on its own.
        self._situation = _divided(query.situation)
        self._seen = seen
        self._chosen = chosen
        self._wanted = {position for event in chosen for position in event.positions}
        self._last = max((event.end for event in seen if not event.is_derived), default=0)

    def nears(self, budget: SearchBudget) -> Iterator[NearSet]:
        """All readings that are cheap enough."""
        if self._situation.kind == "absence":
            yield self._absence()
            return
        for near in self._filled(budget):
            used = {position for event in near.found if event is not None for position in event.positions}
            unused = map(extra, sorted(self._wanted - used))
            failures = (*near.failures, *unused, *self._unsatisfied(near))
            whole = replace(near, failures=failures)
            if not used or not budget.allows(whole.cost):
                continue
            whole = replace(whole, failures=(*failures, *self._outside(whole)))
            if budget.allows(whole.cost):
                yield whole

    def bindings(self, near: NearSet) -> dict[str, tuple[int, ...]]:
        """The positions that each variable has in a reading."""
        pairs = zip(self._situation.variables, near.found, strict=True)
        return {variable: event.positions for variable, event in pairs if event is not None}

    # ------------------------------------------------------------ slots

    def _filled(self, budget: SearchBudget) -> Iterator[NearSet]:
        slots = self._situation.participants
        if self._situation.kind == "any":
            for number, slot in enumerate(slots):
                for event in self._chosen:
                    found = tuple(event if at == number else None for at in range(len(slots)))
                    yield Near(found, tuple(_unfit(slot, event)))
            return
        yield from self._full(Near[Candidate](()), slots, budget)

    def _full(self, near: NearSet, slots: Sequence[Participant], budget: SearchBudget) -> Iterator[NearSet]:
        if not budget.allows(near.cost):
            return
        if not slots:
            yield near
            return
        slot = slots[0]
        for event in self._chosen:
            if event not in near.found:
                failures = (*near.failures, *_unfit(slot, event), *self._misplaced(near, slot, event))
                yield from self._full(Near((*near.found, event), failures, near.absent), slots[1:], budget)
        gone = missing([slot.variable], [slot.type])
        yield from self._full(
            Near((*near.found, None), (*near.failures, gone), near.absent | {slot.variable}), slots[1:], budget
        )

    def _misplaced(self, near: NearSet, slot: Participant, event: Happening) -> Iterator[Failure]:
        before = [(at, other) for at, other in enumerate(near.found) if other is not None]
        if self._situation.kind == "sequence" and before and not before[-1][1].is_before(event):
            at, other = before[-1]
            name = self._situation.variables[at]
            because = f"{name} ends at {other.end}, {slot.variable} starts at {event.start}"
            positions = tuple(sorted({*other.positions, *event.positions}))
            yield Failure("order", f"{name} {slot.variable}", f"{name} before {slot.variable}", because, positions)

    def _unsatisfied(self, near: NearSet) -> Iterator[Failure]:
        events = dict(zip(self._situation.variables, near.found, strict=True))
        scope = ValueScope(read_of(self._situation, near.found))
        for condition in self._situation.assertion:
            names = mentioned(condition)
            if names & near.absent or holds(condition, scope):
                continue
            read = dict.fromkeys(node for node in condition.walk() if isinstance(node, Attribute))
            values = [
                f"{expression_text(node)} is {shown(attribute_of(scope.chosen[node.variable], node.name))}"
                for node in read
            ]
            positions = [p for name in names for p in (events[name].positions if events[name] else ())]  # type: ignore[union-attr]
            yield condition_failure(condition, ", ".join(values), positions, " ".join(sorted(names)))

    # ------------------------------------------------------------ context and policies

    def _outside(self, near: NearSet) -> list[Failure]:
        members = [event for event in near.found if event is not None]
        positions = positions_of(members)
        by = self._situation.context.by
        keys = {key_of(event, by) for event in members}
        if len(keys) == 1 and None not in keys:
            return self._kept_out(near, positions, self._situation, self._seen)
        values = [", ".join(shown(attribute_of(e.attributes, name)) for name in by) for e in members]
        differ = Failure(
            "key", "context", f"the same {', '.join(by)}", f"it is {', '.join(dict.fromkeys(values))}", positions
        )
        keyed = replace(self._situation, context=replace(self._situation.context, by=(KEY,)))
        worlds = same_key(self._seen, members, lambda event: key_of(event, by))
        return [differ, *min((self._kept_out(near, positions, keyed, world) for world in worlds), key=len)]

    def _kept_out(
        self, near: NearSet, positions: tuple[int, ...], situation: Situation, seen: Sequence[Happening]
    ) -> list[Failure]:
        """What keeps a set out, of events that have the same key: the spans of a context, or else policies."""
        places = {event.place for event in near.found if event is not None}
        parts = partitions(situation.context, seen, self._last)
        if not any(places <= {event.place for event in part.events} for part in parts):
            text = context_text(self._situation.context)
            return [Failure("bound", "context", text, "no partition has all of them", positions)]
        soft = all(failure.kind == "condition" for failure in near.failures)
        return self._unselected(near, positions, situation, seen) if soft and not near.absent else []

    def _unselected(
        self, near: NearSet, positions: tuple[int, ...], situation: Situation, seen: Sequence[Happening]
    ) -> list[Failure]:
        """The fewest policies without which the set is selected, supposing that its conditions hold."""
        loosened, marked = self._loosened(near, situation, seen)
        twins = {event.place: event for event in marked}
        wanted = tuple(None if event is None else twins[event.place] for event in near.found)
        parts = partitions(situation.context, marked, self._last)
        policies = list(_policies(situation))
        for count in range(len(policies) + 1):
            for dropped in combinations(policies, count):
                tried = loosened
                for name in dropped:
                    tried = _without(tried, name)
                if any(wanted in selected_in(tried, part) for part in parts):
                    return [_policy_failure(situation, name, positions) for name in dropped]
        return [_policy_failure(situation, "evaluation", positions)]

    def _loosened(
        self, near: NearSet, situation: Situation, seen: Sequence[Happening]
    ) -> tuple[Situation, list[Happening]]:
        """The situation and what it sees, such that the conditions that fail hold for the chosen events."""
        failing = {failure.wanted for failure in near.failures}
        chosen = {event.place for event in near.found if event is not None}
        marked = [
            event if event.place in chosen else replace(event, attributes={**event.attributes, OTHER: True})
            for event in seen
        ]

        def loose(condition: Predicate, variables: Iterable[str]) -> Predicate:
            if expression_text(condition) not in failing:
                return condition
            return Or((condition, And(tuple(IsNull(Attribute(OTHER, name)) for name in variables))))

        slots = tuple(
            replace(slot, where=tuple(loose(part, [slot.variable]) for part in slot.where))
            for slot in situation.participants
        )
        assertion = tuple(loose(part, situation.variables) for part in situation.assertion)
        return replace(situation, participants=slots, assertion=assertion), marked

    # ------------------------------------------------------------ absences

    def _absence(self) -> NearSet:
        """An absence has no events: a chosen one that is looked for keeps it from being."""
        failures = []
        for event in self._chosen:
            found = self._looked_for(event)
            because = f"{listed(event.positions)} is there" if found else "it is none of those that must be absent"
            kind = "unwanted" if found else "extra"
            types = " or ".join(dict.fromkeys(slot.type for slot in self._situation.participants))
            wanted = f"no such {types}" if found else "every chosen event takes part"
            failures.append(Failure(kind, "absence", wanted, because, event.positions))  # type: ignore[arg-type]
        return Near((None,) * len(self._situation.participants), tuple(failures))

    def _looked_for(self, event: Happening) -> bool:
        slots = self._situation.participants
        return any(
            event.type == slot.type
            and is_seen(slot, event)
            and satisfies(self._situation, tuple(event if at == n else None for at in range(len(slots))))
            for n, slot in enumerate(slots)
        )


def _divided(situation: Situation) -> Situation:
    slots = tuple(
        replace(slot, where=tuple(part for whole in slot.where for part in conjuncts(whole)))
        for slot in situation.participants
    )
    assertion = tuple(part for whole in situation.assertion for part in conjuncts(whole))
    return replace(situation, participants=slots, assertion=assertion)


def _unfit(slot: Participant, event: Happening) -> Iterator[Failure]:
    if event.type != slot.type:
        yield wrong_type(slot.variable, slot.type, event.type, event.positions)
    scope = ValueScope({slot.variable: event.attributes})
    for part in slot.where:
        if not holds(part, scope):
            read = dict.fromkeys(node.name for node in part.walk() if isinstance(node, Attribute))
            values = ", ".join(f"{name} is {shown(attribute_of(event.attributes, name))}" for name in read)
            yield condition_failure(part, values, event.positions, slot.variable)


# ---------------------------------------------------------------- policies


def _policies(situation: Situation) -> Iterator[str]:
    """The policies that can keep a set from being selected, by name; those of slots with their variable."""
    if situation.evaluation is not Evaluation.IMMEDIATE:
        yield "evaluation"
    if situation.cardinality is not Cardinality.UNRESTRICTED:
        yield "cardinality"
    for slot in situation.participants:
        if slot.repeated is not Repeated.EVERY:
            yield f"repeated {slot.variable}"
        if slot.consumption is not Consumption.REUSE:
            yield f"consumption {slot.variable}"


def _without(situation: Situation, name: str) -> Situation:
    policy, _, variable = name.partition(" ")
    match policy:
        case "evaluation":
            return replace(situation, evaluation=Evaluation.IMMEDIATE)
        case "cardinality":
            return replace(situation, cardinality=Cardinality.UNRESTRICTED)
    loose = {"repeated": {"repeated": Repeated.EVERY}, "consumption": {"consumption": Consumption.REUSE}}[policy]
    slots = tuple(
        replace(slot, **loose) if slot.variable == variable else slot  # type: ignore[arg-type]
        for slot in situation.participants
    )
    return replace(situation, participants=slots)


def _policy_failure(situation: Situation, name: str, positions: tuple[int, ...]) -> Failure:
    policy, _, variable = name.partition(" ")
    because = "another set is selected"
    match policy:
        case "evaluation":
            value, because = situation.evaluation.value, "the partition does not close with this set"
        case "cardinality":
            value, because = situation.cardinality.value, "another set was selected before"
        case _:
            slot = next(slot for slot in situation.participants if slot.variable == variable)
            value = (slot.repeated if policy == "repeated" else slot.consumption).value
            because = "another event fills the slot" if policy == "repeated" else "an event was consumed before"
    return Failure("choice", variable, f"{policy} {value}", because, positions)
