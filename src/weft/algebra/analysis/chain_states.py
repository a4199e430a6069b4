"""What a chain allows at each moment: states with edges, as FlinkCEP's compiler of patterns makes them.

A partial match is in one state. On an event it follows every edge whose condition the event satisfies: TAKE binds the
event, IGNORE passes over it, PROCEED looks at the same event from another state. A stop state ends the partial match,
whatever else it could do. Links are made into states from the last to the first, so that each knows what follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from weft.algebra.chains import Chain, Contiguity, Fits, Link
from weft.algebra.predicates import Always, And, Not, Predicate

ANYTHING: Predicate = Always()


class Act(Enum):
    """What following an edge does with the event."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"


@dataclass(eq=False)
class ChainEdge:
    """To a state, for events that satisfy the condition."""

    act: Act
    target: ChainState
    condition: Predicate


@dataclass(eq=False)
class ChainState:
    """A place in a chain: `name` is the variable that events taken from here are bound to."""

    name: str
    final: bool = False
    stop: bool = False
    edges: list[ChainEdge] = field(default_factory=list)

    def add(self, act: Act, target: ChainState, condition: Predicate = ANYTHING) -> None:
        """One more edge."""
        self.edges.append(ChainEdge(act, target, condition))

    def copied(self) -> ChainState:
        """A state with the same edges; those to itself lead to the copy."""
        copy = ChainState(self.name, self.final, self.stop)
        copy.edges = [replace(edge, target=copy if edge.target is self else edge.target) for edge in self.edges]
        return copy

    def yield_to(self, condition: Predicate) -> None:
        """Follow no edge on events that satisfy a condition: something greedy takes them."""
        for edge in self.edges:
            edge.condition = both(edge.condition, Not(condition))


def both(one: Predicate, other: Predicate) -> Predicate:
    """The conjunction, without what is always true."""
    parts = tuple(part for part in (one, other) if part != ANYTHING)
    return And(parts) if len(parts) > 1 else parts[0] if parts else ANYTHING


def start_state(chain: Chain) -> ChainState:
    """The state in which every partial match of the chain begins."""
    return _Compiler().sequence(_Place(chain.links, len(chain.links) - 1), ChainState("", final=True))


@dataclass(frozen=True)
class _Place:
    """A link with what is around it. `first`: its group is entered, not gone through again."""

    links: tuple[Link, ...]
    index: int
    group: Link | None = None
    first: bool = True
    after: Link | None = None  # what follows the group

    @property
    def link(self) -> Link:
        return self.links[self.index]

    @property
    def following(self) -> Link | None:
        return self.links[self.index + 1] if self.index + 1 < len(self.links) else self.after

    @property
    def heads_group(self) -> bool:
        return self.group is not None and self.index == 0

    @property
    def heads_optional_group(self) -> bool:
        """Whether the group that it opens may be left out, here where it is entered."""
        return self.heads_group and self.first and self.group is not None and self.group.optional

    @property
    def nots(self) -> list[Link]:
        """The negated links that still hold here: those before it, with nothing but optional links between."""
        found = []
        for link in reversed(self.links[: self.index]):
            if _is_not_followed(link):
                found.append(link)
            elif not link.optional:
                break
        return found

    def take(self) -> Predicate:
        """What an event must satisfy to be taken."""
        return self._until(_fits(self.link))

    def proceed(self) -> Predicate:
        """Which events let a partial match go on without the link: inside a group none that satisfies its `until`."""
        return self._until(ANYTHING)

    def ignore(self) -> Predicate | None:
        """What may be passed over before the first event of the link, or None for nothing."""
        contiguity = self.link.contiguity
        if self.heads_group and self.group is not None:
            contiguity = self.group.contiguity if self.first else self.group.inner
        return self._passed_over(contiguity)

    def inner_ignore(self) -> Predicate | None:
        """What may be passed over between events of the link."""
        contiguity = self.group.inner if self.heads_group and self.group is not None else self.link.inner
        return self._passed_over(contiguity)

    def _passed_over(self, contiguity: Contiguity) -> Predicate | None:
        if contiguity is Contiguity.STRICT:
            return None
        return self._until(ANYTHING if contiguity is Contiguity.ANY else Not(_fits(self.link)))

    def _until(self, condition: Predicate) -> Predicate:
        return condition if self.group is None else _unless(condition, self.group.until)


def _fits(link: Link) -> Predicate:
    return ANYTHING if link.fits == Fits() else link.fits


def _unless(condition: Predicate, until: Fits | None) -> Predicate:
    return condition if until is None else both(Not(until), condition)


def _is_not_followed(link: Link) -> bool:
    return link.negated and link.contiguity is not Contiguity.STRICT


