"""What a set of rules makes of a finite stream: event by event, each rule tried over everything that came before.

An event has one time for rules, its end. What rules define they see as made of all it is made of, with that start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from weft.algebra.analysis.rule_graph import instant_cycles
from weft.algebra.meaning.match import Match, bindings_of
from weft.algebra.meaning.rule_values import as_kind, value_of, without_summaries
from weft.algebra.meaning.stream import Happening, Stream, positions_of
from weft.algebra.meaning.values import EventDict, Value, ValueScope, holds
from weft.algebra.predicates import Expression, Predicate
from weft.algebra.rules import Absence, Between, Events, Extent, LookBack, Rule, Summary, Within, summaries

Combination = Mapping[str, Happening]  # what each variable is bound to
Consumed = set[tuple[str, Happening]]  # variables, and the events consumed from them


def rule_matches(rules: Sequence[Rule], stream: Stream) -> list[tuple[int, Match]]:
    """All firings of the rules, each with the number of its rule."""
    return rule_history(rules, stream)[0]


def rule_history(rules: Sequence[Rule], stream: Stream) -> tuple[list[tuple[int, Match]], list[Happening]]:
    """Return all firings of the rules, and all events, in the order in which rules see them."""
    cycles = instant_cycles(rules)
    if cycles:
        raise ValueError(f"these rules fire for ever: {' <- '.join((*cycles[0], cycles[0][0]))}")
    history: list[Happening] = []
    consumed: list[Consumed] = [set() for _ in rules]
    found: list[tuple[int, Match]] = []
    for event in stream:
        waiting = deque([event])
        while waiting:
            now = waiting.popleft()
            for rank, rule in enumerate(rules):
                fired = list(firings(rule, now, history, consumed[rank]))
                consumed[rank] |= {(name, firing[name]) for firing in fired for name in rule.consumes}
                for firing in fired:
                    match = _match(rule, firing, history)
                    found.append((rank, match))
                    waiting.append(_defined(match))
            history.append(now)
    return found, history


def _defined(match: Match) -> Happening:
    attributes = {"ts": match.end, "type": match.query, **match.event}
    return Happening(match.query, None, match.start, match.end, match.positions, attributes, is_derived=True)


# ---------------------------------------------------------------- selection


def firings(rule: Rule, now: Happening, history: Sequence[Happening], consumed: Consumed) -> Iterator[Combination]:
    """The combinations for which the rule fires at this event, in the order of what they bind."""
    terminator = rule.terminator
    combination = {terminator.variable: now}
    if not _fits(now, terminator.events, {}) or not are_absent(terminator.absences, combination, history):
        return
    for complete in _combinations(rule.lookbacks, combination, history, consumed):
        if all(condition_holds(condition, complete, history) for condition in rule.conditions):
            yield complete


def _combinations(
    lookbacks: Sequence[LookBack], bound: Combination, history: Sequence[Happening], consumed: Consumed
) -> Iterator[Combination]:
    """What is bound, with every choice that the look-backs take, one look-back after the other."""
    if not lookbacks:
        yield bound
        return
    for taken in _taken(lookbacks[0], bound, history, consumed):
        yield from _combinations(lookbacks[1:], {**bound, lookbacks[0].variable: taken}, history, consumed)


def _taken(
    lookback: LookBack, bound: Combination, history: Sequence[Happening], consumed: Consumed
) -> Sequence[Happening]:
    """The candidates that a look-back takes."""
    candidates = [
        event
        for event in such(lookback.events, lookback.within, bound, history)
        if (lookback.variable, event) not in consumed
        and are_absent(lookback.absences, {**bound, lookback.variable: event}, history)
    ]
    match lookback.pick, lookback.count:
        case "first", int(count):
            return candidates[:count]
        case "last", int(count):
            return candidates[-count:]
    return candidates


def are_absent(absences: Iterable[Absence], bound: Combination, history: Sequence[Happening]) -> bool:
    """Whether none of what must be absent is there."""
    return not any(such(absence.events, absence.extent, bound, history) for absence in absences)


def such(wanted: Events, extent: Extent, bound: Combination, history: Sequence[Happening]) -> list[Happening]:
    """The events of the history that are in the extent and as wanted, in the order in which they came."""
    return [event for event in history if _is_inside(event.end, extent, bound) and _fits(event, wanted, bound)]


def _is_inside(time: int, extent: Extent, bound: Combination) -> bool:
    match extent:
        case Within(anchor, ticks):
            return 0 < bound[anchor].end - time <= ticks
        case Between(first, second):
            earlier, later = sorted((bound[first].end, bound[second].end))
            return earlier < time < later
    raise TypeError(f"not an extent: {extent!r}")


def _fits(event: Happening, wanted: Events, bound: Combination) -> bool:
    scope = ValueScope({None: event.attributes, **{name: other.attributes for name, other in bound.items()}})
    return event.type == wanted.type and all(holds(condition, scope) for condition in (*wanted.static, *wanted.related))


# ---------------------------------------------------------------- what a combination gives


def condition_holds(condition: Predicate, firing: Combination, history: Sequence[Happening]) -> bool:
    """Whether a condition on summaries holds."""
    plain, scope = without_summaries(condition, summarized(condition, firing, history), _attributes(firing))
    return holds(plain, scope)


def _value(expression: Expression, firing: Combination, history: Sequence[Happening]) -> Value | None:
    return value_of(expression, summarized(expression, firing, history), _attributes(firing))


def _attributes(firing: Combination) -> dict[str | None, EventDict]:
    return {name: event.attributes for name, event in firing.items()}


def summarized(
    node: Expression | Predicate, firing: Combination, history: Sequence[Happening]
) -> list[tuple[Summary, list[EventDict]]]:
    """The summaries in a condition or value, and the events each is about."""
    return [
        (part, [event.attributes for event in such(part.events, part.extent, firing, history)])
        for part in summaries(node)
    ]


def _match(rule: Rule, firing: Combination, history: Sequence[Happening]) -> Match:
    positions = positions_of(firing.values())
    start = min(event.start for event in firing.values())
    end = firing[rule.terminator.variable].end
    values: dict[str, object] = {
        field.name: None if field.value is None else as_kind(_value(field.value, firing, history), field.kind)
        for field in rule.fields
    }
    return Match(
        query=rule.name,
        start=start,
        end=end,
        first=min(positions, default=start),
        last=max(positions, default=end),
        positions=positions,
        bindings=bindings_of({name: [event] for name, event in firing.items()}),
        event=values,
    )
