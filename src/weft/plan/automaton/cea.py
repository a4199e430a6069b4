"""The complex event automaton of a query (CEA, DCORE section 3.4), built by positions (Glushkov).

Each event of the pattern becomes an atom: a guard on one event and the names it is bound to. Reading an
atom leads to a state, which is what may be read next: `near` at the very next event, `far` at any later
one. So there are no empty transitions, and a state that only waits is its own successor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from weft.algebra.chains import Chain, Fits
from weft.algebra.patterns import Bind, Correlate, Event, Filter, Maybe, Other, Pattern, Repeat, Sequence, Union
from weft.algebra.predicates import (
    Always,
    And,
    Attribute,
    Call,
    Comparison,
    Expression,
    Literal,
    Not,
    Or,
    Predicate,
    variables_of,
)
from weft.algebra.query import Query
from weft.plan.atoms import IsStream, IsType
from weft.plan.automaton.chains import ChainAtoms, fitting
from weft.tree import Node

Slot = tuple[int, str]  # (condition, variable)
UNLESS = "\0unless"  # what an event is bound to that spoils a match


@dataclass(frozen=True)
class Atom:
    """One event to be read: the condition on it, and the names it is bound to."""

    guard: tuple[Predicate, ...]  # all must hold
    own: tuple[str, ...]  # type and stream>type; empty for an event that is read unmarked
    aliases: frozenset[str] = frozenset()
    slots: frozenset[Slot] = frozenset()  # the part it plays in conditions over several events
    enters: frozenset[int] = frozenset()  # conditions whose scope begins with it

    @property
    def names(self) -> frozenset[str]:
        """Every variable its events are bound to."""
        return self.aliases.union(self.own)


@dataclass(frozen=True)
class AutomatonCondition:
    """A filter over several events. `scoped`: it holds for each instance of its part of the pattern."""

    predicate: Predicate
    scoped: bool


@dataclass(frozen=True)
class Automaton:
    """Atoms, where a match may start and end, and which atoms may follow each atom."""

    atoms: tuple[Atom, ...]
    first: frozenset[int]
    last: frozenset[int]
    near: tuple[frozenset[int], ...]  # by atom: followers at the very next event
    far: tuple[frozenset[int], ...]  # by atom: followers at any later event
    conditions: tuple[AutomatonCondition, ...]
    derived: tuple[tuple[str, Expression], ...] = ()  # attributes that conditions read, worked out for each event


@dataclass
class _Builder:
    atoms: list[Atom] = field(default_factory=list)
    near: list[set[int]] = field(default_factory=list)
    far: list[set[int]] = field(default_factory=list)
    conditions: list[AutomatonCondition] = field(default_factory=list)
    derived: dict[str, Expression] = field(default_factory=dict)

    def add(self, atom: Atom) -> int:
        self.atoms.append(atom)
        self.near.append(set())
        self.far.append(set())
        return len(self.atoms) - 1

    def follow(self, before: set[int], after: set[int], *, contiguous: bool) -> None:
        for atom in before:
            (self.near if contiguous else self.far)[atom] |= after


@dataclass(frozen=True)
class _Part:
    """A sub-pattern: its atoms are numbered `begin..end`; some may come first, some last."""

    begin: int
    end: int
    first: set[int]
    last: set[int]
    maybe: bool = False  # it may be left out


def build_automaton(query: Query) -> Automaton:
    """The automaton of a query's pattern; its select list, window and policies are not in it."""
    builder = _Builder()
    part = _build(query.pattern, builder, once=True)
    if query.session is not None:
        part = _in_session(builder, part, opens(query))
    if query.unless is not None:
        part = _spoil(builder, part, query.unless)
    return Automaton(
        tuple(builder.atoms),
        frozenset(part.first),
        frozenset(part.last),
        tuple(map(frozenset, builder.near)),
        tuple(map(frozenset, builder.far)),
        tuple(builder.conditions),
        tuple(builder.derived.items()),
    )


def existence(query: Query) -> Predicate:
    """Return the condition that an event must satisfy to exist for the query at all."""
    if query.universe is None:
        return Always()
    pairs = (_is_event(type_, None if stream == "*" else stream) for stream, type_ in query.universe)
    return Or(tuple(And(pair) for pair in pairs))


def _is_event(type_: str, stream: str | None) -> tuple[Predicate, ...]:
    return (IsType(type_),) if stream is None else (IsType(type_), IsStream(stream))


def _build(pattern: Pattern, builder: _Builder, *, once: bool) -> _Part:
    """Add a pattern's atoms. `once`: every match has exactly one instance of this part."""
    begin = len(builder.atoms)
    match pattern:
        case Event(type=type_, stream=stream):
            atom = builder.add(Atom(_is_event(type_, stream), pattern.names))
            return _Part(begin, begin + 1, {atom}, {atom})
        case Other(type=type_, stream=stream, where=where):
            refused = Not(And((*_is_event(type_, stream), where)))
            atom = builder.add(Atom((refused,), ()))
            return _Part(begin, begin + 1, {atom}, {atom})
        case Bind(pattern=inner, name=name):
            part = _build(inner, builder, once=once)
            _change(builder, part, lambda a: replace(a, aliases=a.aliases | {name}) if a.own else a)
            return part
        case Filter(pattern=inner, variable=variable, predicate=predicate):
            part = _build(inner, builder, once=once)
            _change(builder, part, lambda a: replace(a, guard=(*a.guard, predicate)) if variable in a.names else a)
            return part
        case Sequence(left=left, right=right, contiguous=contiguous):
            before = _build(left, builder, once=once)
            after = _build(right, builder, once=once)
            builder.follow(before.last, after.first, contiguous=contiguous)
            first = before.first | after.first if before.maybe else before.first
            last = before.last | after.last if after.maybe else after.last
            return _Part(begin, after.end, first, last, before.maybe and after.maybe)
        case Repeat(pattern=inner, contiguous=contiguous):
            part = _build(inner, builder, once=False)
            builder.follow(part.last, part.first, contiguous=contiguous)
            return part
        case Union(left=left, right=right):
            one = _build(left, builder, once=False)
            other = _build(right, builder, once=False)
            maybe = one.maybe or other.maybe
            return _Part(begin, other.end, one.first | other.first, one.last | other.last, maybe)
        case Maybe(pattern=inner):
            return replace(_build(inner, builder, once=False), maybe=True)
        case Correlate(pattern=inner, condition=condition):
            part = _build(inner, builder, once=once)
            return _correlate(builder, part, condition, scoped=not once)
        case Chain():
            return _chain(builder, pattern)
    raise AssertionError(f"not a regular pattern: {pattern!r}")