class _Compiler:
    def __init__(self) -> None:
        self._stops: dict[str, ChainState] = {}
        self._ungreedy: dict[ChainState, ChainState] = {}  # what a state was before it yielded to something greedy

    def sequence(self, place: _Place, sink: ChainState) -> ChainState:
        """The states of all links up to the place, of which the first is given."""
        for index in range(place.index, -1, -1):
            here = replace(place, index=index)
            if _is_not_followed(here.link):
                continue  # it is in the edges of its neighbours
            sink = self._not_next(here, sink) if here.link.negated else self._link(here, sink)
        return sink

    def _not_next(self, place: _Place, sink: ChainState) -> ChainState:
        state = ChainState(place.link.name)
        refused = place.take()
        state.add(Act.IGNORE if sink.final else Act.PROCEED, sink, Not(refused))
        state.add(Act.PROCEED, self._stop(refused, place.link.name), refused)
        return state

    def _link(self, place: _Place, sink: ChainState) -> ChainState:
        link = place.link
        if link.most is None:
            looping = self._looping(place, self._without_nots(place, sink))
            state = self._times(place, looping, sink, link.least, link.least)
        elif (link.least, link.most) != (1, 1):
            state = self._times(place, sink, sink, link.least, link.most)
        else:
            state = self._single(place, sink, sink, place.take(), place.ignore(), optional=link.optional)
        self._add_stops(place, state)
        return state

    def _times(self, place: _Place, sink: ChainState, beyond: ChainState, least: int, most: int) -> ChainState:
        """So many events; from the least on, the chain may go on `beyond`."""
        link = place.link
        take = _unless(place.take(), link.until)
        inner = place.inner_ignore()
        inner = None if inner is None else _unless(inner, link.until)
        if link.greedy and least != most:
            if link.until is not None:
                self._ungreedy[sink] = sink.copied()
            sink.yield_to(take)
        last = sink
        for number in range(most - 1):
            last = self._single(place, last, beyond, take, inner, optional=number < most - least, again=True)
            self._add_stop_after(place, last)
        return self._single(place, last, beyond, take, place.ignore(), optional=link.optional)

    def _single(
        self,
        place: _Place,
        sink: ChainState,
        beyond: ChainState,
        take: Predicate,
        ignore: Predicate | None,
        *,
        optional: bool,
        again: bool = False,
    ) -> ChainState:
        """One event (or one time the group), after which the chain is in `sink`; if optional, it may go `beyond`."""
        if place.link.group:
            return self._group(place, sink, beyond if optional else None, first=not again)
        state = ChainState(place.link.name)
        sink = self._without_nots(place, sink)
        state.add(Act.TAKE, sink, take)
        if optional:
            self._proceed(state, place, beyond)
        if ignore is not None:
            waiting = state
            if optional or place.heads_optional_group:
                waiting = ChainState(place.link.name)
                waiting.add(Act.TAKE, sink, take)
                waiting.add(Act.IGNORE, waiting, ignore)
                self._add_stops(place, waiting)
            state.add(Act.IGNORE, waiting, ignore)
        return state

    def _proceed(self, state: ChainState, place: _Place, beyond: ChainState) -> None:
        """Go on without another event; something greedy does so as it did before, once `until` came."""
        link = place.link
        if link.greedy and link.until is not None:
            state.add(Act.PROCEED, self._ungreedy.get(beyond, beyond), both(place.proceed(), link.until))
            state.add(Act.PROCEED, beyond, both(place.proceed(), Not(link.until)))
        else:
            state.add(Act.PROCEED, beyond, place.proceed())

    def _looping(self, place: _Place, sink: ChainState) -> ChainState:
        link = place.link
        if link.group:
            return self._looping_group(place, sink)
        take = _unless(place.take(), link.until)
        ignore = place.inner_ignore()
        state = ChainState(link.name)
        if link.greedy and link.until is not None:
            self._ungreedy[sink] = sink.copied()
        self._proceed(state, place, sink)
        if link.greedy:
            sink.yield_to(place.take())
        state.add(Act.TAKE, state, take)
        self._add_stop_after(place, state)
        if ignore is not None:
            ignore = _unless(ignore, link.until)
            waiting = ChainState(link.name)
            waiting.add(Act.TAKE, state, take)
            waiting.add(Act.IGNORE, waiting, ignore)
            state.add(Act.IGNORE, waiting, ignore)
            self._add_stop_after(place, waiting)
        return state

    def _group(self, place: _Place, sink: ChainState, beyond: ChainState | None, *, first: bool) -> ChainState:
        state = self.sequence(self._inside(place, first=first), sink)
        if beyond is not None:
            state.add(Act.PROCEED, beyond, place.proceed())
        return state

    def _looping_group(self, place: _Place, sink: ChainState) -> ChainState:
        again = ChainState(place.link.name)
        state = self.sequence(self._inside(place, first=False), again)
        state.add(Act.PROCEED, sink, place.proceed())
        again.add(Act.PROCEED, state, place.proceed())
        return state

    def _inside(self, place: _Place, *, first: bool) -> _Place:
        group = place.link
        return _Place(group.group, len(group.group) - 1, group, first, place.following)

    # -- negated links -------------------------------------------------------------------------

    def _stop(self, refused: Predicate, name: str) -> ChainState:
        if name not in self._stops:
            self._stops[name] = ChainState(name, stop=True)
            self._stops[name].add(Act.TAKE, self._stops[name], refused)
        return self._stops[name]

    def _add_stops(self, place: _Place, state: ChainState) -> None:
        """End the partial match on what the negated links before this one refuse."""
        for link in place.nots:
            refused = replace(place, index=place.links.index(link)).take()
            state.add(Act.PROCEED, self._stop(refused, link.name), refused)

    def _add_stop_after(self, place: _Place, state: ChainState) -> None:
        """While events are still taken, the negated link that follows holds already."""
        following = place.following
        if following is not None and _is_not_followed(following):
            refused = _fits(following)
            state.add(Act.PROCEED, self._stop(refused, following.name), refused)

    def _without_nots(self, place: _Place, sink: ChainState) -> ChainState:
        """The state for when an event of an optional link was taken: the nots before it hold no longer."""
        names = {link.name for link in place.nots}
        if place.index == 0 or not names or not place.link.optional:
            return sink
        copy = ChainState(sink.name, sink.final, sink.stop)
        for edge in sink.edges:
            target = edge.target
            if edge.act is Act.PROCEED:
                if target.stop and target.name in names:
                    continue
                if not target.stop:
                    target = self._without_nots(place, target)
            elif target is sink:
                target = copy
            copy.add(edge.act, target, edge.condition)
        return copy