def _chain(builder: _Builder, chain: Chain) -> _Part:
    begin = len(builder.atoms)
    atoms = ChainAtoms(chain, lambda guard, name: builder.add(Atom(guard, () if name is None else (name,))))
    for atom, follow in atoms.follows():
        builder.near[atom] |= follow.near
        builder.far[atom] |= follow.far
    return _Part(begin, len(builder.atoms), atoms.first, atoms.last)


def opens(query: Query) -> Predicate:
    """Whether an event is the first of a session; the runtime gives events the attribute."""
    return Comparison("=", Attribute(opening_column(query)), Literal(True))


def opening_column(query: Query) -> str:
    """The name of that attribute, which no other query has unless its sessions are the same."""
    return f"\0opens {query.partition!r} {query.session} {query.universe!r}"


def _in_session(builder: _Builder, part: _Part, first: Predicate) -> _Part:
    """The part as a whole session: only its first event opens one, and another event of the session would spoil it.

    What passes over events must not pass over the first of another session.
    """
    later = Not(first)
    for index in range(part.begin, part.end):
        builder.atoms[index] = replace(builder.atoms[index], guard=(*builder.atoms[index].guard, later))
    for index in range(part.begin, part.end):
        if builder.far[index]:
            skipping = builder.add(Atom((later,), ()))
            builder.near[skipping] |= builder.far[index] | {skipping}
            builder.near[index] |= builder.near[skipping]
            builder.far[index] = set()
    entries, last = set(), set(part.last)
    for index in part.first:
        atom = builder.atoms[index]
        entry = builder.add(replace(atom, guard=(*atom.guard[:-1], first)))
        builder.near[entry] |= builder.near[index]
        entries.add(entry)
        last |= {entry} if index in part.last else set()
    spoiling = builder.add(Atom((later,), (UNLESS,)))
    builder.follow(last, {spoiling}, contiguous=True)
    return _Part(part.begin, len(builder.atoms), entries, {*last, spoiling})


def _spoil(builder: _Builder, part: _Part, unless: Fits) -> _Part:
    """Return the part, also with a later event that excludes it: that one is bound to UNLESS."""
    spoils = fitting(unless)
    waiting = builder.add(Atom((Not(spoils),), ()))
    spoiling = builder.add(Atom((spoils,), (UNLESS,)))
    builder.follow({*part.last, waiting}, {waiting, spoiling}, contiguous=True)
    return _Part(part.begin, len(builder.atoms), part.first, {*part.last, spoiling})


def _change(builder: _Builder, part: _Part, change: Callable[[Atom], Atom]) -> None:
    for index in range(part.begin, part.end):
        builder.atoms[index] = change(builder.atoms[index])


def _with_derived(predicate: Predicate, derived: dict[str, Expression]) -> Predicate:
    """Replace functions of one event in the condition by attributes, which are computed when the event arrives."""

    def of_the_event(node: Node) -> Node:
        return Attribute(node.name) if isinstance(node, Attribute) else node

    def replaced(node: Node) -> Node:
        if not isinstance(node, Call):
            return node.map_children(replaced)
        (variable,) = variables_of(node)  # others are refused when a program is lowered
        alone = node.transform(of_the_event)
        assert isinstance(alone, Expression)
        name = f"\0{alone!r}"
        derived[name] = alone
        return Attribute(name, variable)

    changed = replaced(predicate)
    assert isinstance(changed, Predicate)
    return changed


def _correlate(builder: _Builder, part: _Part, predicate: Predicate, *, scoped: bool) -> _Part:
    """Give the part's atoms their slots in the condition.

    When the part may occur several times, or not at all, its instances must be told apart: each of its
    first atoms gets a copy that enters the scope, and only the copies can begin an instance.
    """
    number = len(builder.conditions)
    predicate = _with_derived(predicate, builder.derived)
    builder.conditions.append(AutomatonCondition(predicate, scoped))
    variables = variables_of(predicate)
    for index in range(part.begin, part.end):
        atom = builder.atoms[index]
        mine = {(number, name) for name in variables & atom.names} if atom.own else set()
        builder.atoms[index] = replace(atom, slots=atom.slots | mine)
    if not scoped:
        return part
    first, last = set(), set(part.last)
    for index in part.first:
        original = builder.atoms[index]
        entry = builder.add(replace(original, enters=original.enters | {number}))
        builder.near[entry] |= builder.near[index]
        builder.far[entry] |= builder.far[index]
        first.add(entry)
        if index in part.last:
            last.add(entry)
    return _Part(part.begin, len(builder.atoms), first, last, part.maybe)
